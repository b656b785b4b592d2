import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { brier, calibrated, expectedCalibrationError, isotonic } from './calibration.ts';

const P = [0.95, 0.85, 0.65, 0.75, 0.55, 0.9];
const RIGHT = [1, 1, 0, 1, 1, 0];

describe('calibration', () => {
  it('gives the vectors of the calibration error and of Brier', () => {
    expect(expectedCalibrationError(P, RIGHT, 10)).toBeCloseTo(0.3916666667, 10);
    expect(brier(P, RIGHT)).toBeCloseTo(0.25375, 12);
  });

  it.each([
    [100, 0.089],
    [1000, 0.028],
    [20_000, 0.006],
  ])('shows the error of a perfect model, which is not 0: of %d answers %f', (rows, told) => {
    const random = seededRandom(7);
    let sum = 0;
    for (let draw = 0; draw < 40; draw++) {
      const p = Array.from({ length: rows }, () => (1 + random.next()) / 2);
      const right = p.map((each) => (random.next() < each ? 1 : 0));
      sum += expectedCalibrationError(p, right, 15);
    }
    expect(Math.abs(sum / 40 / told - 1)).toBeLessThan(0.15);
  });

  it('never falls, keeps the mean, and learns what overconfident scores stand for', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(1)), {
          minLength: 1,
          maxLength: 600,
        }),
        (rows) => {
          const { scores, probabilities } = isotonic(
            rows.map(([score]) => score),
            rows.map(([, right]) => right),
          );
          expect(scores.length).toBeLessThanOrEqual(200);
          for (let i = 1; i < scores.length; i++) {
            expect(scores[i]!).toBeGreaterThan(scores[i - 1]!);
            expect(probabilities[i]!).toBeGreaterThan(probabilities[i - 1]!);
          }
        },
      ),
    );
    const random = seededRandom(8);
    const scores = Array.from({ length: 5000 }, () => random.next());
    const fitted = isotonic(
      scores,
      scores.map((score) => (random.next() < score / 2 ? 1 : 0)),
    );
    for (const score of [0.2, 0.5, 0.9])
      expect(Math.abs(calibrated(fitted, score) - score / 2)).toBeLessThan(0.1);
  });
});
