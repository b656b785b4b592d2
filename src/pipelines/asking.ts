import type { Exchange, Path, Route } from '../gateway/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import type { TimerHandle } from '../kernel/timers.ts';
import type { StageFilling } from './filling.ts';
import type { ClassVectors } from './flow/class-vectors.ts';
import {
  type ClassCentres,
  type NothingToAsk,
  type StageAsk,
  StageFault,
  type StageValue,
} from './kinds/contracts.ts';
import type { PlannedStage } from './plan.ts';
import { type CallEnd, noAnswer, StageCall, type StreamTaker } from './stage-call.ts';

/** The request that stages are asked for. */
export interface AskHost {
  path: Path;
  x: Exchange;
  /** The routes that there were when it came. */
  routes: ReadonlyMap<string, Route>;
  /** What stages of embeddings compare with. */
  classVectors: ClassVectors;
  /** What of the caller's own request goes with the stage. */
  extrasOf(stage: PlannedStage, streams: boolean): Record<string, unknown>;
}

/** What came of it: a value, or why there is none. `end` is there where the route was asked. */
export type Asked =
  | { value: StageValue; failure?: undefined; end: CallEnd | undefined }
  | { value?: undefined; failure: Failure; end: CallEnd | undefined };

export interface AskingOptions {
  host: AskHost;
  stage: PlannedStage;
  route: string;
  filling: StageFilling;
  /** When the stage began, and when it is due; monotonic. */
  startedAt: number;
  dueAt: number;
  /** Where its words are passed on as they come. */
  taker: StreamTaker | undefined;
  done(asked: Asked): void;
}

/** Asks a route once what a stage wants to know, filled in for a request or for one item of it. */
export class Asking {
  readonly #options: AskingOptions;
  #call: StageCall | undefined;
  #leaveClasses: (() => void) | undefined;
  #timer: TimerHandle;

  constructor(options: AskingOptions) {
    this.#options = options;
  }

  /** `done` may be called before this returns. */
  start(): void {
    const { host, stage, route, startedAt, dueAt } = this.#options;
    const { clock, timers } = host.path.deps;
    const now = clock.mono();
    if (now >= dueAt) {
      this.#fail(outOfTime(dueAt - startedAt));
      return;
    }
    const { classes } = stage.settings;
    if (!classes || Array.isArray(classes)) {
      this.#ask(undefined);
      return;
    }
    this.#timer = timers.set(dueAt - now, () => {
      this.#leaveClasses?.();
      this.#fail(outOfTime(dueAt - startedAt));
    });
    this.#leaveClasses = host.classVectors.of(host.path, host.x, stage.settings, route, (found) => {
      timers.clear(this.#timer);
      this.#leaveClasses = undefined;
      if ('code' in found) this.#fail(found);
      else this.#ask(found);
    });
  }

  /** Nobody wants it any more. What is given back is the request that was on its way. */
  cancel(): Exchange | undefined {
    this.#options.host.path.deps.timers.clear(this.#timer);
    this.#leaveClasses?.();
    return this.#call?.cancel();
  }

  resume(): void {
    this.#call?.resume();
  }

  #ask(classes: ClassCentres | undefined): void {
    const { host, stage, route, filling, dueAt, taker } = this.#options;
    let ask: StageAsk | NothingToAsk;
    try {
      const streams = taker !== undefined;
      ask = stage.kind!.ask(stage.settings, route, filling, streams, host.extrasOf(stage, streams));
    } catch (error) {
      this.#fail(notFilled(error as Error));
      return;
    }
    if ('value' in ask) {
      this.#options.done({ value: ask.value, end: undefined });
      return;
    }
    const asked = classes ? { ...ask, classes } : ask;
    this.#call = new StageCall({
      path: host.path,
      x: host.x,
      ask: asked,
      routes: host.routes,
      fit: stage.kind!.name === 'chat',
      deadlineAt: dueAt,
      taker,
      done: (end) => this.#done(asked, end),
    });
    this.#call.start();
  }

  #done(ask: StageAsk, end: CallEnd): void {
    const { stage, done } = this.#options;
    this.#call = undefined;
    if (end.failure) {
      done({ failure: end.failure, end });
      return;
    }
    const value = end.passedOn ? { text: '' } : stage.kind!.read(stage.settings, end.body, ask);
    done(value ? { value, end } : { failure: noAnswer(), end });
  }

  #fail(failure: Failure): void {
    this.#options.done({ failure, end: undefined });
  }
}

function outOfTime(ms: number): Failure {
  return {
    code: 'deadline_exceeded',
    message: `No time was left of its ${Math.max(0, Math.round(ms))} ms.`,
    phase: 'before-queue',
  };
}

/** What of the configuration, or of what earlier stages said, could not be made a request. */
export function notFilled(error: Error): Failure {
  return {
    code: error instanceof StageFault && error.isCallers ? 'invalid_request' : 'backend_error',
    message: `What it asks could not be put together: ${error.message.slice(0, 300)}`,
    phase: 'before-queue',
    shouldRetry: false,
  };
}
