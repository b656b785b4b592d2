/** Certificates that two backends mean the same. */

export type ParityVerdict = 'certified' | 'rejected' | 'undecided';

/** A code of src/events/reasons.ts. */
export type ParityReason =
  | 'flips-below-bound'
  | 'flips-above-half'
  | 'harm-shown'
  | 'samples-differ'
  | 'prompts-used-up'
  | 'reference-unsure'
  | 'floor-too-high'
  | 'answers-missing'
  | 'changed-meanwhile'
  | 'golden-unfit'
  | 'run-stopped'
  | 'run-interrupted';

/** What was measured. Rates are shares from 0 to 1; null where there was nothing to measure. */
export interface ParityFigures {
  /** Golden prompts that the reference is sure of and that both answered, the reference twice. */
  prompts: number;
  /** Prompts on which the two decide differently, and on which the reference does from itself at another batch size. */
  flips: number;
  floorFlips: number;
  flipsRate: number | null;
  /** Upper 95 % bound of the rate of flips (Clopper and Pearson), the floor included. */
  flipsAtMost: number;
  /** Flips where the reference's own margin was within twice what its scores move by at another batch size. */
  nearTies: number;
  /** E-values: evidence that flips beyond the floor are below the bound, and that they are above half of it. */
  certifies: number;
  rejects: number;
  /** Of the distributions of tokens up to the first mismatch, in nats. */
  divergence: { mean: number; p99: number } | null;
  variationMean: number | null;
  topAgreement: number | null;
  /** How likely a token is the first that differs, in so many compared, and the median place of the first that does. */
  parted: { rate: number; atMost: number; exposed: number; first: number | null } | null;
  /** Of prompts with a label: `lost` are those that the reference alone has right, `won` the backend alone; p of McNemar's test. */
  harm: {
    prompts: number;
    lost: number;
    won: number;
    referenceRight: number;
    backendRight: number;
    p: number;
    lostAtMost: number;
  } | null;
  /** Of prompts with a temperature: p of the test that both draw from one distribution; tokens alike under one seed. */
  samples: { mmd2: number; p: number; tokensAlike: number } | null;
  /**
   * Before: prompts that the reference was asked alone and in company, those on which it decided otherwise from one time to
   * another, and those that it decided by a near tie. These say nothing of flips; the first 100 of them by name.
   */
  screened: { prompts: number; differ: number; nearTies: number; leftOut: string[] } | null;
  /** Prompts that were not compared, by cause. */
  skipped: Record<string, number>;
  examples: {
    prompt: string;
    reference: string;
    backend: string;
    label?: string;
    position?: number;
    margin?: number;
  }[];
}

/**
 * What a backend is: its settings that its answers depend on, and what each kind of endpoint tells of itself. A certificate
 * holds while both are as they were.
 */
export interface Fingerprint {
  settings: Record<string, unknown>;
  /** Sorted, each once: endpoints that tell the same are one. */
  told: string[];
  /** `system_fingerprint` of its answers. */
  answers?: string[];
}

export interface Certificate {
  /** `par_...` */
  id: string;
  /** ISO 8601, milliseconds, UTC. */
  at: string;
  actor: string;
  reference: string;
  backend: string;
  golden: { name: string; sha256: string; prompts: number };
  flipsMax: number;
  alpha: number;
  /** Requests that were at an engine at once when it was asked in company. */
  together: number;
  state: 'running' | 'ended';
  verdict?: ParityVerdict;
  reason?: ParityReason;
  figures: ParityFigures;
  fingerprints?: { reference: Fingerprint; backend: Fingerprint };
  /** Of one that certifies: until when, and since when it does so no more, and why. */
  until?: string;
  expired?: { at: string; cause: ExpiryCause; event: string; what?: string };
  /** The event that told of its verdict. */
  event?: string;
  endedAt?: string;
}

export type ExpiryCause = 'too-old' | 'reference-changed' | 'backend-changed' | 'sentinel';

/** Whether a backend may stand in for a reference, and the certificate or what is missing. */
export type Standing =
  | { valid: true; certificate: string; event: string }
  | {
      valid: false;
      why: 'none' | 'rejected' | 'undecided' | 'expired' | 'running';
      certificate?: string;
      event?: string;
    };
