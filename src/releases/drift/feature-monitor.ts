import type { Random } from '../../kernel/random.ts';
import { CategoryShape } from './category-shape.ts';
import type { Change, FeatureType, Finding, Shape, Value, Watch } from './contracts.ts';
import { CycleSample } from './cycle-sample.ts';
import { NumericShape, round } from './numeric-shape.ts';
import { ShareWatch } from './share-watch.ts';
import type { StakesState } from './stakes.ts';
import { VectorShape } from './vector-shape.ts';

export interface FeatureSettings {
  name: string;
  type: FeatureType;
  /** Rows of the reference. */
  rows: number;
  /** Rows without a change after which, on average, a false alarm comes no sooner. */
  targetRunLength: number;
  /** Changes that have moved less of the probability are not told. */
  movedMin: number;
  /** Milliseconds after which traffic repeats itself, and how many such cycles the reference takes; undefined: it does not. */
  cycle?: { lengthMs: number; count: number } | undefined;
}

/** Values of one cycle that are kept for its end. */
const CYCLE_MAX = { numeric: 720, categorical: 720, vector: 160 };

/** However unlikely they are: on fewer rows nothing is told. */
const ROWS_MIN = 20;

/** What is shown of a feature. */
export interface FeatureReport {
  feature: string;
  type: FeatureType;
  /** `empty`: rows without enough values have come, so that only whether values come is watched. */
  state: 'learning' | 'watching' | 'empty';
  /** Rows of the reference, and since it was frozen. */
  referenceRows: number;
  rows: number;
  frozenAtMs: number | undefined;
  /** By what is watched: the evidence, and the bar at which it alarms. */
  watches: { change: Change; evidence: number; bar: number }[];
  /** Findings whose effect was too small to tell. */
  small: number;
  window: Record<string, number> | undefined;
}

interface State {
  learned: number;
  nulls: number;
  others: number;
  cycles: number;
  frozenAtMs?: number;
  watched?: boolean;
  rows: number;
  small: number;
  sample?: unknown;
  shape: unknown;
  schema?: StakesState[];
}

/**
 * One feature of what a backend answers on a route: its first rows are the reference, which is frozen then, and every row
 * after them is held against it. What is no value, or one of another type, is watched by itself.
 */
export class FeatureMonitor {
  readonly settings: FeatureSettings;
  readonly #shape: Shape;
  readonly #sample: CycleSample | undefined;
  #learned = 0;
  #nulls = 0;
  #others = 0;
  #cycles = 0;
  #frozenAtMs: number | undefined;
  /** The reference had values enough. */
  #watched = false;
  #rows = 0;
  #small = 0;
  #nullWatch: ShareWatch | undefined;
  #typeWatch: ShareWatch | undefined;
  #watches: readonly Watch[] = [];

  constructor(settings: FeatureSettings) {
    this.settings = settings;
    const { type, rows, cycle } = settings;
    const shapes = { numeric: NumericShape, categorical: CategoryShape, vector: VectorShape };
    this.#shape = new shapes[type](rows);
    this.#sample =
      cycle && new CycleSample(cycle.lengthMs, Math.min(CYCLE_MAX[type], Math.ceil(rows / cycle.count)));
  }

