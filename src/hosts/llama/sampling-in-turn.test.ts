import type { LlamaContext } from 'node-llama-cpp';
import { expect, test } from 'vitest';
import { sampleInTurn } from './sampling-in-turn.ts';

test('tokens of several sequences are drawn one after the other, and one that fails fails alone', async () => {
  let now = 0;
  let most = 0;
  const inner = {
    async sampleToken(index: unknown, ...more: unknown[]) {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
      if (index === 2) throw new Error('no logits');
      return [index, ...more];
    },
  };
  sampleInTurn({ _ctx: inner } as unknown as LlamaContext);
  const drawn = await Promise.allSettled([0, 1, 2, 3].map((index) => inner.sampleToken(index, 'sampler')));
  expect(most).toBe(1);
  expect(drawn.map((each) => (each.status === 'fulfilled' ? each.value : 'failed'))).toEqual([
    [0, 'sampler'],
    [1, 'sampler'],
    'failed',
    [3, 'sampler'],
  ]);
});

test('a library that draws tokens in another way is refused', () => {
  expect(() => sampleInTurn({} as LlamaContext)).toThrow('node-llama-cpp');
});
