import type { Exchange, Path } from '../gateway/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import { dueAt } from './budgets.ts';
import type { StageFilling } from './filling.ts';
import type { NothingToAsk, StageAsk, StageValue } from './kinds/contracts.ts';
import type { PlannedStage } from './plan.ts';
import { figuresOf, foundOut, settingOf, statusOf, tell, tellWay, timeSetting } from './record.ts';
import { type CallEnd, noAnswer, StageCall, type StreamTaker } from './stage-call.ts';

/** The pipeline that a stage is run for. */
export interface StageHost {
  path: Path;
  x: Exchange;
  filling: StageFilling;
  /** What of the caller's own request goes with the stage. */
  extrasOf(stage: PlannedStage): Record<string, unknown>;
  /** Where the stage may pass its words on as they come. */
  takerOf(run: StageRun): StreamTaker | undefined;
  /** The stage is over. `label`: what of it makes the answer a rougher one. `end`: what it was answered. */
  ended(run: StageRun, value: StageValue, label: string | undefined, end: CallEnd | undefined): void;
  /** It gave no answer, and has no way out. */
  failed(run: StageRun, failure: Failure, end: CallEnd | undefined): void;
}

/** One stage of one request, from its start to its value, or to what stands in for it. */
export class StageRun {
  readonly stage: PlannedStage;
  readonly #host: StageHost;
  readonly #startedAt: number;
  readonly #dueAt: number;
  #call: StageCall | undefined;
  /** Another route stands in. */
  isRerouted = false;
  /** Its answer has begun to go to the caller. */
  #firstContentAt: number | undefined;

  constructor(host: StageHost, stage: PlannedStage) {
    this.#host = host;
    this.stage = stage;
    this.#startedAt = host.path.deps.clock.mono();
    this.#dueAt = dueAt(stage, this.#startedAt, host.x.deadlineAt);
  }

  /** `ended` or `failed` may be called before this returns. */
  start(): void {
    this.#ask(this.stage.settings.route!);
  }

  /** Nobody wants it any more. */
  cancel(): void {
    const { path, x } = this.#host;
    const inner = this.#call?.cancel();
    if (inner) tellWay(x, this.stage, inner);
    const tookMs = path.deps.clock.mono() - this.#startedAt;
    this.#count(tookMs);
    tell(path, x, this.stage, 'stage-cancelled', { tookMs: Math.round(tookMs) });
  }

  resume(): void {
    this.#call?.resume();
  }

  /** The first of its words go to the caller: it has kept its time. */
  begun(): void {
    this.#firstContentAt = this.#host.path.deps.clock.mono();
  }