  /** What has changed, where the evidence says so with this row. Of several things the first. */
  observe(value: Value, wallMs: number, random: Random): Finding | undefined {
    if (!this.#sample) return this.#take(value, wallMs, random);
    const ended = this.#sample.take(this.#kept(value), wallMs, random);
    if (!ended) return undefined;
    let found: Finding | undefined;
    for (const each of ended) found ??= this.#take(each, wallMs, random);
    if (!this.isFrozen && ++this.#cycles >= this.settings.cycle!.count) this.#freeze(wallMs);
    return found;
  }

  /** What is of another type is kept as no more than that. */
  #kept(value: Value): Value {
    if (value === null || value === undefined) return null;
    return this.#shape.takes(value) ? this.#shape.kept(value) : [];
  }

  /** Rows that were held against the reference. */
  get rows(): number {
    return this.#rows;
  }

  get isFrozen(): boolean {
    return this.#frozenAtMs !== undefined;
  }

  #take(value: Value, wallMs: number, random: Random): Finding | undefined {
    const isNull = value === null || value === undefined;
    const takes = !isNull && this.#shape.takes(value);
    if (this.#frozenAtMs === undefined) {
      this.#learned++;
      if (isNull) this.#nulls++;
      else if (!takes) this.#others++;
      else this.#shape.learn(value);
      if (!this.#sample && this.#learned >= this.settings.rows) this.#freeze(wallMs);
      return undefined;
    }
    this.#rows++;
    this.#nullWatch!.observe(isNull);
    if (!isNull) this.#typeWatch!.observe(!takes);
    if (takes && this.#watched) this.#shape.observe(value, random);
    return this.#judge();
  }

  #freeze(wallMs: number): void {
    this.#frozenAtMs = wallMs;
    this.#watched = this.#shape.freeze();
    this.#watch();
  }

  #watch(): void {
    this.#nullWatch = new ShareWatch('nulls', 0.1, this.#nulls, this.#learned, { less: true });
    this.#typeWatch = new ShareWatch('type', 0.1, this.#others, this.#learned - this.#nulls || 1);
    this.#watches = [this.#nullWatch, this.#typeWatch, ...(this.#watched ? this.#shape.watches : [])];
  }

  #judge(): Finding | undefined {
    const { name, targetRunLength, movedMin } = this.settings;
    for (const watch of this.#watches) {
      const bar = targetRunLength / watch.weight;
      const { evidence } = watch;
      if (evidence < bar || watch.since < ROWS_MIN) continue;
      const { change, direction, since } = watch;
      const moved = change === 'distribution' ? this.#shape.moved(since) : 1;
      const effect = { ...this.#shape.effect(since) };
      watch.begin();
      if (moved >= movedMin)
        return {
          feature: name,
          change,
          direction,
          evidence: round(evidence),
          bar: Math.round(bar),
          since,
          moved: round(moved),
          effect,
        };
      this.#small++;
    }
    return undefined;
  }

  report(random: Random): FeatureReport {
    const { name, type, targetRunLength } = this.settings;
    return {
      feature: name,
      type,
      state: !this.isFrozen ? 'learning' : this.#watched ? 'watching' : 'empty',
      referenceRows: this.#learned,
      rows: this.#rows,
      frozenAtMs: this.#frozenAtMs,
      watches: this.#watches.map(({ change, evidence, weight }) => ({
        change,
        evidence: round(evidence),
        bar: Math.round(targetRunLength / weight),
      })),
      small: this.#small,
      window: this.#watched ? this.#shape.window(random) : undefined,
    };
  }

  toJSON(): State {
    return {
      learned: this.#learned,
      nulls: this.#nulls,
      others: this.#others,
      cycles: this.#cycles,
      ...(this.#frozenAtMs !== undefined && { frozenAtMs: this.#frozenAtMs, watched: this.#watched }),
      rows: this.#rows,
      small: this.#small,
      ...(this.#sample && { sample: this.#sample.toJSON() }),
      shape: this.#shape.toJSON(),
      ...(this.#nullWatch && { schema: [this.#nullWatch.toJSON(), this.#typeWatch!.toJSON()] }),
    };
  }

  restore(state: State): void {
    this.#learned = state.learned;
    this.#nulls = state.nulls;
    this.#others = state.others;
    this.#cycles = state.cycles;
    this.#rows = state.rows;
    this.#small = state.small;
    this.#shape.restore(state.shape as never);
    if (state.sample) this.#sample?.restore(state.sample as never);
    if (state.frozenAtMs === undefined) return;
    this.#frozenAtMs = state.frozenAtMs;
    this.#watched = state.watched === true;
    this.#watch();
    this.#nullWatch!.restore(state.schema![0]!);
    this.#typeWatch!.restore(state.schema![1]!);
  }
}
