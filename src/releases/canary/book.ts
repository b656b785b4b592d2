import type { Arm, EvidencePair } from '../../events/contracts.ts';
import { type Evidence, MARKS, type ReleaseArms } from '../contracts.ts';
import { AssignmentTest } from '../statistics/assignment-test.ts';
import { type PairedState, PairedTest } from '../statistics/paired-test.ts';
import type { ReleasePlan } from './contracts.ts';
import { Marked, type MarkedState } from './marked.ts';
import { type SampleState, SessionSample } from './sample.ts';
import { StableHealth, type StableHealthState } from './stable-health.ts';
import { Tally, type TallyState } from './tally.ts';

/** Ratios that are ruled out one after the other where the plan is `auto`, and the shares at which they are. */
export const AUTO_STEPS = [
  { share: 0.01, ratio: 8 },
  { share: 0.05, ratio: 5 },
  { share: 0.1, ratio: 3 },
  { share: 0.25, ratio: 2.5 },
  { share: 0.5, ratio: 1 },
] as const;

/** Sessions with marks, sessions at their first request, and sessions with pairs, that are remembered. */
const MARKED_MAX = 16_384;
const SEEN_MAX = 8192;
const PAIRED_MAX = 8192;
/** Causes of copies that were not compared. */
const SKIPS_MAX = 32;
/** Of the canary's answers, whose times or costs have to be told. */
const MEASURED_MIN = 0.5;
/** Marks of a session's first request are remembered beside those of all its requests. */
const FIRST_SHIFT = 8;

/** Where errors are looked for, and where slowness and cost are: the marks that each metric goes by. */
export const MARKS_OF = {
  errors: ['failed', 'refused'],
  latency: ['slowP95', 'slowP99'],
  cost: ['dearP95'],
} as const;
export type Mark = (typeof MARKS_OF)[keyof typeof MARKS_OF][number];
const ALL_MARKS = Object.values(MARKS_OF).flat();
const ERROR_BITS = MARKS.failed | MARKS.refused;
const NEVER: Settled = { timesMs: Number.POSITIVE_INFINITY, costsMs: Number.POSITIVE_INFINITY };

export interface BookState {
  marked: Record<Mark, MarkedState>;
  quality: PairedState;
  assignment: number[];
  known: SampleState;
  seen: SampleState;
  paired: SampleState;
  arms: Record<Arm, TallyState>;
  stable: StableHealthState;
  counts: { canary: number; baseline: number; pairs: number; sessions: number };
  skipped: Record<string, number>;
}

/** Since when times, and costs, say something of the canary: milliseconds since the epoch; infinity while they do not. */
export interface Settled {
  timesMs: number;
  costsMs: number;
}

/** All that is known of a release from the evidence so far. Everything in it has a bound. */
export class EvidenceBook {
  readonly marked: Record<Mark, Marked>;
  readonly quality: PairedTest;
  readonly assignment: AssignmentTest;
  readonly arms: Record<Arm, Tally>;
  readonly stable: StableHealth;
  /** Sessions at their first request, of those followed; pairs; and about how many sessions the canary met. */
  readonly counts: BookState['counts'];
  readonly skipped: Record<string, number>;
  /** What was frozen, once it was; the machine keeps it. */
  edges: ReleaseArms['edges'];
  readonly #known: SessionSample;
  readonly #seen: SessionSample;
  readonly #paired: SessionSample;

  constructor(plan: ReleasePlan, state?: BookState, edges?: ReleaseArms['edges']) {
    this.edges = edges;
    const bounds = [plan.ratioMax, ...AUTO_STEPS.map(({ ratio }) => Math.max(ratio, plan.ratioMax))];
    this.marked = Object.fromEntries(
      ALL_MARKS.map((mark) => [mark, new Marked(bounds, state?.marked[mark])]),
    ) as Record<Mark, Marked>;
    this.quality = new PairedTest(plan.qualityMargin, state?.quality);
    this.assignment = new AssignmentTest(state?.assignment);
    this.arms = {
      canary: new Tally(state?.arms.canary),
      baseline: new Tally(state?.arms.baseline),
      stable: new Tally(state?.arms.stable),
    };
    this.stable = new StableHealth(state?.stable);
    this.counts = state?.counts ?? { canary: 0, baseline: 0, pairs: 0, sessions: 0 };
    this.skipped = state?.skipped ?? {};
    this.#known = new SessionSample(MARKED_MAX, state?.known);
    this.#seen = new SessionSample(SEEN_MAX, state?.seen);
    this.#paired = new SessionSample(PAIRED_MAX, state?.paired);
  }

