import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { coldStart, type StartInput, startLeftMs } from './index.ts';

const starting = { state: 'starting', startingMs: 0, expectedMs: 3000, deadlineMs: 2000 } as const;
const decide = (input: Partial<StartInput>) =>
  coldStart.decide({ ...starting, ...input }, 0, seededRandom(1));

test('a request is held for a start that its deadline leaves time for, and for no other', () => {
  expect(decide({})).toEqual({
    choice: false,
    reason: {
      code: 'start-too-long',
      figures: { state: 'starting', startingMs: 0, expectedMs: 3000, leftMs: 3000, deadlineMs: 2000 },
    },
  });
  expect(decide({ startingMs: 999 }).choice).toBe(false);
  expect(decide({ startingMs: 1000 })).toMatchObject({ choice: true, reason: { code: 'held-for-start' } });
});

test('what waits to be started again is reckoned from then', () => {
  expect(startLeftMs({ state: 'starting', startingMs: -8000, expectedMs: 3000 })).toBe(11_000);
});

test('one that is overdue is expected to be late once more by what it is late already', () => {
  expect(startLeftMs({ state: 'starting', startingMs: 3500, expectedMs: 3000 })).toBe(500);
  expect(startLeftMs({ state: 'starting', startingMs: 60_000, expectedMs: 0 })).toBe(60_000);
});

test('one that is idle takes a whole start, one that runs none', () => {
  expect(startLeftMs({ state: 'idle', startingMs: 0, expectedMs: 3000 })).toBe(3000);
  expect(startLeftMs({ state: 'running', startingMs: 0, expectedMs: 3000 })).toBe(0);
  expect(decide({ state: 'unknown', expectedMs: 0 }).choice).toBe(true);
});

test('nobody is held for a download', () => {
  expect(decide({ state: 'fetching', startingMs: 20_000, deadlineMs: 600_000 })).toMatchObject({
    choice: false,
    reason: { code: 'start-too-long', figures: { leftMs: 20_000 } },
  });
});

test('nobody is held for one that keeps dying: the time of its next start is told', () => {
  expect(decide({ state: 'failing', startingMs: -8000, deadlineMs: 600_000 })).toMatchObject({
    choice: false,
    reason: { code: 'start-too-long', figures: { leftMs: 11_000 } },
  });
});

test('more time never turns a request away', () => {
  const ms = fc.integer({ min: 0, max: 600_000 });
  fc.assert(
    fc.property(ms, ms, ms, ms, (startingMs, expectedMs, deadlineMs, more) => {
      const before = decide({ startingMs, expectedMs, deadlineMs }).choice;
      const after = decide({ startingMs, expectedMs, deadlineMs: deadlineMs + more }).choice;
      expect(after || !before).toBe(true);
    }),
  );
});
