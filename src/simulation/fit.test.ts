import { describe, expect, it } from 'vitest';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { Accelerator } from './accelerator/accelerator.ts';
import type { AcceleratorProfile } from './accelerator/step.ts';
import { fitProfile, type Measured } from './fit.ts';

const TRUTH: AcceleratorProfile = {
  prefillTokensPerSecond: 900,
  decodeTokensPerSecond: 35,
  batchMax: 4,
  kvTokensMax: 1e9,
  coldStart: 0,
  jitter: 0.2,
  faults: { errorRate: 0, resetRate: 0, stallRate: 0 },
};

/** What a measurement of an engine with this profile would bring. */
function measure(profile: AcceleratorProfile, perSecond: number, count: number, seed: number): Measured[] {
  const time = new VirtualTime();
  const random = seededRandom(seed);
  const accelerator = new Accelerator(profile, time, time, random);
  const measured: Measured[] = [];
  let atMs = 0;
  for (let i = 0; i < count; i++) {
    atMs += (-Math.log(1 - random.next()) / perSecond) * 1000;
    const job = {
      promptTokens: 20 + Math.floor(random.next() * 200),
      outputTokens: 5 + Math.floor(random.next() * 50),
    };
    const mine: Measured = { atMs, ...job, firstTokenMs: undefined, totalMs: 0 };
    measured.push(mine);
    time.set(atMs, () => {
      accelerator.submit(job, {
        firstOnly: true,
        onToken: () => {
          if (i % 2 === 0) mine.firstTokenMs = time.mono() - mine.atMs;
        },
        onEnd: () => {
          mine.totalMs = time.mono() - mine.atMs;
        },
        onFault: () => {},
      });
    });
  }
  time.run(10_000_000);
  return measured;
}

const p99 = (values: Measured[]) =>
  values.map(({ totalMs }) => totalMs).sort((a, b) => a - b)[Math.floor(0.99 * values.length)]!;

describe('a fit', () => {
  const { profile, errors } = fitProfile(measure(TRUTH, 1.2, 300, 1));

  it('finds the rates and the batch of what was measured at one load', () => {
    expect(profile.batchMax).toBe(4);
    expect(Math.abs(profile.prefillTokensPerSecond / 900 - 1)).toBeLessThan(0.1);
    expect(Math.abs(profile.decodeTokensPerSecond / 35 - 1)).toBeLessThan(0.05);
    expect(Math.abs(errors.p99)).toBeLessThan(0.05);
  });

  it.each([0.4, 0.8, 1.6])('tells the p99 at %d requests a second within a tenth', (perSecond) => {
    const real = p99(measure(TRUTH, perSecond, 400, 7));
    const told = p99(measure({ ...profile, kvTokensMax: 1e9 }, perSecond, 400, 7));
    expect(Math.abs(told / real - 1)).toBeLessThan(0.1);
  });

  it('keeps to the batch that is known', () => {
    expect(fitProfile(measure(TRUTH, 0.5, 60, 3), { batchMax: 4 }).profile.batchMax).toBe(4);
  });

  it('finds an engine that batches in vain, in small steps', () => {
    const slow = { ...TRUTH, prefillTokensPerSecond: 180, decodeTokensPerSecond: 60, jitter: 0.05 };
    const truth = { ...slow, decodeTokensPerSecondMax: 70, stepTokensMax: 32 };
    const found = fitProfile(measure(truth, 0.3, 200, 5), { batchMax: 4 }).profile;
    expect(found.stepTokensMax).toBe(32);
    expect(Math.abs(found.prefillTokensPerSecond / 180 - 1)).toBeLessThan(0.05);
    expect(Math.abs(found.decodeTokensPerSecondMax! / 70 - 1)).toBeLessThan(0.1);
  });
});
