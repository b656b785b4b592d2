import { expect, test } from 'vitest';
import { soleLeases } from './sole.ts';

test('one worker holds the limit whole, and is told when a unit comes free that it wanted', () => {
  const leases = soleLeases();
  const freed: string[] = [];
  leases.onFree = (key) => freed.push(key);
  expect(leases.take('k', 1)).toBe(false);
  leases.declare('k', 2);
  expect([leases.take('k', 1), leases.take('k', 1), leases.take('k', 1)]).toEqual([true, true, false]);
  expect([leases.used('k'), leases.held('k')]).toEqual([2, 2]);
  leases.give('k');
  expect(freed).toEqual(['k']);
  leases.give('k');
  expect(freed).toEqual(['k']);
});

test('a limit that grows frees at once, one that shrinks is reached as units are given back', () => {
  const leases = soleLeases();
  let freed = 0;
  leases.onFree = () => freed++;
  leases.declare('k', 1);
  leases.take('k', 1);
  leases.take('k', 1);
  leases.declare('k', 2);
  expect(freed).toBe(1);
  expect(leases.take('k', 1)).toBe(true);
  leases.declare('k', 1);
  leases.give('k');
  expect(leases.take('k', 1)).toBe(false);
});
