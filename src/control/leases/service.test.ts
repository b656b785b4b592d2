import { beforeEach, expect, test } from 'vitest';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { ControlToGateway } from '../../links/messages.ts';
import { type LeaseService, leaseService } from './service.ts';

const KEY = 'b|http://a';

let time: VirtualTime;
let living: Set<number>;
let service: LeaseService;

beforeEach(() => {
  time = new VirtualTime();
  living = new Set([1, 2]);
  service = leaseService({ timers: time, workers: () => 2, alive: (pid) => living.has(pid) });
});

/** A worker that adds up what it is granted. */
function peer(boot: string, worker: number, pid: number) {
  const made = {
    boot,
    worker,
    pid,
    granted: 0,
    send(message: ControlToGateway) {
      if (message.type === 'lease-grant') made.granted += message.units;
      return true;
    },
  };
  return made;
}

const ask = (want: number) => ({ type: 'lease-ask', key: KEY, want, total: 8 }) as const;

test('grants nothing until all workers of the configuration have joined', () => {
  const [a, b] = [peer('a', 0, 1), peer('b', 1, 2)];
  service.joined(a, {});
  service.heard(a, ask(0));
  expect(a.granted).toBe(0);
  service.joined(b, { [KEY]: 5 });
  service.heard(b, ask(5));
  expect([a.granted, b.granted]).toEqual([3, 0]);
});

test('does not wait for ever for a worker that does not come', async () => {
  const a = peer('a', 0, 1);
  service.joined(a, {});
  service.heard(a, ask(0));
  await time.advance(2000);
  expect(a.granted).toBe(8);
});

test("a lost connection frees nothing; the death of the worker's process does", async () => {
  const [a, b] = [peer('a', 0, 1), peer('b', 1, 2)];
  service.joined(a, { [KEY]: 8 });
  service.joined(b, {});
  service.heard(b, ask(4));
  service.left(a);
  await time.advance(5000);
  expect(b.granted).toBe(0);
  living.delete(1);
  await time.advance(250);
  expect(b.granted).toBe(8);
});

test('a worker that comes back holds what it says', async () => {
  const [a, b] = [peer('a', 0, 1), peer('b', 1, 2)];
  service.joined(a, { [KEY]: 8 });
  service.joined(b, {});
  service.left(a);
  const again = peer('a', 0, 1);
  service.joined(again, { [KEY]: 6 });
  service.left(a);
  service.heard(b, ask(4));
  await time.advance(20_000);
  expect(b.granted).toBe(2);
});

test.each([-1, 1.5, Number.NaN, '3', null])('refuses %s units', (units) => {
  const a = peer('a', 0, 1);
  expect(() => service.joined(a, { [KEY]: units as number })).toThrow();
  service.joined(a, {});
  expect(() => service.heard(a, ask(units as number))).toThrow();
});

test('leaves no timer behind', async () => {
  const a = peer('a', 0, 1);
  service.joined(a, {});
  service.left(a);
  service.close();
  expect(time.pending).toBe(0);
});
