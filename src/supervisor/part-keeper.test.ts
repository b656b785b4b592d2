import { expect, test } from 'vitest';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { Exit, Launched } from './contracts.ts';
import { PartKeeper } from './part-keeper.ts';

const DIED: Exit = { exitCode: null, signal: 'SIGKILL' };

/** A keeper of one part whose processes are made up. */
function kept(graceMs?: number) {
  const time = new VirtualTime();
  const launched: (Launched & { signals: string[] })[] = [];
  const told: string[] = [];
  const waits: (number | null)[] = [];
  const keeper = new PartKeeper(
    { part: 'p', role: 'gateway', args: [], ...(graceMs === undefined ? {} : { graceMs }) },
    {
      launcher: {
        launch() {
          const signals: string[] = [];
          const one = {
            pid: 100 + launched.length,
            onExit: undefined,
            signals,
            signal: (name: string) => void signals.push(name),
          };
          launched.push(one);
          return one;
        },
      },
      clock: time,
      timers: time,
      random: seededRandom(1),
      onStarted: (_, pid, adopted) => told.push(`${adopted ? 'adopted' : 'started'} ${pid}`),
      onLeft: (_, pid, __, restartInMs) => {
        told.push(`left ${pid}`);
        waits.push(restartInMs);
      },
    },
  );
  const die = () => launched.at(-1)!.onExit!(DIED);
  return { time, launched, told, waits, keeper, die };
}

test('a part that dies is started again at once, and later and later while it keeps dying', async () => {
  const { time, launched, waits, keeper, die } = kept();
  keeper.start();
  for (let deaths = 1; deaths <= 10; deaths++) {
    die();
    await time.advance(36_000);
    expect(launched.length).toBe(deaths + 1);
  }
  expect(waits[0]).toBe(0);
  [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000].forEach((ms, i) => {
    expect(waits[i + 1]).toBeGreaterThanOrEqual(ms * 0.8);
    expect(waits[i + 1]).toBeLessThanOrEqual(ms * 1.2);
  });
  expect(time.pending).toBe(0);
});

test('a part that has lived for a minute is started at once again', async () => {
  const { time, waits, keeper, die } = kept();
  keeper.start();
  for (let i = 0; i < 3; i++) {
    die();
    await time.advance(5000);
  }
  await time.advance(60_000);
  die();
  expect(waits.at(-1)).toBe(0);
});

test('a stopped part gets SIGTERM, then SIGKILL when its time is over, and stays away', async () => {
  const { time, launched, told, waits, keeper, die } = kept(3000);
  keeper.start();
  let gone = false;
  void keeper.stop().then(() => {
    gone = true;
  });
  expect(launched[0]!.signals).toEqual(['SIGTERM']);
  await time.advance(2999);
  expect(launched[0]!.signals).toEqual(['SIGTERM']);
  await time.advance(1);
  expect(launched[0]!.signals).toEqual(['SIGTERM', 'SIGKILL']);
  expect(gone).toBe(false);
  die();
  await time.advance(100_000);
  expect(gone).toBe(true);
  expect(told).toEqual(['started 100', 'left 100']);
  expect(waits).toEqual([null]);
  expect(time.pending).toBe(0);
});

test('a hurried stop kills after two seconds', async () => {
  const { time, launched, keeper } = kept(60_000);
  keeper.start();
  void keeper.stop();
  void keeper.stop(true);
  await time.advance(2000);
  expect(launched[0]!.signals).toEqual(['SIGTERM', 'SIGINT', 'SIGKILL']);
});

test('a part that waits to be started again does not come back once it is stopped', async () => {
  const { time, launched, keeper, die } = kept();
  keeper.start();
  die();
  await time.advance(0);
  die();
  await keeper.stop();
  await time.advance(100_000);
  expect(launched.length).toBe(2);
});

test('a part is replaced only after the one before it has left', async () => {
  const { time, launched, keeper, die } = kept();
  keeper.start();
  void keeper.replace({ part: 'p', role: 'gateway', args: ['new'], revision: '2' });
  await time.advance(1000);
  expect(launched.length).toBe(1);
  die();
  await time.advance(0);
  expect(launched.length).toBe(2);
  expect(keeper.spec.revision).toBe('2');
});

test('a part that was taken over is started anew when it ends', async () => {
  const { time, told, keeper } = kept();
  const adopted: Launched = { pid: 7, onExit: undefined, signal: () => {} };
  keeper.adopt(adopted);
  keeper.start();
  adopted.onExit!({ exitCode: null, signal: null });
  await time.advance(0);
  expect(told).toEqual(['adopted 7', 'left 7', 'started 100']);
});

test('a resting part goes on, and stays away when it ends', async () => {
  const { time, launched, waits, keeper, die } = kept();
  keeper.start();
  keeper.rest();
  expect(launched[0]!.signals).toEqual([]);
  die();
  await time.advance(100_000);
  expect(waits).toEqual([null]);
  expect(launched.length).toBe(1);
});
