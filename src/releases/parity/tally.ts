import { FlipsGate } from '../statistics/flips-gate.ts';
import { hazard, mcnemar, rateAtMost } from '../statistics/paired-answers.ts';
import { sorted } from '../statistics/shifts.ts';
import type { GoldenAnswer } from './answers.ts';
import { type Comparison, compare } from './comparing.ts';
import type { ParityFigures, ParityReason, ParityVerdict } from './contracts.ts';
import { decide } from './decisions.ts';
import type { GoldenPrompt } from './golden.ts';
import { type Screened, scoreKind } from './screening.ts';

export interface ParityTerms {
  /** The bound of flips beyond the floor, 0 to 0.5. */
  flipsMax: number;
  /** The probability of a false certificate, and of a false rejection. */
  alpha: number;
}

/** Flips that are listed one by one. */
const EXAMPLES_MAX = 20;
const EXAMPLE_CHARS_MAX = 200;
/** The share of the bound that the floor may be: what a reference differs from itself by is forgiven the other. */
const FLOOR_SHARE_MAX = 0.5;

interface Flip {
  prompt: GoldenPrompt;
  comparison: Comparison;
}

/** What is known of two backends while golden prompts come in, one after the other. Pure. */
export class ParityTally {
  readonly gate: FlipsGate;
  readonly #alpha: number;
  readonly #flips: Flip[] = [];
  readonly #deltas = new Map<string, number>();
  readonly #divergences: number[] = [];
  readonly #variations: number[] = [];
  readonly #labelled = { prompts: 0, lost: 0, won: 0, referenceRight: 0, backendRight: 0 };
  readonly #skipped: Record<string, number> = {};
  #sameTop = 0;
  #exposed = 0;
  #positions: number[] = [];
  #screened: Screened | undefined;
  #samples: { mmd2: number; p: number; tokensAlike: number } | undefined;

  constructor({ flipsMax, alpha }: ParityTerms) {
    this.gate = new FlipsGate(flipsMax, alpha);
    this.#alpha = alpha;
  }

  /** `again` is the reference's own answer at another batch size: what it differs by is the floor. */
  observe(prompt: GoldenPrompt, reference: GoldenAnswer, again: GoldenAnswer, backend: GoldenAnswer): void {
    const floor = compare(prompt, reference, again);
    const found = compare(prompt, reference, backend);
    this.gate.observe(found.flip, floor.flip);
    const kind = scoreKind(prompt);
    this.#deltas.set(kind, Math.max(this.#deltas.get(kind) ?? 0, floor.delta ?? 0));
    this.#exposed += found.exposed;
    if (found.position !== undefined) this.#positions.push(found.position);
    for (const { divergence, variation, sameTop } of found.distances) {
      this.#divergences.push(divergence);
      this.#variations.push(variation);
      if (sameTop) this.#sameTop++;
    }
    if (found.flip) this.#flips.push({ prompt, comparison: found });
    this.judge(prompt, reference, backend);
  }

  /** Whether both have it right, where a label tells. */
  judge({ label, decision }: GoldenPrompt, reference: GoldenAnswer, backend: GoldenAnswer): void {
    if (label === undefined) return;
    const was = decide(decision, reference).decision === label;
    const is = decide(decision, backend).decision === label;
    const labelled = this.#labelled;
    labelled.prompts++;
    if (was) labelled.referenceRight++;
    if (is) labelled.backendRight++;
    if (was && !is) labelled.lost++;
    if (is && !was) labelled.won++;
  }

  /** What is known so far of how sure the reference is. */
  screened(screened: Screened): void {
    this.#screened = screened;
  }

  skip(cause: string): void {
    this.#skipped[cause] = (this.#skipped[cause] ?? 0) + 1;
  }

  /** Prompts that were not compared, besides those of which the reference alone had no answer before. */
  get skipped(): number {
    return Object.values(this.#skipped).reduce((sum, count) => sum + count, 0);
  }

  sampled(found: { mmd2: number; p: number; tokensAlike: number }): void {
    this.#samples = found;
  }

  /** Whether more prompts can change nothing. Labelled ones are all asked, for harm shows late. */
  get decided(): boolean {
    const { verdict } = this.gate;
    if (verdict === 'certified') return !this.#isFloorTooHigh && this.#labelled.prompts === 0;
    return verdict === 'rejected';
  }

  /** A certificate beside such a floor would say little. More prompts may show that it is less. */
  get #isFloorTooHigh(): boolean {
    const { floorFlips, prompts, max } = this.gate;
    return floorFlips > FLOOR_SHARE_MAX * max * prompts;
  }

