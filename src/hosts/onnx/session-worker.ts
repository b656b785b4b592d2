import { readFileSync } from 'node:fs';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Tokenizer } from '@huggingface/tokenizers';
import * as ort from 'onnxruntime-node';
import { assert } from '../../kernel/assert.ts';
import { encoder, POOLED, poolByMask } from './pooling.ts';
import type { FromWorker, Order, RawTensor, Results, SessionOptions, TensorInfo } from './session.ts';
import { buffersOf } from './session.ts';

/** The thread in which ONNX Runtime runs; see session.ts. */

assert(parentPort, 'this file is the beginning of a worker thread');
const port: MessagePort = parentPort;
const options = workerData as SessionOptions;

const session = await ort.InferenceSession.create(options.modelPath, {
  intraOpNumThreads: options.threads,
  interOpNumThreads: 1,
  // What goes wrong is told to the caller; the library's own log would tell it a second time.
  logSeverityLevel: 4,
  // Threads that wait by spinning take the processor from everything else.
  extra: { session: { intra_op: { allow_spinning: '0' } } },
});
const tokenizer =
  options.tokenizerPath === undefined ? undefined : await readTokenizer(options.tokenizerPath);
const embed = encoder(session);

const embedding = tokenizer || options.prepared ? await measure(tokenizer?.get_vocab().size) : undefined;
const outputs = session.outputMetadata.map(tensorInfo);
/** Vectors of texts are pooled here where the model gives one for each token: it would be a hundred times as much to send. */
const isPooled = options.prepared && outputs.every(({ name }) => name !== POOLED);
if (isPooled) outputs.push({ name: POOLED, type: 'float32', shape: [-1, embedding!.dimensions] });

say({
  type: 'loaded',
  loaded: { inputs: session.inputMetadata.map(tensorInfo), outputs, embedding },
});

// Orders are answered in turn: each waits for the one before it.
let last: Promise<void> = Promise.resolve();
port.on('message', ({ id, order }: { id: number; order: Order }) => {
  last = last.then(async () => {
    try {
      const result = await carryOut(order);
      const transfer = order.what === 'infer' ? buffersOf(result as Results['infer']) : [];
      port.postMessage({ type: 'done', id, result } satisfies FromWorker, transfer);
    } catch (error) {
      say({ type: 'failed', id, message: (error as Error).message });
    }
  });
});

function say(message: FromWorker): void {
  port.postMessage(message);
}

async function carryOut(order: Order): Promise<Results[keyof Results]> {
  switch (order.what) {
    case 'tokenize':
      return tokenizer!.encode(order.text).ids;
    case 'embed':
      return embed(order.rows);
    case 'infer':
      return infer(order.feeds, order.outputs);
  }
}

async function infer(feeds: Record<string, RawTensor>, outputs: string[]): Promise<Results['infer']> {
  const given = Object.fromEntries(Object.entries(feeds).map(([name, tensor]) => [name, toOrt(tensor)]));
  const asked = isPooled && outputs.includes(POOLED) ? outputs.filter((name) => name !== POOLED) : outputs;
  const first = session.outputNames[0]!;
  const run = asked === outputs || asked.includes(first) ? asked : [...asked, first];
  const made = await session.run(given, run);
  const results: Results['infer'] = {};
  if (asked !== outputs) results[POOLED] = pooled(made[first]!, given['attention_mask']!);
  for (const name of asked) results[name] = fromOrt(made[name]!);
  return results;
}

function pooled(output: ort.Tensor, mask: ort.Tensor): RawTensor {
  const vectors = poolByMask(output.data as Float32Array, output.dims, mask.data as BigInt64Array);
  return {
    type: 'float32',
    dims: [output.dims[0]!, output.dims.at(-1)!],
    data: vectors.buffer as ArrayBuffer,
  };
}

function toOrt({ type, dims, data }: RawTensor): ort.Tensor {
  if (!(data instanceof ArrayBuffer)) return new ort.Tensor('string', data, dims);
  const make = VIEWS[type as keyof typeof VIEWS];
  return new ort.Tensor(type as 'float32', make(data) as Float32Array, dims);
}

function fromOrt(tensor: ort.Tensor): RawTensor {
  const dims = [...tensor.dims];
  if (tensor.type === 'string') return { type: 'string', dims, data: tensor.data as string[] };
  const view = tensor.data as Float32Array<ArrayBuffer>;
  // A copy: the bytes are handed over to the other thread, and these are the library's.
  const data = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
  return { type: tensor.type as RawTensor['type'], dims, data };
}

const VIEWS = {
  float32: (data: ArrayBuffer) => new Float32Array(data),
  float64: (data: ArrayBuffer) => new Float64Array(data),
  float16: (data: ArrayBuffer) => new Uint16Array(data),
  int8: (data: ArrayBuffer) => new Int8Array(data),
  int16: (data: ArrayBuffer) => new Int16Array(data),
  int32: (data: ArrayBuffer) => new Int32Array(data),
  int64: (data: ArrayBuffer) => new BigInt64Array(data),
  uint8: (data: ArrayBuffer) => new Uint8Array(data),
  uint16: (data: ArrayBuffer) => new Uint16Array(data),
  uint32: (data: ArrayBuffer) => new Uint32Array(data),
  uint64: (data: ArrayBuffer) => new BigUint64Array(data),
  bool: (data: ArrayBuffer) => new Uint8Array(data),
};

function tensorInfo(info: ort.InferenceSession.ValueMetadata): TensorInfo {
  if (!info.isTensor) throw new Error(`the model's '${info.name}' is no tensor`);
  return {
    name: info.name,
    type: info.type as TensorInfo['type'],
    shape: info.shape.map((size) => (typeof size === 'number' ? size : -1)),
  };
}

async function readTokenizer(path: string): Promise<Tokenizer> {
  // Who needs none does not pay for it.
  const library = await import('@huggingface/tokenizers');
  const described = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  // Texts are neither cut nor filled up here: one that is too long is refused, and rows are padded batch by batch.
  return new library.Tokenizer({ ...described, truncation: null, padding: null }, {});
}

/** No model says how many tokens it takes, but one that is given too many fails at once: half of them is tried then. */
async function measure(vocabulary: number | undefined) {
  // Whoever makes the tokens knows how many a text may have.
  for (let tokensMax = tokenizer ? options.tokensMax : 1; ; tokensMax = Math.floor(tokensMax / 2)) {
    try {
      const [vector] = await embed([Array.from({ length: tokensMax }, () => 0)]);
      return {
        tokensMax: tokenizer ? tokensMax : options.tokensMax,
        vocabulary,
        dimensions: vector!.length,
      };
    } catch (error) {
      if (tokensMax < 32) throw error;
    }
  }
}
