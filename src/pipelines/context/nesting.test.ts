import { expect, it } from 'vitest';
import { isTangled } from './nesting.ts';

const nested = (depth: number, inside: unknown = 1) => {
  let value = inside;
  for (let at = 0; at < depth; at++) value = [value];
  return value;
};

it('takes what people write, and neither depths nor widths that grow when they are written out', () => {
  expect([undefined, null, 'text', {}, [1, 2, { a: [3] }], nested(60)].some(isTangled)).toBe(false);
  expect(isTangled(nested(70))).toBe(true);
  expect(isTangled(nested(1_000_000))).toBe(true);
  const wide = new Array(100_000).fill(0);
  expect(isTangled(wide)).toBe(false);
  expect(isTangled(nested(60, new Array(200_000).fill(0)))).toBe(true);
});
