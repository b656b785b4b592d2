import type { StressSettings } from '../../config/schema/index.ts';
import type { LoadTaskResult } from '../../load/contracts.ts';
import type { Action } from '../contracts.ts';

type Measured = Exclude<LoadTaskResult, { unable: string }>;

/** Answers that there have to be; of fewer than a hundred, what 99 of 100 take is what the slowest took. */
const ANSWERS_MIN = 20;

export interface StressVerdict {
  passed: boolean;
  reason: Action['reason'];
}

/**
 * Whether a backend has shown what it had to. What was not sent for its caps, or did not end in time, counts as failed; too
 * few answers, and memory that cannot be read where there is a cap of it, show nothing. `memoryMost`: bytes, undefined where it
 * cannot be read.
 */
export function judgeStress(
  { p99Max, errorsMax, memoryMax }: StressSettings,
  measured: Measured,
  memoryMost: number | undefined,
): StressVerdict {
  const { intended, ok, failed, dropped, unfinished, times, measuredMs, tokensOut, inflightMost } = measured;
  const bad = failed + dropped + unfinished;
  const errors = intended === 0 ? 1 : bad / intended;
  const figures = {
    requests: intended,
    answered: ok,
    errors: Math.round(errors * 100_000) / 100_000,
    errorsMax,
    ...(times && { p50Ms: round(times.p50), p99Ms: round(times.p99) }),
    p99MaxMs: p99Max,
    perSecond: perSecond(ok, measuredMs),
    tokensPerSecond: perSecond(tokensOut, measuredMs),
    inflight: inflightMost,
    ...(dropped > 0 && { dropped }),
    ...(memoryMost !== undefined && { memoryBytes: memoryMost }),
    ...(memoryMax !== undefined && { memoryMaxBytes: memoryMax }),
  };
  const code = codeOf();
  return { passed: code === 'stress-passed', reason: { code, figures } };

  function codeOf(): string {
    if (errors > errorsMax) return 'stress-errors';
    if (!times || !Number.isFinite(times.p99) || ok < ANSWERS_MIN) return 'stress-too-few';
    if (times.p99 > p99Max) return 'stress-slow';
    if (memoryMax === undefined) return 'stress-passed';
    if (memoryMost === undefined) return 'stress-memory-unknown';
    return memoryMost > memoryMax ? 'stress-memory' : 'stress-passed';
  }
}

function perSecond(count: number, measuredMs: number): number {
  return measuredMs > 0 ? Math.round((count * 10_000) / measuredMs) / 10 : 0;
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
