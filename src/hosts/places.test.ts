import { expect, test } from 'vitest';
import { Places } from './places.ts';

const here = new AbortController().signal;

test('places are handed on in the order of coming', async () => {
  const places = new Places(1, 2);
  expect(await places.take(here)).toBe(true);
  const order: string[] = [];
  const second = places.take(here).then(() => order.push('second'));
  const third = places.take(here).then(() => order.push('third'));
  await expect(places.take(here)).rejects.toThrow('2 requests wait already');
  places.release();
  await second;
  places.release();
  await third;
  expect(order).toEqual(['second', 'third']);
  places.release();
  expect([places.running, places.waiting]).toEqual([0, 0]);
});

test('whoever leaves while waiting gives up the turn, and takes no place', async () => {
  const places = new Places(1, 2);
  await places.take(here);
  const leaving = new AbortController();
  const gone = places.take(leaving.signal);
  const stays = places.take(here);
  leaving.abort();
  expect(await gone).toBe(false);
  expect(places.waiting).toBe(1);
  places.release();
  expect(await stays).toBe(true);
  places.release();
  expect(await places.take(leaving.signal)).toBe(false);
  expect(places.running).toBe(0);
});
