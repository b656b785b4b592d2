import type { ReleaseArms } from '../contracts.ts';
import type { Tally } from './tally.ts';

/** Requests of stable that edges are frozen from, of all classes and of each: a p99 of fewer is chance. */
const EDGES_REQUESTS_MIN = 1000;
const CLASS_REQUESTS_MIN = 200;
/** Share of the requests whose class has edges: what is of a class without them is never called slow. */
const COVERED_MIN = 0.9;

/**
 * What stable was seen to need, by size class: what takes longer, or costs more, is marked from then on. Undefined where too
 * little was seen. That the true share beyond an edge is not quite 5 or 1 % does no harm, as both arms are held to the same.
 */
export function edgesOf(stable: Tally): NonNullable<ReleaseArms['edges']> | undefined {
  let all = 0;
  let covered = 0;
  const times: Record<string, { p95: number; p99: number }> = {};
  for (const [size, histogram] of stable.times) {
    all += histogram.count;
    if (histogram.count < CLASS_REQUESTS_MIN) continue;
    covered += histogram.count;
    times[size] = { p95: histogram.quantile(0.95), p99: histogram.quantile(0.99) };
  }
  if (all < EDGES_REQUESTS_MIN || covered < COVERED_MIN * all) return undefined;
  const { costs } = stable;
  return { times, ...(costs.count < EDGES_REQUESTS_MIN ? {} : { cost: costs.quantile(0.95) }) };
}
