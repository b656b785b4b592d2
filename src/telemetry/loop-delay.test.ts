import { expect, test } from 'vitest';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { watchLoopDelay } from './loop-delay.ts';

test('tells how late the loop comes round, until it is stopped', async () => {
  const time = new VirtualTime();
  let lateMs = 0;
  const clock = { wall: () => time.wall(), mono: () => time.mono() + lateMs };
  const lags: number[] = [];
  const stop = watchLoopDelay(clock, time, (seconds) => lags.push(seconds));
  await time.advance(20);
  lateMs = 7;
  await time.advance(20);
  expect(lags).toEqual([0, 0.007]);
  stop();
  await time.advance(1000);
  expect(lags).toHaveLength(2);
  expect(time.pending).toBe(0);
});
