import type { Random } from '../../kernel/random.ts';
import {
  brier,
  type Calibration,
  calibrated,
  expectedCalibrationError,
  isotonic,
} from '../statistics/calibration.ts';
import { CalibrationBets } from './calibration-bets.ts';
import type { Finding } from './contracts.ts';
import { round } from './numeric-shape.ts';

/** Answers whose estimated quality is told together. */
const CHUNK = 200;
/** The last labels that the shown figures are of. */
const LABELS_KEPT = 1000;
const BINS = 10;
const NULL_DRAWS = 40;
/** Evidence at which it is not believed any more that probabilities were ever calibrated: alpha 0.05. */
const LIFETIME_BAR = 20;
/** 99 of 100 references lie within so many standard errors. */
const Z = 2.58;

interface State {
  learned: [score: number, right: number][];
  calibration?: Calibration;
  margin: number;
  expected: { mean: number; spread: number };
  chunk: { sum: number; squares: number; rows: number };
  told?: Estimate;
  bets?: unknown;
  labels: [p: number, right: number][];
  labelled: number;
}

/** Label-free quality of the last chunk of answers. */
export interface Estimate {
  /** The share of answers that are right, by their probabilities. */
  quality: number;
  standardError: number;
  /** What chunks of the reference stay within: its mean and three standard deviations. */
  low: number;
  high: number;
}

export interface QualityReport {
  /** Labels that came, and how many of them the reference takes. */
  labels: number;
  referenceLabels: number;
  state: 'learning' | 'watching';
  evidence: number;
  bar: number;
  /** Whether the probabilities still mean what they did: without that the estimate is not to be believed. */
  calibrated: boolean;
  estimate: Estimate | undefined;
  outside: boolean;
  accuracy: number | undefined;
  brier: number | undefined;
  /** Of the last labels; and what it stays under in 19 of 20 cases where probabilities mean what they say. */
  calibrationError: number | undefined;
  calibrationErrorUsual: number | undefined;
}

export interface QualitySettings {
  /** Labels of the reference. */
  labels: number;
  targetRunLength: number;
}

/**
 * Quality of answers that tell how sure they are. The first labels calibrate that (isotonic), and are frozen; then each label
 * is a bet on whether it still holds (B6), and answers without labels give an estimate of the share that is right (CBPE,
 * B5), which a change of what is right does not move: so it is told only as long as labels do not say otherwise.
 */
export class QualityWatch {
  readonly #settings: QualitySettings;
  #state: State = {
    learned: [],
    margin: 0,
    expected: { mean: 0, spread: 0 },
    chunk: { sum: 0, squares: 0, rows: 0 },
    labels: [],
    labelled: 0,
  };
  #bets: CalibrationBets | undefined;

  constructor(settings: QualitySettings) {
    this.#settings = settings;
  }

  get labels(): number {
    return this.#state.labelled;
  }

  /** An answer with a score of 0 to 1, before anybody knows whether it was right. */
  answered(score: number): void {
    const { calibration, chunk, expected } = this.#state;
    if (!calibration) return;
    const p = calibrated(calibration, score);
    chunk.sum += p;
    chunk.squares += p * p;
    if (++chunk.rows < CHUNK) return;
    const quality = chunk.sum / chunk.rows;
    const spread = Math.sqrt(Math.max(0, chunk.squares / chunk.rows - quality * quality));
    const room = (3 * expected.spread) / Math.sqrt(CHUNK);
    this.#state.told = {
      quality: round(quality),
      standardError: round(spread / Math.sqrt(chunk.rows)),
      low: round(Math.max(0, expected.mean - room)),
      high: round(Math.min(1, expected.mean + room)),
    };
    this.#state.chunk = { sum: 0, squares: 0, rows: 0 };
  }

  /** It is known whether the answer with that score was right. */
  labelled(score: number, right: boolean): Finding | undefined {
    const state = this.#state;
    state.labelled++;
    const y = right ? 1 : 0;
    if (!state.calibration || !this.#bets) {
      state.learned.push([score, y]);
      if (state.learned.length >= this.#settings.labels) this.#freeze();
      return undefined;
    }
    const p = calibrated(state.calibration, score);
    this.#bets.observe(p, y);
    state.labels.push([p, y]);
    if (state.labels.length > LABELS_KEPT) state.labels.shift();
    const { stakes } = this.#bets;
    const { evidence, since } = stakes;
    if (evidence < this.#settings.targetRunLength) return undefined;
    const { direction } = this.#bets;
    const last = state.labels.slice(-Math.max(since, 20));
    const told = last.reduce((sum, [each]) => sum + each, 0) / last.length;
    const came = last.reduce((sum, [, each]) => sum + each, 0) / last.length;
    stakes.begin();
    return {
      feature: 'quality',
      change: 'calibration',
      direction,
      evidence: round(evidence),
      bar: this.#settings.targetRunLength,
      since,
      moved: round(Math.abs(told - came)),
      effect: { probability: round(told), right: round(came) },
    };
  }

  #freeze(): void {
    const state = this.#state;
    const { learned } = state;
    state.calibration = isotonic(
      learned.map(([score]) => score),
      learned.map(([, y]) => y),
    );
    const p = learned.map(([score]) => calibrated(state.calibration!, score));
    const mean = p.reduce((sum, each) => sum + each, 0) / p.length;
    const variance = p.reduce((sum, each) => sum + each * (1 - each), 0) / p.length;
    const spread = Math.sqrt(p.reduce((sum, each) => sum + (each - mean) ** 2, 0) / p.length);
    state.margin = Z * Math.sqrt(variance / p.length);
    state.expected = { mean, spread };
    state.learned = [];
    this.#bets = new CalibrationBets(state.margin);
  }

  report(random: Random): QualityReport {
    const { told, labels, labelled, calibration } = this.#state;
    const lifetime = this.#bets?.lifetime;
    const holds = lifetime !== undefined && Math.max(lifetime.over, lifetime.under) < LIFETIME_BAR;
    const [p, y] = [labels.map(([each]) => each), labels.map(([, each]) => each)];
    const some = labels.length > 0;
    return {
      labels: labelled,
      referenceLabels: this.#settings.labels,
      state: calibration ? 'watching' : 'learning',
      evidence: round(this.#bets?.stakes.evidence ?? 0),
      bar: this.#settings.targetRunLength,
      calibrated: holds,
      estimate: told,
      outside: told !== undefined && (told.quality < told.low || told.quality > told.high),
      accuracy: some ? round(y.reduce((sum, each) => sum + each, 0) / y.length) : undefined,
      brier: some ? round(brier(p, y)) : undefined,
      calibrationError: some ? round(expectedCalibrationError(p, y, BINS)) : undefined,
      calibrationErrorUsual: some ? round(usualError(p, random)) : undefined,
    };
  }

  toJSON(): State {
    return { ...this.#state, ...(this.#bets && { bets: this.#bets.toJSON() }) };
  }

  restore(state: State): void {
    this.#state = state;
    if (!state.calibration) return;
    this.#bets = new CalibrationBets(state.margin);
    if (state.bets) this.#bets.restore(state.bets as never);
  }
}

/** The error of a perfect model is not 0: what outcomes drawn by these probabilities show, the greatest of 19 of 20 times. */
function usualError(p: readonly number[], random: Random): number {
  const errors = Array.from({ length: NULL_DRAWS }, () =>
    expectedCalibrationError(
      p,
      p.map((each) => (random.next() < each ? 1 : 0)),
      BINS,
    ),
  );
  return errors.sort((a, b) => a - b)[Math.ceil(0.95 * NULL_DRAWS) - 1]!;
}
