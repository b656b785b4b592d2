import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { VirtualTime } from '../../src/kernel/virtual-time.ts';
import type { Tokenized, TokenizeFailure } from '../../src/pipelines/contracts.ts';
import { Pool } from '../../src/pipelines/preprocessing/pool.ts';
import { ThreadHand } from '../../src/pipelines/preprocessing/thread-hand.ts';
import { openTokenizer } from '../../src/pipelines/preprocessing/tokenizer.ts';

/** Real threads. */

const path = join(import.meta.dirname, '../context/reference/small/bytes/tokenizer.json');

function rig(threads: number, timers = systemTimers) {
  const deaths: string[] = [];
  const pool = new Pool({
    clock: systemClock,
    timers: systemTimers,
    hire: () => new ThreadHand(timers, (why) => deaths.push(why)),
    settings: { threads, queueMax: 10_000 },
  });
  const ask = (texts: readonly string[], file = path) =>
    new Promise<Tokenized | TokenizeFailure>((resolve) => {
      const tokenizer = { key: file, path: file };
      const rest = { specials: true, want: 'ids', rank: 0, deadlineAt: Number.POSITIVE_INFINITY } as const;
      pool.tokenize({ tokenizer, texts, ...rest }, resolve);
    });
  return { pool, ask, deaths };
}

test('threads make the tokens that the tokenizer makes in place', async () => {
  const { pool, ask } = rig(2);
  const texts = Array.from({ length: 500 }, (_, i) => `Text ${i}: größer 😀 ${'x'.repeat(i)}`);
  const made = (await ask(texts)) as Tokenized;
  const tokenizer = openTokenizer(path);
  for (const [at, text] of texts.entries()) {
    expect([...made.ids[at]!]).toEqual([...tokenizer.encode(text, true, undefined)]);
  }
  expect(await ask(['a'], '/nowhere')).toMatchObject({ failed: 'unreadable' });
  expect([pool.waiting, pool.running]).toEqual([0, 0]);
  pool.close();
});

test('a thread that takes too long is ended, its work is tried once more, and the next one works', async () => {
  const time = new VirtualTime();
  const { pool, ask, deaths } = rig(1, time);
  const asked = ask(['a text']);
  await time.advance(10_000); // before the thread has even begun
  expect(((await asked) as Tokenized).counts).toHaveLength(1);
  expect(deaths).toEqual(['it took more than 10000 ms']);
  // Long enough not to be done before its time is over.
  const twice = ask([Array.from({ length: 500_000 }, (_, i) => `w${i}`).join(' ')]);
  await time.advance(10_000);
  await time.advance(10_000);
  expect(await twice).toMatchObject({ failed: 'broken' });
  expect(((await ask(['a third'])) as Tokenized).counts).toHaveLength(1);
  expect([pool.waiting, pool.running]).toEqual([0, 0]);
  pool.close();
});
