import { expect, test } from 'vitest';
import { pause } from '../kernel/timers.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { Gateways } from './gateways.ts';
import { workersBehind } from './worker-states.ts';

/** Workers that say a snapshot, or nothing until they were waited for in vain. */
function gatewaysOf(time: VirtualTime, snapshots: Record<number, number | undefined>) {
  const peers = Object.keys(snapshots).map((worker) => ({ worker: Number(worker) }));
  const ask = async ({ worker }: { worker: number }, _what: string, withinMs: number) => {
    const snapshot = snapshots[worker];
    if (snapshot === undefined) await pause(time, withinMs);
    return snapshot === undefined ? undefined : { snapshot };
  };
  return { peers, ask } as unknown as Gateways;
}

test('workers that do not answer hold a step up for ten seconds and one look, however many they are', async () => {
  const time = new VirtualTime();
  const gateways = gatewaysOf(time, { 0: 3, 1: undefined, 2: undefined, 3: 2, 4: undefined });
  let told: number[] | undefined;
  void workersBehind(3, gateways, time, 10_000).then((behind) => {
    told = behind;
  });
  await time.advance(9_900);
  expect(told).toBeUndefined();
  await time.advance(2_200);
  expect(told).toEqual([1, 2, 3, 4]);
  expect(time.pending).toBe(0);
});

test('nobody is waited for once all workers are there', async () => {
  const time = new VirtualTime();
  const snapshots: Record<number, number> = { 0: 3, 1: 2 };
  const behind = workersBehind(3, gatewaysOf(time, snapshots), time, 10_000);
  await time.advance(1_000);
  snapshots[1] = 4;
  await time.advance(200);
  expect(await behind).toEqual([]);
  expect(time.pending).toBe(0);
});
