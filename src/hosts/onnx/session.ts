import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Transferable, Worker } from 'node:worker_threads';
import { HostFault } from '../fault.ts';

/**
 * ONNX Runtime's binding blocks its thread for a whole inference, so sessions live in a worker thread, and the thread
 * that talks to callers only sends it orders. These are the messages.
 */

/** An element type as ONNX Runtime names it. */
export type ElementType =
  | 'float32'
  | 'float64'
  | 'float16'
  | 'int8'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'uint8'
  | 'uint16'
  | 'uint32'
  | 'uint64'
  | 'bool'
  | 'string';

export interface RawTensor {
  type: ElementType;
  dims: number[];
  /** Row-major, in the machine's own order; texts of a `string` tensor. */
  data: ArrayBuffer | string[];
}

export interface TensorInfo {
  name: string;
  type: ElementType;
  /** -1 where any size goes. */
  shape: number[];
}

export interface SessionOptions {
  modelPath: string;
  /** Of an embedding model. */
  tokenizerPath: string | undefined;
  /** A model of embeddings that is given tokens alone. */
  prepared: boolean;
  threads: number;
  /** Embedding: the most tokens of one text; the model may take fewer. */
  tokensMax: number;
}

/** What is known once the model has been loaded. */
export interface Loaded {
  inputs: TensorInfo[];
  outputs: TensorInfo[];
  /** Of an embedding model: the most tokens of one text, the ids there are (unknown without a tokenizer), and the length of a vector. */
  embedding: { tokensMax: number; vocabulary: number | undefined; dimensions: number } | undefined;
}

export type Order =
  | { what: 'tokenize'; text: string }
  | { what: 'embed'; rows: number[][] }
  | { what: 'infer'; feeds: Record<string, RawTensor>; outputs: string[] };

export interface Results {
  tokenize: number[];
  /** One vector a row, of length 1. */
  embed: Float32Array[];
  infer: Record<string, RawTensor>;
}

export type FromWorker =
  | { type: 'loaded'; loaded: Loaded }
  | { type: 'done'; id: number; result: Results[keyof Results] }
  | { type: 'failed'; id: number; message: string };

/** A model in a worker thread. */
export class OnnxSession {
  readonly loaded: Loaded;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve(result: never): void; reject(error: Error): void }>();
  #lastId = 0;

  private constructor(worker: Worker, loaded: Loaded) {
    this.#worker = worker;
    this.loaded = loaded;
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'loaded') return;
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.type === 'done') waiting?.resolve(message.result as never);
      else waiting?.reject(new HostFault(400, message.message));
    });
  }

  /** Loads the model; rejects with the library's own words where it cannot. A thread that dies later ends the process. */
  static async open(options: SessionOptions): Promise<OnnxSession> {
    // The sources have one name, the published package another.
    const file = new URL(`./session-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url);
    const worker = new Worker(file, { workerData: options });
    const loaded = await new Promise<Loaded>((resolve, reject) => {
      worker.once('error', reject);
      worker.once('message', (message: FromWorker) => {
        worker.off('error', reject);
        if (message.type === 'loaded') resolve(message.loaded);
        else reject(new Error('the worker thread did not load the model'));
      });
    });
    worker.on('error', (error) => {
      throw error;
    });
    return new OnnxSession(worker, loaded);
  }

  /** Orders are carried out one after the other. A failed one rejects with a HostFault in ONNX Runtime's words. */
  run<What extends keyof Results>(order: Extract<Order, { what: What }>): Promise<Results[What]> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, order }, 'feeds' in order ? buffersOf(order.feeds) : []);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** What can be handed over to the other thread instead of copied. */
export function buffersOf(tensors: Record<string, RawTensor>): Transferable[] {
  return Object.values(tensors).flatMap(({ data }) => (data instanceof ArrayBuffer ? [data] : []));
}