  #ask(route: string): void {
    const { path, x, filling } = this.#host;
    const { settings, kind, name } = this.stage;
    const now = path.deps.clock.mono();
    if (now >= this.#dueAt) {
      this.#failed(outOfTime(this.#dueAt - this.#startedAt), undefined);
      return;
    }
    const taker = this.#host.takerOf(this);
    let ask: StageAsk | NothingToAsk;
    try {
      ask = kind!.ask(settings, route, filling, taker !== undefined, this.#host.extrasOf(this.stage));
    } catch (error) {
      this.#failed(notFilled(name, error as Error), undefined);
      return;
    }
    if ('value' in ask) {
      this.#given(ask.value);
      return;
    }
    const asked = ask;
    this.#call = new StageCall({
      path,
      x,
      ask: asked,
      fit: kind!.name === 'chat',
      deadlineAt: this.#dueAt,
      taker,
      done: (end) => this.#done(asked, end),
    });
    this.#call.start();
  }

  #done(ask: StageAsk, end: CallEnd): void {
    const { x } = this.#host;
    this.#call = undefined;
    if (end.inner) {
      tellWay(x, this.stage, end.inner);
      x.attempts += end.inner.attempts;
    }
    if (end.failure) {
      this.#failed(end.failure, end);
      return;
    }
    // What has gone to the caller was judged on its way.
    const value =
      this.#firstContentAt !== undefined
        ? { text: '' }
        : this.stage.kind!.read(this.stage.settings, end.body, ask);
    if (value) this.#answered(value, end);
    else this.#failed(noAnswer(), end);
  }

  /** Nobody had to be asked. */
  #given(value: StageValue): void {
    const { path, x } = this.#host;
    tell(path, x, this.stage, 'stage-given', foundOut(value));
    this.#host.ended(this, value, undefined, undefined);
  }

  #answered(value: StageValue, end: CallEnd): void {
    const { path, x } = this.#host;
    const now = path.deps.clock.mono();
    this.#count(now - this.#startedAt);
    this.stage.times.observe((this.#firstContentAt ?? now) - this.#startedAt);
    const rung = end.inner?.degraded;
    tell(
      path,
      x,
      this.stage,
      'stage-answered',
      { ...figuresOf(end, this.#dueAt - this.#startedAt), ...foundOut(value) },
      timeSetting(x, this.stage),
    );
    const label = this.isRerouted ? 'route' : rung;
    this.#host.ended(this, value, label, end);
  }

  #failed(failure: Failure, end: CallEnd | undefined): void {
    const { path, x } = this.#host;
    const { stage } = this;
    const now = path.deps.clock.mono();
    const figures = end
      ? figuresOf(end, this.#dueAt - this.#startedAt)
      : { tookMs: Math.round(now - this.#startedAt) };
    tell(
      path,
      x,
      stage,
      'stage-failed',
      { ...figures, code: failure.code, status: statusOf(failure) },
      timeSetting(x, stage),
    );
    x.failure = failure;
    if (end?.inner) x.shedFor = end.inner.shedFor;
    const isLate = now >= this.#dueAt;
    // Of a stage that is always cut off nothing else would ever be known.
    if (isLate && this.#firstContentAt === undefined) stage.times.observe(now - this.#startedAt);
    const { onFailure } = stage.settings;
    const setting = settingOf(x, stage, 'onFailure');
    if (
      this.#firstContentAt === undefined &&
      onFailure !== 'fail' &&
      !this.isRerouted &&
      mayStandIn(x, failure)
    ) {
      if (typeof onFailure === 'object' && 'route' in onFailure) {
        this.isRerouted = true;
        tell(path, x, stage, 'stage-rerouted', { route: onFailure.route }, setting);
        this.#ask(onFailure.route);
        return;
      }
      this.#count(now - this.#startedAt);
      const skips = onFailure === 'skip';
      tell(path, x, stage, skips ? 'stage-skipped' : 'stage-stood-in', {}, setting);
      this.#host.ended(this, { text: skips ? '' : onFailure.use }, skips ? 'skip' : 'use', undefined);
      return;
    }
    this.#count(now - this.#startedAt);
    this.#host.failed(this, failure, end);
  }

  #count(ms: number): void {
    const { stage } = this;
    const { path, x } = this.#host;
    stage.seconds ??= path.deps.metrics.stageSeconds.of(x.route!.name, stage.name);
    stage.seconds.observe(ms / 1000);
  }
}

/**
 * A line of a batch waits out whatever may pass: nothing stands in for a stage that may be answered later. Only what will be
 * the same again, or took the time that the stage has, is not waited out.
 */
function mayStandIn(x: Exchange, failure: Failure): boolean {
  if (x.terms?.ladder !== false || failure.code === 'deadline_exceeded') return true;
  const status = statusOf(failure);
  return status < 500 && status !== 429;
}

function outOfTime(ms: number): Failure {
  return {
    code: 'deadline_exceeded',
    message: `No time was left of its ${Math.max(0, Math.round(ms))} ms.`,
    phase: 'before-queue',
  };
}

function notFilled(stage: string, error: Error): Failure {
  return {
    code: 'backend_error',
    message: `What the stage '${stage}' asks could not be put together: ${error.message.slice(0, 300)}`,
    phase: 'before-queue',
    shouldRetry: false,
  };
}
