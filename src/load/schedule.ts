import type { Random } from '../kernel/random.ts';
import type { Distribution } from './distribution.ts';
import type { TraceRow } from './trace.ts';

/** A request as it is meant to be sent. */
export interface Intended {
  /** Milliseconds after the start of the run. */
  atMs: number;
  promptTokens: number;
  outputTokens: number;
}

export type Lengths = () => { promptTokens: number; outputTokens: number };

export function drawn(prompt: Distribution, output: Distribution, random: Random): Lengths {
  return () => ({ promptTokens: prompt.draw(random), outputTokens: output.draw(random) });
}

/** Those of a trace in its order, over and over. */
export function fromTrace(rows: readonly TraceRow[]): Lengths {
  let at = 0;
  return () => lengthsOf(rows[at++ % rows.length]!);
}

/**
 * Arrivals that do not depend on each other, `perSecond` of them on average, without end. Formula: the gaps of a Poisson
 * process are exponential, -ln(1 - u) / rate.
 */
export function* poisson(perSecond: number, lengths: Lengths, random: Random): Generator<Intended> {
  let atMs = 0;
  for (;;) {
    atMs += (-Math.log(1 - random.next()) / perSecond) * 1000;
    yield { atMs, ...lengths() };
  }
}

/** One arrival every 1/perSecond seconds, without end. */
export function* constant(perSecond: number, lengths: Lengths): Generator<Intended> {
  for (let i = 0; ; i++) yield { atMs: (i * 1000) / perSecond, ...lengths() };
}

/** The arrivals and lengths of a trace, `speed` times as fast; one pass. */
export function* replayed(rows: readonly TraceRow[], speed: number): Generator<Intended> {
  for (const row of rows) yield { atMs: row.atMs / speed, ...lengthsOf(row) };
}

/** For a closed loop, whose arrivals follow from its answers: the times are all 0. */
export function* unscheduled(lengths: Lengths): Generator<Intended> {
  for (;;) yield { atMs: 0, ...lengths() };
}

/** No prompt and no answer can be asked for with 0 tokens; such rows count as 1. */
function lengthsOf({ promptTokens, outputTokens }: TraceRow): ReturnType<Lengths> {
  return { promptTokens: Math.max(1, promptTokens), outputTokens: Math.max(1, outputTokens) };
}
