import {
  type Arm,
  type ArmEvidence,
  type Evidence,
  type EvidencePair,
  MARKS,
} from '../../events/contracts.ts';
import { costBucket, timeBucket } from '../../kernel/buckets.ts';
import type { Exchange } from '../exchange.ts';
import { tokensUsed } from '../quota/charge.ts';
import { costOf, gaveUpAfter, judge, timeOf } from './judge.ts';
import type { RouteRelease } from './route-release.ts';
import { SmallestHashes } from './smallest-hashes.ts';

/** Sessions that one batch tells; of more it tells those of the smallest hashes. */
const FIRSTS_MAX = 250;
const MARKS_MAX = 500;
/** Answers to copies that one batch tells; more are counted as skipped, for `too-many`. */
const PAIRS_MAX = 250;

const ARMS: readonly Arm[] = ['canary', 'baseline', 'stable'];

interface Marked {
  arm: 0 | 1 | 2;
  marks: number;
}

/** What was seen of a route under release on one snapshot, until it is told. */
export class EvidenceBatch {
  readonly #release: RouteRelease;
  readonly #fromMs: number;
  readonly #arms = { canary: new ArmTally(), baseline: new ArmTally(), stable: new ArmTally() };
  readonly #firsts = new SmallestHashes<Marked>(FIRSTS_MAX);
  readonly #marks = new SmallestHashes<Marked>(MARKS_MAX);
  readonly #pairs: EvidencePair[] = [];
  readonly #skipped = new Map<string, number>();

  constructor(release: RouteRelease, wallMs: number) {
    this.#release = release;
    this.#fromMs = wallMs;
  }

  /**
   * Takes in a request of it that is over. `isFirst`: whether its session was not seen before, asked only where that counts.
   * Gives back whether it failed.
   */
  add(x: Exchange, now: number, isFirst: () => boolean): boolean {
    const verdict = judge(x);
    if (verdict === undefined) return false;
    const { arm, session, sizeClass } = x.armed!;
    const tally = this.#arms[arm];
    tally.requests++;
    if (verdict === MARKS.failed) tally.failed++;
    const timeMs = timeOf(x, now);
    const cost = costOf(x);
    tally.used(x, cost);
    // Stable is measured to find the edges; later it would only fill the ledger.
    if (arm !== 'stable' || this.#release.arms.edges === undefined) tally.measured(sizeClass, timeMs, cost);
    const marks =
      verdict | (arm === 'stable' ? 0 : this.#beyond(sizeClass, timeMs ?? gaveUpAfter(x, now), cost));
    const number = ARMS.indexOf(arm) as 0 | 1 | 2;
    if (marks !== 0)
      this.#marks.put(session, { arm: number, marks: marks | (this.#marks.get(session)?.marks ?? 0) });
    if (arm !== 'stable' && isFirst()) this.#firsts.put(session, { arm: number, marks });
    return verdict === MARKS.failed;
  }

  pair(pair: EvidencePair): void {
    if (this.#pairs.length < PAIRS_MAX) this.#pairs.push(pair);
    else this.skipped('too-many');
  }

  skipped(cause: string): void {
    this.#skipped.set(cause, (this.#skipped.get(cause) ?? 0) + 1);
  }

  read(worker: number, wallMs: number): Evidence {
    const { arms, route, snapshot } = this.#release;
    const firsts = this.#firsts.read();
    const marks = this.#marks.read();
    const { canary, baseline, stable } = this.#arms;
    return {
      release: arms.id,
      route,
      worker,
      snapshot,
      share: arms.share,
      fromMs: this.#fromMs,
      toMs: wallMs,
      arms: { canary: canary.read(), baseline: baseline.read(), stable: stable.read() },
      firsts: firsts.entries.map(([session, { arm, marks }]) => [session, arm as 0 | 1, marks]),
      marks: marks.entries.map(([session, { arm, marks }]) => [session, arm, marks]),
      firstsBelow: firsts.below,
      marksBelow: marks.below,
      pairs: this.#pairs,
      skipped: Object.fromEntries(this.#skipped),
    };
  }

  /** What it took beyond the edges that are frozen. */
  #beyond(sizeClass: string, timeMs: number | undefined, cost: number | undefined): number {
    const { edges } = this.#release.arms;
    const edge = edges?.times[sizeClass];
    let marks = 0;
    if (edge && timeMs !== undefined) {
      if (timeMs > edge.p95) marks |= MARKS.slowP95;
      if (timeMs > edge.p99) marks |= MARKS.slowP99;
    }
    if (edges?.cost !== undefined && cost !== undefined && cost > edges.cost) marks |= MARKS.dearP95;
    return marks;
  }
}

type Counts = Map<number, number>;

class ArmTally {
  requests = 0;
  failed = 0;
  #tokensIn = 0;
  #tokensOut = 0;
  #cost = 0;
  readonly #times = new Map<string, Counts>();
  readonly #costs: Counts = new Map();

  used(x: Exchange, cost = 0): void {
    const tokens = tokensUsed(x);
    this.#tokensIn += tokens?.in ?? 0;
    this.#tokensOut += tokens?.out ?? 0;
    this.#cost += cost;
  }

  measured(sizeClass: string, timeMs: number | undefined, cost: number | undefined): void {
    if (cost !== undefined) count(this.#costs, costBucket(cost));
    if (timeMs === undefined) return;
    let times = this.#times.get(sizeClass);
    if (!times) {
      times = new Map();
      this.#times.set(sizeClass, times);
    }
    count(times, timeBucket(timeMs));
  }

  read(): ArmEvidence {
    return {
      requests: this.requests,
      failed: this.failed,
      tokensIn: this.#tokensIn,
      tokensOut: this.#tokensOut,
      cost: this.#cost,
      times: Object.fromEntries([...this.#times].map(([sizeClass, counts]) => [sizeClass, sorted(counts)])),
      costs: sorted(this.#costs),
    };
  }
}

function count(counts: Counts, bucket: number): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
}

function sorted(counts: Counts): [bucket: number, count: number][] {
  return [...counts].sort(([a], [b]) => a - b);
}
