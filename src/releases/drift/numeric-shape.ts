import type { Random } from '../../kernel/random.ts';
import { jensenShannon, psi, psiCritical, wasserstein } from '../statistics/shifts.ts';
import { greatestGap, kolmogorovSmirnov, mannWhitney } from '../statistics/two-samples.ts';
import type { Effect, Shape, Value, Watch } from './contracts.ts';
import { LastValues, packed, unpacked } from './floats.ts';
import { NumericReference } from './numeric-reference.ts';
import { marginsFor, RankBets } from './rank-bets.ts';
import { ShareWatch } from './share-watch.ts';
import type { StakesState } from './stakes.ts';

/** Values without which a reference says nothing. */
export const VALUES_MIN = 100;
/** The last values that a change is measured by. */
export const WINDOW = 512;
/** Values without which a window is not compared. */
const WINDOW_MIN = 20;
const BINS = 10;
/** Windows drawn of the reference itself, to see what a window of that size shows of no change. */
const NULL_DRAWS = 40;

interface State {
  learned?: string;
  reference?: string;
  recent: string;
  last?: number;
  bets?: StakesState;
  constancy?: StakesState;
}

/** Numbers: B1 on their ranks, and whether they vary. */
export class NumericShape implements Shape {
  #learned: Float32Array | undefined;
  #count = 0;
  #reference: NumericReference | undefined;
  #bets: RankBets | undefined;
  #constancy: ShareWatch | undefined;
  #last: number | undefined;
  readonly #recent = new LastValues(WINDOW);
  watches: readonly Watch[] = [];

  /** `rows`: the most values of the reference. */
  constructor(rows: number) {
    this.#learned = new Float32Array(rows);
  }

  takes(value: Value): boolean {
    return typeof value === 'number' && Number.isFinite(value);
  }

  kept(value: Value): Value {
    return value;
  }

  learn(value: Value): void {
    if (this.#learned && this.#count < this.#learned.length) this.#learned[this.#count++] = value as number;
  }

  freeze(): boolean {
    const learned = this.#learned!.subarray(0, this.#count);
    this.#learned = undefined;
    if (learned.length < VALUES_MIN) return false;
    this.#begin(new NumericReference(learned));
    return true;
  }

  #begin(reference: NumericReference): void {
    this.#reference = reference;
    const bets = new RankBets(marginsFor(reference.rows));
    this.#bets = bets;
    const { rows } = reference;
    this.#constancy = reference.isConstant
      ? new ShareWatch('varying', 0.1, 0, rows)
      : new ShareWatch('constant', 0.1, Math.round(reference.commonest * rows), rows);
    this.watches = [
      {
        change: 'distribution',
        weight: 0.7,
        get evidence() {
          return bets.stakes.evidence;
        },
        get since() {
          return bets.stakes.since;
        },
        get direction() {
          return bets.direction;
        },
        begin: () => bets.stakes.begin(),
      },
      this.#constancy,
    ];
  }

  observe(value: Value, random: Random): void {
    const reference = this.#reference;
    if (!reference) return;
    const number = Math.fround(value as number);
    this.#bets!.observe(reference.rank(number, random.next()));
    // Of what varied: that it is what it was the row before. The most frequent value bounds how often that happens by chance.
    const happened = reference.isConstant ? number !== reference.sorted[0] : number === this.#last;
    this.#constancy!.observe(happened);
    this.#last = number;
    this.#recent.push(number);
  }

  moved(rows: number): number {
    const recent = this.#recent.last(rows);
    if (!this.#reference || recent.length === 0) return 0;
    return this.#reference.isConstant
      ? recent.filter((value) => value !== this.#reference!.sorted[0]).length / recent.length
      : greatestGap(recent, this.#reference.sorted);
  }

  effect(rows: number): Effect | undefined {
    const recent = this.#recent.last(Math.max(rows, WINDOW_MIN));
    const reference = this.#reference;
    if (!reference || recent.length < WINDOW_MIN) return undefined;
    const middle = recent.slice().sort()[recent.length >> 1]!;
    return {
      medianBefore: reference.quantile(0.5),
      median: middle,
      superiority: round(mannWhitney(recent, reference.sorted).superiority),
      gap: round(greatestGap(recent, reference.sorted)),
    };
  }

  window(random: Random): Record<string, number> | undefined {
    const recent = this.#recent.last(WINDOW);
    const reference = this.#reference;
    if (!reference || recent.length < WINDOW_MIN) return undefined;
    const { distance, p } = kolmogorovSmirnov(recent, reference.sorted);
    const nulls = Array.from({ length: NULL_DRAWS }, () => {
      const drawn = recent.map(() => reference.sorted[Math.floor(random.next() * reference.rows)]!);
      return wasserstein(drawn, reference.sorted);
    });
    const edges = distinct(Array.from({ length: BINS - 1 }, (_, i) => reference.quantile((i + 1) / BINS)));
    const [before, now] = [sharesBetween(edges, reference.sorted), sharesBetween(edges, recent)];
    return {
      rows: recent.length,
      kolmogorovSmirnov: round(distance),
      kolmogorovSmirnovP: round(p),
      mannWhitneyP: round(mannWhitney(recent, reference.sorted).asymptotic),
      wasserstein: round(wasserstein(recent, reference.sorted)),
      wassersteinUnchanged: round(nulls.sort((a, b) => a - b)[Math.ceil(0.95 * NULL_DRAWS) - 1]!),
      psi: round(psi(before, now)),
      psiCritical: round(psiCritical(before.length, 0.05, reference.rows, recent.length)),
      jensenShannon: round(jensenShannon(before, now)),
    };
  }

  toJSON(): State {
    return {
      ...(this.#learned && { learned: packed(this.#learned.subarray(0, this.#count)) }),
      ...(this.#reference && { reference: packed(this.#reference.sorted) }),
      recent: this.#recent.toJSON(),
      ...(this.#last !== undefined && { last: this.#last }),
      ...(this.#bets && { bets: this.#bets.stakes.toJSON(), constancy: this.#constancy!.toJSON() }),
    };
  }

  restore({ learned, reference, recent, last, bets, constancy }: State): void {
    if (learned === undefined) this.#learned = undefined;
    else for (const value of unpacked(learned)) this.learn(value);
    if (reference !== undefined) this.#begin(new NumericReference(unpacked(reference)));
    this.#recent.restore(recent);
    this.#last = last;
    if (bets) this.#bets?.stakes.restore(bets);
    if (constancy) this.#constancy?.restore(constancy);
  }
}

function sharesBetween(edges: readonly number[], values: Float32Array): number[] {
  const counts = Array.from({ length: edges.length + 1 }, () => 0);
  for (const value of values) {
    const bin = edges.findIndex((edge) => value <= edge);
    counts[bin < 0 ? edges.length : bin]! += 1 / values.length;
  }
  return counts;
}

const distinct = (values: number[]) => [...new Set(values)];

/** Six digits are enough to read. */
export const round = (value: number) => Number(value.toPrecision(6));
