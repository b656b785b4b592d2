import type { Random } from '../../kernel/random.ts';

/** A value as a worker saw it: null where there was none. */
export type Value = number | string | number[] | null;

/** How a feature is looked at. It is what the configuration says, never what the values look like. */
export type FeatureType = 'numeric' | 'categorical' | 'vector';

/** What can have changed of a feature; each is told by itself, and none is folded into another. */
export type Change =
  /** Where the values lie. */
  | 'distribution'
  /** How often there is no value. */
  | 'nulls'
  /** How often a value is of another type than the feature. */
  | 'type'
  /** How often a category comes that the reference does not have. */
  | 'unseen'
  /** What never changed does, or what changed does not any more. */
  | 'varying'
  | 'constant'
  /** Whether probabilities mean what they say, by labels. */
  | 'calibration';

/** One thing that is watched of a feature, by e-detectors. */
export interface Watch {
  change: Change;
  /** Its part of the feature's run length: the bar is the target over the weight. The weights of a feature sum to 1 or less. */
  weight: number;
  readonly evidence: number;
  /** Rows since the change began, as far as it shows. */
  readonly since: number;
  readonly direction: string;
  begin(): void;
}

/** How large a change is, beside how sure it is. */
export type Effect = Record<string, number | string>;

/** What the values of one type are looked at by: first the reference is gathered, then it is frozen and watched. */
export interface Shape {
  /** Whether the value is of the type. */
  takes(value: Value): boolean;
  /** The value in a form that takes little room, for what is kept until a cycle ends. */
  kept(value: Value): Value;
  learn(value: Value): void;
  /** `rows` were learned from, nulls and others included. False where too few of them had a value: then it is not watched. */
  freeze(): boolean;
  observe(value: Value, random: Random): void;
  /** Empty before the reference is frozen. */
  readonly watches: readonly Watch[];
  /** Of the last so many rows against the reference; undefined where there are too few. */
  effect(rows: number): Effect | undefined;
  /** The greatest part of the probability that has moved, 0 to 1, of the last so many rows. */
  moved(rows: number): number;
  /** The window of the last rows against the reference, for who looks at it once. */
  window(random: Random): Record<string, number> | undefined;
  toJSON(): unknown;
  restore(state: never): void;
}

/** What a monitor tells when evidence reaches the bar. */
export interface Finding {
  feature: string;
  change: Change;
  direction: string;
  evidence: number;
  bar: number;
  /** Rows since the change began, as far as it shows. */
  since: number;
  /** Part of the probability that has moved, 0 to 1. */
  moved: number;
  effect: Effect;
}
