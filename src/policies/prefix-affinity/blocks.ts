import { crc32 } from 'node:zlib';
import { mix32 } from '../../kernel/hash.ts';

/**
 * Where blocks of a prompt end, in bytes from its beginning: the same for every prompt, so that what two have in common is
 * whole blocks of both. Short where prompts differ most, longer further on: 80 of them reach 256 KiB.
 */
const ENDS: readonly number[] = [
  ...steps(0, 16 * 1024, 512),
  ...steps(16 * 1024, 64 * 1024, 2 * 1024),
  ...steps(64 * 1024, 256 * 1024, 8 * 1024),
];
/** A prompt below has no block, and is placed by load alone; about 128 tokens. */
export const BLOCK_BYTES_MIN = ENDS[0]!;

function steps(from: number, to: number, by: number): number[] {
  return Array.from({ length: (to - from) / by }, (_, at) => from + (at + 1) * by);
}

/**
 * What each beginning of the prompt in `bytes[from, to)` is known by, the shortest first: the hash at place _i_ is that of
 * everything up to the end of block _i_. Prompts of another `seed` have nothing in common.
 */
export function hashBeginnings(bytes: Buffer, from: number, to: number, seed: number): Uint32Array {
  const length = to - from;
  let count = 0;
  while (count < ENDS.length && ENDS[count]! <= length) count++;
  const hashes = new Uint32Array(count);
  let begin = 0;
  let sum = 0;
  for (let at = 0; at < count; at++) {
    const end = ENDS[at]!;
    sum = crc32(bytes.subarray(from + begin, from + end), sum);
    hashes[at] = mix32(sum ^ mix32(seed + at));
    begin = end;
  }
  return hashes;
}
