import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { CalibrationBets } from './calibration-bets.ts';

const BAR = 20;

/** Labels until an e-value over the whole life reaches 20, or `max`: what is told is so much more than what comes true. */
function labelsUntilAlarm(seed: number, points: number, max: number): number {
  const random = seededRandom(seed * 104_729 + 7);
  const bets = new CalibrationBets();
  for (let label = 1; label <= max; label++) {
    const p = 0.7 + 0.3 * random.next();
    bets.observe(p, random.next() < p - points ? 1 : 0);
    const { over, under } = bets.lifetime;
    if (over >= BAR || under >= BAR) return label;
  }
  return max;
}

describe('bets on calibration', () => {
  it('alarm falsely no more often than stated, over 20,000 labels each of 200 times', () => {
    const alarms = Array.from({ length: 200 }, (_, seed) => labelsUntilAlarm(seed, 0, 20_000));
    expect(alarms.filter((labels) => labels < 20_000).length / 200).toBeLessThanOrEqual(0.08);
  });

  it('notice overconfidence within 1.2 times the labels of the reference', () => {
    for (const [points, delay] of [
      [0.02, 2611],
      [0.03, 1089],
      [0.05, 395],
      [0.1, 110],
    ] as const) {
      const labels = Array.from({ length: 101 }, (_, seed) => labelsUntilAlarm(seed, points, 20_000));
      expect(labels.sort((a, b) => a - b)[50]!).toBeLessThanOrEqual(1.2 * delay);
    }
  });

  it('say which way, and are the same after they were kept', () => {
    const random = seededRandom(3);
    const bets = new CalibrationBets(0.01);
    for (let label = 0; label < 2000; label++) bets.observe(0.6, random.next() < 0.9 ? 1 : 0);
    expect(bets.direction).toBe('underconfident');
    const kept = new CalibrationBets(0.01);
    kept.restore(JSON.parse(JSON.stringify(bets)));
    expect(kept.lifetime).toEqual(bets.lifetime);
    expect(kept.stakes.evidence).toBe(bets.stakes.evidence);
  });
});
