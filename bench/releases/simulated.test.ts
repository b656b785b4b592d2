import { describe, expect, it } from 'vitest';
import { CASES, isAbort } from './cases.ts';
import { type ReleaseEnd, simulateRelease } from './simulated.ts';

/** What a thousand releases of each case show (bench/releases.ts), by a few of fixed seeds. */
function play(name: string, requestsOfSession: number, runs: number): ReleaseEnd[] {
  const settings = CASES[name]!.settings(requestsOfSession);
  return Array.from({ length: runs }, (_, seed) => simulateRelease({ ...settings, seed: seed + 1 }));
}

describe('Simulated releases', { timeout: 120_000 }, () => {
  it.each([
    ['equal', 1, 30],
    ['equal', 20, 10],
    ['no-errors', 1, 10],
    ['auto', 5, 10],
    ['weights-equal', 5, 10],
  ])('%s, %d requests a session: promoted, but for a chance of a false abort', (name, length, runs) => {
    const ends = play(name, length, runs);
    // At 5 % each, one in so few is chance; more are a fault.
    expect(ends.filter(isAbort).length).toBeLessThanOrEqual(Math.ceil(0.1 * runs));
    expect(ends.filter(({ how }) => how === 'promoted').length).toBeGreaterThanOrEqual(0.9 * runs);
  });

  it.each([
    ['errors', 1, 30],
    ['errors', 20, 10],
    ['slow', 1, 10],
    ['slow', 20, 10],
    ['dear', 5, 10],
    ['weights-errors', 5, 10],
    ['weights-slow', 1, 10],
  ])('%s, %d requests a session: aborted for harm', (name, length, runs) => {
    expect(play(name, length, runs).filter((end) => !isAbort(end))).toEqual([]);
  });

  it('errors of 2 % instead of 1 % take a median of 1,500 canary requests at most', () => {
    const requests = play('errors', 1, 41).map(({ canaryRequests }) => canaryRequests);
    expect(requests.sort((a, b) => a - b)[20]).toBeLessThanOrEqual(1500);
  });

  it.each(['idle', 'silent', 'untimed', 'nan'])(
    '%s: never promoted, held to the deadline with its reason',
    (name) => {
      for (const { how, reason } of play(name, 1, 2)) {
        expect(how).toBe('rolled-back');
        expect(reason.code).toBe('release-deadline-passed');
        expect(reason.figures['for']).toMatch(
          /^release-(edges-wanting|arms-skewed|step-unripe|evidence-broken|certificates-wanting|evidence-leans)$/,
        );
      }
    },
  );
});
