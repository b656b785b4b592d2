import { expect, test } from 'vitest';
import { sameTargets } from './targets.ts';

test('targets are the same where they get the same shares, however that is written', () => {
  const written = [
    { backend: 'a', weight: 95 },
    { backend: 'b', weight: 5 },
  ];
  expect(
    sameTargets(written, [
      { backend: 'b', weight: 0.5 },
      { backend: 'a', weight: 9.5 },
    ]),
  ).toBe(true);
  expect(
    sameTargets(
      [{ backend: 'a' }],
      [
        { backend: 'a', weight: 100 },
        { backend: 'b', weight: 0 },
      ],
    ),
  ).toBe(true);
  expect(
    sameTargets(written, [
      { backend: 'a', weight: 94 },
      { backend: 'b', weight: 6 },
    ]),
  ).toBe(false);
  expect(
    sameTargets(written, [
      { backend: 'a', weight: 95 },
      { backend: 'c', weight: 5 },
    ]),
  ).toBe(false);
  expect(sameTargets(written, [{ backend: 'a' }])).toBe(false);
});

test('what is no list of targets is the same as none', () => {
  for (const odd of [undefined, {}, [1], [{ backend: 1 }], [{ backend: 'a', weight: 'x' }]])
    expect(sameTargets(odd, odd)).toBe(false);
});
