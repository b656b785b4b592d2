import fc from 'fast-check';
import { expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { SizeTimes } from './index.ts';

it('finds what sizes take, whatever the engine, through noise', () => {
  fc.assert(
    fc.property(
      fc.record({
        base: fc.double({ min: 1, max: 500, noNaN: true }),
        perOut: fc.double({ min: 0.1, max: 50, noNaN: true }),
        perIn: fc.double({ min: 0.01, max: 1, noNaN: true }),
        seed: fc.nat(),
      }),
      ({ base, perOut, perIn, seed }) => {
        const random = seededRandom(seed);
        const times = new SizeTimes();
        let worst = 0;
        for (let at = 0; at < 600; at++) {
          const [sizeIn, sizeOut] = [1 + 2000 * random.next(), 1 + 300 * random.next()];
          const right = base + perOut * sizeOut + perIn * sizeIn;
          const said = times.observe(right * (0.9 + 0.2 * random.next()), sizeIn, sizeOut, 1);
          if (at > 100) worst = Math.max(worst, Math.abs(said / right - 1));
        }
        expect(worst).toBeLessThan(0.15);
      },
    ),
    { numRuns: 100 },
  );
});

it('follows an engine that turns slower', () => {
  const times = new SizeTimes();
  const random = seededRandom(1);
  let said = 0;
  for (const slower of [1, 4]) {
    for (let at = 0; at < 1500; at++) {
      const sizeOut = 1 + 100 * random.next();
      times.observe(slower * (20 + 5 * sizeOut), 100, sizeOut, 1);
    }
    said = times.observe(slower * 270, 100, 50, 1);
    expect(Math.abs(said / (slower * 270) - 1)).toBeLessThan(0.05);
  }
});

it.each([
  ['one size', 10, 1],
  ['nothing in', 0, 5],
  ['nothing out', 100, 0],
])('gives the mean where there is %s', (_, sizeIn, sizeOut) => {
  const times = new SizeTimes();
  let said = 0;
  for (let at = 0; at < 300; at++) said = times.observe(at % 2 ? 90 : 110, sizeIn, sizeOut, 1);
  expect(said).toBeGreaterThan(90);
  expect(said).toBeLessThan(110);
});
