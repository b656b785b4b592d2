import type { PipelineSettings } from '../../config/schema/index.ts';

/** What a stage asks of its route, and what is read of the answer. A kind knows one API; it does no I/O and keeps no state. */

export type StageSettings = PipelineSettings['stages'][string];

/** One of several results of a stage: a document, a passage, a candidate. */
export interface StageItem {
  text: string;
  score?: number;
  [more: string]: unknown;
}

/** What a stage has found out. Templates see all of it as `stages.NAME`, and its text as `NAME`. */
export interface StageValue {
  /** Empty where the stage gives no text, was skipped, or was not run. */
  text: string;
  class?: string;
  /** How sure it is of the class, or how well it fits: higher is better. */
  score?: number;
  /** One for each input. */
  vectors?: readonly (readonly number[])[];
  items?: readonly StageItem[];
  /** The answer itself where it is no text: tool calls, outputs of a model of tensors. */
  json?: unknown;
}

/** What templates and expressions of a stage stand for, for one request (and one item of it, under `each`). */
export interface Filling {
  /** A template filled in. Throws where it cannot be. */
  text(template: string): string;
  /** What an expression gives, as plain data. Throws where it cannot be told. */
  value(expression: string): unknown;
  /** Whether an expression reads nothing but the caller's request: what is wrong with what it gives is the caller's to mend. */
  isCallers(expression: string): boolean;
  /** Of a stage that has ended before this one began; undefined where there is none of that name. */
  stage(name: string): StageValue | undefined;
}

export interface StageAsk {
  /** As a caller would send it, such as `/v1/chat/completions`. */
  target: string;
  body: Buffer;
  /** Names in lower case; only where they are not those of plain JSON. */
  headers?: Readonly<Record<string, string>>;
  /** What it asks about, where that is a list: the answer has something to say of each. */
  items?: readonly StageItem[];
  /** What its answer is compared with, where the stage has classes with examples. */
  classes?: ClassCentres;
}

/** Classes with examples, each as the middle of their vectors. */
export interface ClassCentres {
  /** The model that made them, as it names itself. */
  model: string | undefined;
  centres: readonly { name: string; vector: readonly number[] }[];
}

/** There is nothing to ask about, and so this is what the stage gives. */
export interface NothingToAsk {
  value: StageValue;
}

/** Why a stage cannot be asked: what it needs is not there, or is too much. The stage has failed by it. */
export class StageFault extends Error {
  /** The caller's request is to blame. */
  readonly isCallers: boolean;

  constructor(message: string, isCallers = false) {
    super(message);
    this.isCallers = isCallers;
  }
}

export interface StageKind {
  name: 'chat' | 'completions' | 'embeddings' | 'tensors';
  /** Whether its answer can come as a stream of text. */
  streams: boolean;
  /**
   * The request to `route`, which is the stage's own or one that stands in. `extras` are members of the caller's own request that
   * go with it, such as `temperature`; what the stage itself says goes before them. Throws a StageFault, or what a template throws.
   */
  ask(
    stage: StageSettings,
    route: string,
    filling: Filling,
    stream: boolean,
    extras: Readonly<Record<string, unknown>>,
  ): StageAsk | NothingToAsk;
  /** Reads the body of a whole answer of status 200 to `ask`; undefined where there is no answer in it. */
  read(stage: StageSettings, body: Buffer, ask: StageAsk): StageValue | undefined;
}
