import { BrokenFile, type Inspection, TOLD_MAX } from './contracts.ts';
import type { Bytes } from './file-bytes.ts';

/** The longest header that the format allows. */
const HEADER_BYTES_MAX = 100_000_000;

/** Kinds of numbers: how we call them, and their bytes. */
const KINDS: Record<string, [name: string, bytes: number]> = {
  BOOL: ['bool', 1],
  U8: ['uint8', 1],
  I8: ['int8', 1],
  F8_E5M2: ['fp8-e5m2', 1],
  F8_E4M3: ['fp8-e4m3', 1],
  F8_E8M0: ['fp8-e8m0', 1],
  F4: ['fp4', 0.5],
  F6_E2M3: ['fp6-e2m3', 0.75],
  F6_E3M2: ['fp6-e3m2', 0.75],
  U16: ['uint16', 2],
  I16: ['int16', 2],
  F16: ['fp16', 2],
  BF16: ['bf16', 2],
  U32: ['uint32', 4],
  I32: ['int32', 4],
  F32: ['fp32', 4],
  U64: ['uint64', 8],
  I64: ['int64', 8],
  F64: ['fp64', 8],
  C64: ['complex64', 8],
};

interface Tensor {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/**
 * Undefined where it is none. Throws a BrokenFile where its header does not describe all of its bytes, once each: the
 * format allows neither holes nor anything behind the data. Format: README of huggingface/safetensors.
 */
export function inspectSafetensors(file: Bytes): Inspection | undefined {
  const head = file.read(0, 9);
  if (head.length < 9) return undefined;
  const length = Number(head.readBigUInt64LE());
  if (head[8] !== 0x7b || length > HEADER_BYTES_MAX || length + 8 > file.size) return undefined;
  let header: Record<string, unknown>;
  try {
    header = JSON.parse(file.read(8, length).toString('utf8')) as Record<string, unknown>;
  } catch {
    return undefined; // begins like one by chance
  }
  const { __metadata__: metadata, ...tensors } = header;
  const numbers: Record<string, number> = {};
  for (const [name, tensor] of Object.entries(tensors)) {
    if (!isTensor(tensor)) throw new BrokenFile(`its tensor '${name}' is not described as one`);
    count(name, tensor, numbers);
  }
  covers(Object.values(tensors) as Tensor[], file.size - 8 - length);
  return { format: 'safetensors', numbers, told: toldIn(metadata) };
}

function isTensor(value: unknown): value is Tensor {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Partial<Tensor>;
  const whole = (one: unknown) => Number.isSafeInteger(one) && (one as number) >= 0;
  return (
    typeof dtype === 'string' &&
    Array.isArray(shape) &&
    shape.every(whole) &&
    Array.isArray(offsets) &&
    offsets.length === 2 &&
    offsets.every(whole)
  );
}

function count(name: string, tensor: Tensor, numbers: Record<string, number>): void {
  const { dtype, shape, data_offsets } = tensor;
  const elements = shape.reduce((product, size) => product * size, 1);
  const [kind, bytes] = KINDS[dtype] ?? [dtype.toLowerCase(), undefined];
  const has = data_offsets[1] - data_offsets[0];
  if (bytes !== undefined && Math.ceil(elements * bytes) !== has)
    throw new BrokenFile(`its tensor '${name}' has ${has} bytes, where its shape needs ${elements * bytes}`);
  numbers[kind] = (numbers[kind] ?? 0) + elements;
}

function covers(tensors: readonly Tensor[], bytes: number): void {
  let at = 0;
  const ordered = tensors.map(({ data_offsets }) => data_offsets).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [begin, end] of ordered) {
    if (begin !== at) throw new BrokenFile('its tensors leave a hole or lie over one another');
    at = end;
  }
  if (at > bytes)
    throw new BrokenFile(`it ends too early: ${bytes} bytes of data, where its header has ${at}`);
  if (at < bytes) throw new BrokenFile(`${bytes - at} bytes stand behind its data`);
}

function toldIn(metadata: unknown): Record<string, string> {
  const texts = Object.entries((metadata ?? {}) as Record<string, unknown>).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1].length <= 200,
  );
  return Object.fromEntries(texts.slice(0, TOLD_MAX));
}
