import type { Random } from '../../kernel/random.ts';
import { greatestGap } from '../statistics/two-samples.ts';
import type { Effect, Shape, Value, Watch } from './contracts.ts';
import { LastValues, packed, unpacked } from './floats.ts';
import { NumericReference } from './numeric-reference.ts';
import { round, VALUES_MIN } from './numeric-shape.ts';
import { Moments, type Projection, project } from './projection.ts';
import { marginsFor, RankBets } from './rank-bets.ts';
import type { StakesState } from './stakes.ts';

/** The longest vector: workers send embeddings projected to no more numbers. */
const VECTOR_MAX = 16;
/** The most rows of a reference. */
const VECTOR_ROWS_MAX = 2000;
const WINDOW = 256;
const WINDOW_MIN = 20;

interface State {
  length?: number;
  moments?: { rows: number; sums: number[]; products: number[] };
  projection?: Projection;
  learned?: string[];
  references?: string[];
  recent: string[];
  bets?: StakesState[];
}

/** One number that the projection gives. */
interface Axis {
  reference: NumericReference;
  bets: RankBets;
  recent: LastValues;
}

/**
 * B8: vectors by a projection that is fitted on the first half of the reference and frozen; the second half gives the ranks
 * that B1 goes by, so that what was fitted is not judged by what it was fitted to.
 */
export class VectorShape implements Shape {
  readonly #half: number;
  #length: number | undefined;
  #moments: Moments | undefined;
  #projection: Projection | undefined;
  #learned: number[][] = [];
  #axes: Axis[] = [];
  watches: readonly Watch[] = [];

  /** `rows`: the most vectors of the reference. */
  constructor(rows: number) {
    this.#half = Math.floor(Math.min(rows, VECTOR_ROWS_MAX) / 2);
  }

  /** Vectors are as long as the first. */
  takes(value: Value): boolean {
    if (!Array.isArray(value) || value.length === 0 || value.length > VECTOR_MAX) return false;
    return (this.#length === undefined || value.length === this.#length) && value.every(Number.isFinite);
  }

  kept(value: Value): Value {
    return value;
  }

  learn(value: Value): void {
    const vector = value as number[];
    this.#length ??= vector.length;
    this.#moments ??= new Moments(vector.length);
    if (!this.#projection && this.#moments.rows < this.#half) {
      this.#moments.add(vector);
      return;
    }
    this.#projection ??= this.#moments.fit();
    if (this.#learned.length < this.#half) this.#learned.push(project(this.#projection, vector));
  }

  freeze(): boolean {
    const enough = this.#learned.length >= VALUES_MIN;
    if (enough)
      this.#begin(
        this.#learned[0]!.map((_, axis) => Float32Array.from(this.#learned, (numbers) => numbers[axis]!)),
      );
    this.#learned = [];
    this.#moments = undefined;
    return enough;
  }

  #begin(references: Float32Array[]): void {
    this.#axes = references.map((values) => ({
      reference: new NumericReference(values),
      bets: new RankBets(marginsFor(values.length)),
      recent: new LastValues(WINDOW),
    }));
    const axes = this.#axes;
    const strongest = () =>
      axes.reduce((best, each) => (each.bets.stakes.evidence > best.bets.stakes.evidence ? each : best));
    this.watches = [
      {
        change: 'distribution',
        weight: 0.8,
        get evidence() {
          return axes.reduce((sum, { bets }) => sum + bets.stakes.evidence, 0) / axes.length;
        },
        get since() {
          return strongest().bets.stakes.since;
        },
        get direction() {
          const at = axes.indexOf(strongest());
          return `${strongest().bets.direction} ${at === axes.length - 1 ? 'distance' : `direction ${at + 1}`}`;
        },
        begin: () => {
          for (const { bets } of axes) bets.stakes.begin();
        },
      },
    ];
  }

  observe(value: Value, random: Random): void {
    if (this.#axes.length === 0) return;
    const numbers = project(this.#projection!, value as number[]);
    this.#axes.forEach(({ reference, bets, recent }, axis) => {
      bets.observe(reference.rank(numbers[axis]!, random.next()));
      recent.push(numbers[axis]!);
    });
  }

  moved(rows: number): number {
    return Math.max(
      0,
      ...this.#axes.map(({ reference, recent }) => greatestGap(recent.last(rows), reference.sorted)),
    );
  }

  effect(rows: number): Effect | undefined {
    const counted = Math.max(rows, WINDOW_MIN);
    if (this.#axes.length === 0 || this.#axes[0]!.recent.last(counted).length < WINDOW_MIN) return undefined;
    return { gap: round(this.moved(counted)) };
  }

  window(): Record<string, number> | undefined {
    const effect = this.effect(WINDOW);
    return effect && { rows: this.#axes[0]!.recent.last(WINDOW).length, gap: effect['gap'] as number };
  }

  toJSON(): State {
    const ofAxes = <Result>(read: (axis: Axis) => Result) => this.#axes.map(read);
    return {
      ...(this.#length !== undefined && { length: this.#length }),
      ...(this.#moments && { moments: { ...this.#moments } }),
      ...(this.#projection && { projection: this.#projection }),
      ...(this.#learned.length > 0 && {
        learned: this.#learned.map((row) => packed(Float32Array.from(row))),
      }),
      ...(this.#axes.length > 0 && {
        references: ofAxes(({ reference }) => packed(reference.sorted)),
        bets: ofAxes(({ bets }) => bets.stakes.toJSON()),
      }),
      recent: ofAxes(({ recent }) => recent.toJSON()),
    };
  }

  restore({ length, moments, projection, learned, references, recent, bets }: State): void {
    this.#length = length;
    if (moments) this.#moments = Object.assign(new Moments(moments.sums.length), moments);
    this.#projection = projection;
    this.#learned = learned?.map((row) => [...unpacked(row)]) ?? [];
    if (references) this.#begin(references.map(unpacked));
    this.#axes.forEach((axis, at) => {
      axis.recent.restore(recent[at]!);
      axis.bets.stakes.restore(bets![at]!);
    });
  }
}