  /** McNemar's exact test is looked at once, here: when prompts end does not depend on which side of a pair has it right. */
  get verdict(): { verdict: ParityVerdict; reason: ParityReason } {
    const flips = this.gate.verdict;
    if (flips === 'rejected') return { verdict: 'rejected', reason: 'flips-above-half' };
    const { lost, won } = this.#labelled;
    if (mcnemar(lost, won) <= this.#alpha) return { verdict: 'rejected', reason: 'harm-shown' };
    if (this.#samples && this.#samples.p <= this.#alpha)
      return { verdict: 'rejected', reason: 'samples-differ' };
    if (this.#isFloorTooHigh) return { verdict: 'undecided', reason: 'floor-too-high' };
    if (flips === 'certified') return { verdict: 'certified', reason: 'flips-below-bound' };
    return { verdict: 'undecided', reason: 'prompts-used-up' };
  }

  get figures(): ParityFigures {
    const { prompts, flips, floorFlips, certifies, rejects } = this.gate;
    const parted = hazard(this.#positions.length, this.#exposed);
    const labelled = this.#labelled;
    return {
      prompts,
      flips,
      floorFlips,
      flipsRate: prompts === 0 ? null : flips / prompts,
      flipsAtMost: rateAtMost(flips, prompts),
      nearTies: this.#flips.filter((flip) => this.#isNearTie(flip)).length,
      certifies: round(certifies),
      rejects: round(rejects),
      divergence: screen(this.#divergences),
      variationMean: meanOf(this.#variations),
      topAgreement: this.#divergences.length === 0 ? null : this.#sameTop / this.#divergences.length,
      parted: parted ? { ...parted, exposed: this.#exposed, first: medianOf(this.#positions) } : null,
      harm:
        labelled.prompts === 0
          ? null
          : {
              ...labelled,
              p: mcnemar(labelled.lost, labelled.won),
              lostAtMost: rateAtMost(labelled.lost, labelled.prompts),
            },
      samples: this.#samples ?? null,
      screened: this.#screened?.figures ?? null,
      skipped: this.#skippedBy,
      examples: this.#flips.slice(0, EXAMPLES_MAX).map(({ prompt: { id, label }, comparison }) => ({
        prompt: id,
        reference: cut(comparison.reference),
        backend: cut(comparison.other),
        ...(label !== undefined && { label: cut(label) }),
        ...(comparison.position !== undefined && { position: comparison.position }),
        ...(comparison.margin !== undefined && { margin: round(comparison.margin) }),
      })),
    };
  }

  get #skippedBy(): Record<string, number> {
    const skipped = { ...this.#skipped };
    for (const cause of this.#screened?.missing ?? []) skipped[cause] = (skipped[cause] ?? 0) + 1;
    return skipped;
  }

  /** The reference itself hardly decided: its margin is within twice what its own scores move by. */
  #isNearTie({ comparison: { margin }, prompt }: Flip): boolean {
    const kind = scoreKind(prompt);
    const delta = Math.max(this.#deltas.get(kind) ?? 0, this.#screened?.deltas.get(kind) ?? 0);
    return margin !== undefined && margin <= 2 * delta;
  }
}

const round = (value: number) => Number(value.toPrecision(6));
const cut = (text: string) =>
  text.length <= EXAMPLE_CHARS_MAX ? text : `${text.slice(0, EXAMPLE_CHARS_MAX)}...`;
const meanOf = (values: readonly number[]) =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

function medianOf(values: readonly number[]): number | null {
  return values.length === 0 ? null : quantileOf(values, 0.5);
}

function screen(values: readonly number[]): { mean: number; p99: number } | null {
  return values.length === 0 ? null : { mean: meanOf(values)!, p99: quantileOf(values, 0.99) };
}

function quantileOf(values: readonly number[], share: number): number {
  const order = sorted(values);
  return order[Math.min(order.length - 1, Math.floor(order.length * share))]!;
}
