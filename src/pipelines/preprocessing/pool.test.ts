import fc from 'fast-check';
import { expect, test } from 'vitest';
import { words } from '../../../test/path/words-tokenizer.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { TokenizeAsk, Tokenized, TokenizeFailure } from './contracts.ts';
import type { Chunk, ChunkDone, ChunkFailed, Hand } from './crew.ts';
import { InlineHand } from './inline-hand.ts';
import { Pool } from './pool.ts';

const FILE = { key: 'words', path: 'words' };

function rig(settings = { threads: 1, queueMax: 100 }, msPerText = 1, hire?: (time: VirtualTime) => Hand) {
  const time = new VirtualTime();
  const pool = new Pool({
    clock: time,
    timers: time,
    hire: () => hire?.(time) ?? new InlineHand(time, words, msPerText),
    settings,
  });
  const ask = (texts: readonly string[], more: Partial<TokenizeAsk> = {}) => {
    const got: { result?: Tokenized | TokenizeFailure; at?: number; cancel: () => void } = {
      cancel: () => {},
    };
    got.cancel = pool.tokenize(
      {
        tokenizer: FILE,
        texts,
        specials: true,
        want: 'ids',
        rank: 1,
        deadlineAt: Number.POSITIVE_INFINITY,
        ...more,
      },
      (result) => {
        expect(got.result).toBeUndefined();
        got.result = result;
        got.at = time.mono();
      },
    );
    expect(got.result).toBeUndefined();
    return got;
  };
  return { time, pool, ask };
}

test('each asker gets the tokens of its own texts, in their order, whoever asks beside', async () => {
  const asks = fc.array(
    fc.record({
      texts: fc.array(fc.string({ maxLength: 30 }), { maxLength: 80 }),
      rank: fc.nat(3),
      want: fc.constantFrom('ids' as const, 'counts' as const),
      leaves: fc.boolean(),
    }),
    { maxLength: 8 },
  );
  await fc.assert(
    fc.asyncProperty(asks, fc.integer({ min: 1, max: 3 }), async (all, threads) => {
      const { time, pool, ask } = rig({ threads, queueMax: 10_000 });
      const got = all.map(({ texts, rank, want }) => ask(texts, { rank, want }));
      for (const [at, { leaves }] of all.entries()) if (leaves) got[at]!.cancel();
      await time.advance(10_000);
      for (const [at, { texts, want, leaves }] of all.entries()) {
        const expected = texts.map((text) => words('words').encode(text, true, undefined));
        if (leaves) expect(got[at]!.result).toBeUndefined();
        else {
          const { counts, ids } = got[at]!.result as Tokenized;
          expect([...counts]).toEqual(expected.map((row) => row.length));
          expect(ids.map((row) => [...row])).toEqual(want === 'ids' ? expected : []);
        }
      }
      expect([pool.waiting, pool.running]).toEqual([0, 0]);
    }),
    { numRuns: 200 },
  );
});

test('a long list holds up nobody, and a higher priority goes first', async () => {
  const { time, ask } = rig({ threads: 1, queueMax: 1000 });
  const long = ask(Array.from({ length: 320 }, () => 'a'));
  const late = ask(['b']);
  const urgent = ask(['c'], { rank: 0 });
  await time.advance(1000);
  expect(urgent.at).toBeLessThanOrEqual(65);
  expect(late.at).toBeLessThanOrEqual(98);
  expect(long.at).toBe(322);
});

test('what waits is bounded in texts, and what is late is not begun', async () => {
  const { time, pool, ask } = rig({ threads: 1, queueMax: 40 });
  ask(Array.from({ length: 96 }, () => 'a'));
  const waits = ask(
    Array.from({ length: 8 }, () => 'a'),
    { deadlineAt: 50 },
  );
  const full = ask(['a', 'b', 'c']);
  await time.advance(1);
  expect(full.result).toMatchObject({ failed: 'full' });
  await time.advance(100);
  expect(waits.result).toMatchObject({ failed: 'late' });
  expect([pool.waiting, pool.running]).toEqual([0, 0]);
});

test('a hand that dies costs one more try, and no more than one', async () => {
  let deaths = 3;
  const mortal = (time: VirtualTime): Hand => {
    const inner = new InlineHand(time, words, 1);
    return {
      work: (chunk: Chunk, done: (result: ChunkDone | ChunkFailed) => void) => {
        if (deaths-- > 0) time.set(1, () => done({ failed: 'died', message: 'gone' }));
        else inner.work(chunk, done);
      },
      close: () => inner.close(),
    };
  };
  const { time, pool, ask } = rig({ threads: 1, queueMax: 10 }, 1, mortal);
  const first = ask(['a']);
  await time.advance(10);
  expect(first.result).toMatchObject({ failed: 'broken', message: 'gone' });
  const second = ask(['a b']);
  await time.advance(10);
  expect((second.result as Tokenized).counts).toEqual([4]);
  expect([pool.waiting, pool.running]).toEqual([0, 0]);
});

test('a tokenizer that cannot be read is told, and texts are cut inside what is put around them', async () => {
  const { time, ask } = rig();
  const lost = ask(['a'], { tokenizer: { key: 'lost', path: 'lost' } });
  const cut = ask(['a b c d'], { cutAt: 4 });
  await time.advance(10);
  expect(lost.result).toMatchObject({ failed: 'unreadable' });
  expect((cut.result as Tokenized).counts).toEqual([4]);
});

test('fewer threads take effect when those that are too many have nothing to do', async () => {
  let closed = 0;
  const hire = (time: VirtualTime): Hand => {
    const inner = new InlineHand(time, words, 1);
    return { work: (chunk, done) => inner.work(chunk, done), close: () => closed++ };
  };
  const { time, pool, ask } = rig({ threads: 3, queueMax: 1000 }, 1, hire);
  const got = ask(Array.from({ length: 200 }, () => 'a'));
  pool.settings = { threads: 1, queueMax: 1000 };
  expect(closed).toBe(0);
  await time.advance(1000);
  expect((got.result as Tokenized).counts).toHaveLength(200);
  expect(closed).toBe(2);
});
