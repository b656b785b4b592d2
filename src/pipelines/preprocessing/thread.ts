import { parentPort } from 'node:worker_threads';
import { assert } from '../../kernel/assert.ts';
import type { Chunk } from './crew.ts';
import { ChunkTokenizer } from './tokenize-chunk.ts';
import { openTokenizer } from './tokenizer.ts';

/** A thread that makes tokens of texts; see thread-hand.ts. */

assert(parentPort, 'this file is the beginning of a worker thread');
const port = parentPort;
const tokenizer = new ChunkTokenizer(openTokenizer);

port.on('message', (chunk: Chunk) => {
  const result = tokenizer.tokenize(chunk);
  port.postMessage(
    result,
    'failed' in result ? [] : [result.ids.buffer as ArrayBuffer, result.counts.buffer as ArrayBuffer],
  );
});
