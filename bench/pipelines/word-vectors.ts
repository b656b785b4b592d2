import { readFileSync } from 'node:fs';
import { cacheFolder } from '../../src/hosts/models/cache.ts';
import { pull } from '../../src/hosts/models/pull.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { type OpenTokenizer, openTokenizer } from '../../src/pipelines/preprocessing/tokenizer.ts';

/**
 * Static word vectors: 32,000 tokens of 256 numbers each, a text's vector is the mean of its tokens'. The Python package
 * that they lie in is MIT, and says that they were trained from the token vectors of Llama 2 70B and others, whose own
 * licences may hold for them: they are fetched for a measurement and never passed on.
 */
const PACKAGE = 'pip:wordllama==0.4.0.post1/wordllama';
const WEIGHTS = {
  source: `${PACKAGE}/weights/l2_supercat_256.safetensors`,
  sha256: '64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5',
};
const TOKENIZER = {
  source: `${PACKAGE}/tokenizers/l2_supercat_tokenizer_config.json`,
  sha256: '93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68',
};
export const DIMENSIONS = 256;

export class WordVectors {
  readonly #rows: Float32Array;
  readonly #tokenizer: OpenTokenizer;

  private constructor(rows: Float32Array, tokenizer: OpenTokenizer) {
    this.#rows = rows;
    this.#tokenizer = tokenizer;
  }

  /** Fetches them where they are not there yet. */
  static async open(): Promise<WordVectors> {
    const [weights, tokenizer] = [await fetched(WEIGHTS), await fetched(TOKENIZER)];
    return new WordVectors(readRows(readFileSync(weights)), openTokenizer(tokenizer));
  }

  /** The vector of a text at length 1, and how many tokens it has; all 0 of a text without any. */
  of(text: string): { vector: Float32Array; tokens: number } {
    const ids = this.#tokenizer.encode(text, false, undefined);
    const sum = new Float32Array(DIMENSIONS);
    for (const id of ids) {
      const from = id * DIMENSIONS;
      for (let at = 0; at < DIMENSIONS; at++) sum[at]! += this.#rows[from + at]!;
    }
    return { vector: unit(sum), tokens: ids.length };
  }
}

async function fetched(wanted: { source: string; sha256: string }): Promise<string> {
  const pulled = await pull(
    { from: [wanted] },
    {
      folder: cacheFolder(),
      env: process.env,
      timers: systemTimers,
      signal: new AbortController().signal,
      onEvent(event) {
        if (event.type === 'failed') console.error(`${event.source}: ${event.reason}`);
      },
    },
  );
  if (!pulled) throw new Error(`${wanted.source} could not be had`);
  return pulled.path;
}

/** The one tensor of a safetensors file, of 16-bit numbers: eight bytes tell how long the JSON is that stands before it. */
function readRows(file: Buffer): Float32Array {
  const begin = 8 + Number(file.readBigUInt64LE(0));
  const rows = new Float32Array((file.length - begin) / 2);
  for (let at = 0; at < rows.length; at++) rows[at] = half(file.readUInt16LE(begin + at * 2));
  return rows;
}

/** IEEE 754's 16-bit number. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -24 * fraction;
  return sign * 2 ** (exponent - 25) * (1024 + fraction);
}

export function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, vector));
  return length === 0 ? vector : vector.map((number) => number / length);
}

export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at]! * b[at]!;
  return sum;
}