  /** Evidence without a broken member. */
  take(evidence: Evidence, settled: Settled): void {
    const { share, arms } = evidence;
    this.arms.canary.add(arms.canary);
    this.arms.baseline.add(arms.baseline);
    this.arms.stable.add(arms.stable);
    this.stable.observe(arms.stable, arms.baseline, evidence.toMs);
    for (const cause in evidence.skipped) {
      if (this.skipped[cause] === undefined && Object.keys(this.skipped).length >= SKIPS_MAX) continue;
      this.skipped[cause] = (this.skipped[cause] ?? 0) + evidence.skipped[cause]!;
    }
    for (const pair of evidence.pairs) this.#pair(pair);
    if (share === 0) return;
    const counted = countedBits(evidence, this.stable.broken ? NEVER : settled);
    // As long as both arms are alike in size, what is true of one under no difference is true of the other by symmetry.
    const alike = share <= 0.5;
    if (share < 1) this.#marks(evidence, alike ? counted : ERROR_BITS);
    this.#firsts(evidence, counted, alike);
  }

  /**
   * Whether the canary's times, or costs, are told at all, of classes that have edges: of at least half of what it answered.
   * What cannot be called slow must not be certified for that.
   */
  measures(metric: 'latency' | 'cost'): boolean {
    const { canary } = this.arms;
    let told = canary.costs.count;
    if (metric === 'latency') {
      told = 0;
      for (const [size, times] of canary.times) if (this.edges?.times[size]) told += times.count;
    }
    return told > 0 && told >= MEASURED_MIN * (canary.requests - canary.failed);
  }

  /** Failures are compared with all of stable; times and costs with baseline, of which half of both falls into the canary. */
  #marks({ marks, share }: Evidence, counted: number): void {
    for (const [session, arm, bits] of marks) {
      const told = bits & (arm === 2 ? ERROR_BITS : counted);
      if (told === 0) continue;
      const fresh = this.#known.take(session, told);
      if (fresh === 0) continue;
      for (const mark of ALL_MARKS) {
        const bit = MARKS[mark];
        if ((fresh & bit) !== 0) this.marked[mark].session(arm === 0, (bit & ERROR_BITS) !== 0 ? share : 0.5);
      }
    }
  }

  #firsts({ firsts, firstsBelow }: Evidence, counted: number, alike: boolean): void {
    const told = Math.max(1, 2 ** 32 / (firstsBelow + 1));
    for (const [session, arm, bits] of firsts) {
      const inCanary = arm === 0;
      if (alike && (bits & counted) !== 0) this.#markedFirst(session, inCanary, bits & counted);
      if (this.#seen.take(session, 1) === 0) continue;
      if (alike) this.assignment.add(inCanary, 0.5);
      this.counts[inCanary ? 'canary' : 'baseline']++;
      if (!inCanary) continue;
      this.counts.sessions += Math.max(told, this.#seen.stands);
      for (const mark of ALL_MARKS) {
        const bit = MARKS[mark];
        if ((counted & bit) === 0) continue;
        this.marked[mark].seen++;
        if ((bits & bit) !== 0) this.marked[mark].marked++;
      }
    }
  }

  #markedFirst(session: number, inCanary: boolean, bits: number): void {
    const fresh = this.#known.take(session, bits << FIRST_SHIFT) >> FIRST_SHIFT;
    if (fresh === 0) return;
    for (const mark of ALL_MARKS) {
      if ((fresh & MARKS[mark]) !== 0) this.marked[mark].first(inCanary, 0.5);
    }
  }

  /** One pair of a session: the turns of a conversation are not independent of one another. */
  #pair({ session, difference }: EvidencePair): void {
    if (this.#paired.take(session, 1) === 0) return;
    this.counts.pairs++;
    this.quality.add(difference);
  }

  toJSON(): BookState {
    return {
      marked: Object.fromEntries(ALL_MARKS.map((mark) => [mark, this.marked[mark].toJSON()])) as Record<
        Mark,
        MarkedState
      >,
      quality: this.quality.toJSON(),
      assignment: this.assignment.toJSON(),
      known: this.#known.toJSON(),
      seen: this.#seen.toJSON(),
      paired: this.#paired.toJSON(),
      arms: {
        canary: this.arms.canary.toJSON(),
        baseline: this.arms.baseline.toJSON(),
        stable: this.arms.stable.toJSON(),
      },
      stable: this.stable.toJSON(),
      counts: this.counts,
      skipped: this.skipped,
    };
  }
}

/** The marks that say something in a batch. */
function countedBits({ fromMs }: Evidence, { timesMs, costsMs }: Settled): number {
  return (
    ERROR_BITS |
    (fromMs >= timesMs ? MARKS.slowP95 | MARKS.slowP99 : 0) |
    (fromMs >= costsMs ? MARKS.dearP95 : 0)
  );
}
