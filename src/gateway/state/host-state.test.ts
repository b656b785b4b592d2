import { expect, it } from 'vitest';
import { HostState } from './host-state.ts';

it('lets those who wait for a host that runs keep their turn, also when it is told of again', () => {
  const host = new HostState(0);
  expect(host.heard({ state: 'running' }, 1_000)).toBe(false);
  expect(host.heard({ state: 'running' }, 60_000)).toBe(false);
});

it('lets them think again when it starts anew, or is idle', () => {
  const host = new HostState(0);
  host.heard({ state: 'running' }, 1_000);
  expect(host.heard({ state: 'starting', startingMs: 0 }, 5_000)).toBe(true);
  expect(host.heard({ state: 'starting', startingMs: 2_000 }, 7_000)).toBe(false);
  expect(host.heard({ state: 'starting', startingMs: 0 }, 12_000)).toBe(true);
  expect(host.heard({ state: 'idle' }, 12_500)).toBe(true);
  expect(host.heard({ state: 'idle' }, 12_600)).toBe(true);
});
