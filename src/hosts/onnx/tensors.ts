import { type Datatype, elementsOf, type InferCall, type Tensor } from '../../protocols/oip/tensors.ts';
import { badRequest } from '../fault.ts';
import type { ElementType, RawTensor, TensorInfo } from './session.ts';

/** Between the protocol's tensors and ONNX Runtime's. Both are row-major; the machines that run this are little-endian. */

const DATATYPES: Record<ElementType, Datatype> = {
  float32: 'FP32',
  float64: 'FP64',
  float16: 'FP16',
  int8: 'INT8',
  int16: 'INT16',
  int32: 'INT32',
  int64: 'INT64',
  uint8: 'UINT8',
  uint16: 'UINT16',
  uint32: 'UINT32',
  uint64: 'UINT64',
  bool: 'BOOL',
  string: 'BYTES',
};

export function describe({ name, type, shape }: TensorInfo): {
  name: string;
  datatype: Datatype;
  shape: number[];
} {
  return { name, datatype: DATATYPES[type], shape };
}

/** The model's inputs out of a request; throws a bad request for the first that is missing, unknown or of another form. */
export function feedsOf({ inputs }: InferCall, wanted: readonly TensorInfo[]): Record<string, RawTensor> {
  const feeds: Record<string, RawTensor> = {};
  for (const input of inputs) {
    const info = wanted.find(({ name }) => name === input.name);
    if (!info) {
      throw badRequest(
        `unknown input '${input.name}': the model has ${wanted.map(({ name }) => name).join(', ')}`,
      );
    }
    if (Object.hasOwn(feeds, input.name)) throw badRequest(`input '${input.name}' is given twice`);
    checkForm(input, info);
    feeds[input.name] = { type: info.type, dims: input.shape, data: toData(input) };
  }
  const missing = wanted.find(({ name }) => !Object.hasOwn(feeds, name));
  if (missing) throw badRequest(`input '${missing.name}' is missing`);
  return feeds;
}

function checkForm({ name, datatype, shape }: Tensor, info: TensorInfo): void {
  if (datatype !== DATATYPES[info.type]) {
    throw badRequest(`input '${name}': expected datatype ${DATATYPES[info.type]}, got ${datatype}`);
  }
  const fits =
    shape.length === info.shape.length && info.shape.every((size, at) => size === -1 || size === shape[at]);
  if (!fits) throw badRequest(`input '${name}': expected shape [${info.shape}], got [${shape}]`);
  if (elementsOf(shape) === 0) throw badRequest(`input '${name}': a tensor without elements`);
}

function toData({ datatype, data }: Tensor): RawTensor['data'] {
  if (datatype !== 'BYTES') {
    // A copy of its own: the bytes leave for another thread, and views of them must be aligned.
    return data.buffer.slice(data.byteOffset, data.byteOffset + data.length) as ArrayBuffer;
  }
  const texts: string[] = [];
  for (let at = 0; at < data.length; ) {
    const end = at + 4 + data.readUInt32LE(at);
    texts.push(data.toString('utf8', at + 4, end));
    at = end;
  }
  return texts;
}

/** One of the model's outputs, as the protocol has it. */
export function tensorOf(name: string, { type, dims, data }: RawTensor): Tensor {
  return { name, datatype: DATATYPES[type], shape: dims, data: toBytes(data) };
}

function toBytes(data: RawTensor['data']): Buffer {
  if (data instanceof ArrayBuffer) return Buffer.from(data);
  return Buffer.concat(
    data.flatMap((text) => {
      const bytes = Buffer.from(text);
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      return [length, bytes];
    }),
  );
}
