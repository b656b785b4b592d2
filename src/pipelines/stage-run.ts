import type { Step } from '../events/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import { type Asked, type AskHost, Asking, notFilled } from './asking.ts';
import { dueAt } from './budgets.ts';
import { type EachEnd, EachRun } from './each-run.ts';
import type { StageFilling } from './filling.ts';
import { chooseFirst, compute } from './flow/compute.ts';
import { standIn } from './kinds/classes.ts';
import type { StageItem, StageValue } from './kinds/contracts.ts';
import { itemsOf } from './kinds/items.ts';
import type { PlannedStage } from './plan.ts';
import { figuresOf, foundOut, settingOf, statusOf, tell, tellWay, timeSetting } from './record.ts';
import type { CallEnd, StreamTaker } from './stage-call.ts';

/** The pipeline that a stage is run for. */
export interface StageHost extends AskHost {
  /** What is known to it of the request, and of those that it comes after. */
  fillingOf(stage: PlannedStage): StageFilling;
  /** Where the stage may pass its words on as they come. */
  takerOf(run: StageRun): StreamTaker | undefined;
  /** The stage is over. */
  ended(run: StageRun, value: StageValue, end: StageEnd): void;
  /** It gave no answer, and has no way out. */
  failed(run: StageRun, failure: Failure, end: CallEnd | undefined): void;
}

/** How a stage came to its value. */
export interface StageEnd {
  /** What of it makes the answer a rougher one. */
  labels: readonly string[];
  /** What its route answered, where that was one answer. */
  call: CallEnd | undefined;
  /** Of the answers that its value was read from. */
  bytes: number;
}

const GIVEN: StageEnd = { labels: [], call: undefined, bytes: 0 };

/** One stage of one request, from its start to its value, or to what stands in for it. */
export class StageRun {
  readonly stage: PlannedStage;
  readonly #host: StageHost;
  readonly #filling: StageFilling;
  readonly #startedAt: number;
  readonly #dueAt: number;
  #asking: Asking | undefined;
  #each: EachRun | undefined;
  /** Another route stands in. */
  isRerouted = false;
  /** Its answer has begun to go to the caller. */
  #firstContentAt: number | undefined;

  constructor(host: StageHost, stage: PlannedStage) {
    this.#host = host;
    this.stage = stage;
    this.#filling = host.fillingOf(stage);
    this.#startedAt = host.path.deps.clock.mono();
    this.#dueAt = dueAt(stage, this.#startedAt, host.x.deadlineAt);
  }

  /** `ended` or `failed` may be called before this returns. */
  start(): void {
    const { settings } = this.stage;
    if (settings.when !== undefined && !this.#holds(settings.when)) {
      this.#host.ended(this, emptyValue(this.stage), GIVEN);
    } else if (!this.stage.kind) this.#compute();
    else if (settings.each !== undefined) this.#askEach(settings.each);
    else this.#ask(settings.route!);
  }

  /** A condition that cannot be told, such as of a score that a stage did not give, does not hold. */
  #holds(when: string): boolean {
    let cause: string | undefined;
    try {
      if (this.#filling.holds(when)) return true;
    } catch (error) {
      cause = (error as Error).message.slice(0, 200);
    }
    const figures = { when: when.slice(0, 200), ...(cause === undefined ? {} : { cause }) };
    this.#tell('stage-not-run', figures, settingOf(this.#host.x, this.stage, 'when'));
    return false;
  }

  /** It asks nobody: what it gives is made of what others have found. */
  #compute(): void {
    const { first } = this.stage.settings;
    const of = (name: string) => this.#filling.stage(name);
    const value = compute(this.stage.settings, of);
    if (!value) {
      this.#failed(nothingFound(), undefined);
      return;
    }
    if (first) this.#tell('stage-chosen', { chosen: chooseFirst(first, of)! });
    else this.#tell('stage-made', foundOut(value));
    this.#host.ended(this, value, GIVEN);
  }

  /** Nobody wants it any more. */
  cancel(): void {
    const { path, x } = this.#host;
    const inner = this.#asking?.cancel();
    for (const each of inner ? [inner] : (this.#each?.cancel() ?? [])) tellWay(x, this.stage, each);
    const tookMs = path.deps.clock.mono() - this.#startedAt;
    this.#count(tookMs);
    this.#tell('stage-cancelled', { tookMs: Math.round(tookMs) });
  }

  resume(): void {
    this.#asking?.resume();
  }

  /** The first of its words go to the caller: it has kept its time. */
  begun(): void {
    this.#firstContentAt = this.#host.path.deps.clock.mono();
  }

  #ask(route: string): void {
    this.#asking = new Asking({
      host: this.#host,
      stage: this.stage,
      route,
      filling: this.#filling,
      startedAt: this.#startedAt,
      dueAt: this.#dueAt,
      taker: this.#host.takerOf(this),
      done: (asked) => this.#done(asked),
    });
    this.#asking.start();
  }

  #done({ value, failure, end }: Asked): void {
    const { x } = this.#host;
    this.#asking = undefined;
    if (end?.inner) {
      tellWay(x, this.stage, end.inner);
      x.attempts += end.inner.attempts;
    }
    if (failure) this.#failed(failure, end);
    else if (end) this.#answered(value, end);
    else this.#given(value);
  }

  #askEach(each: string): void {
    let items: readonly StageItem[];
    try {
      items = itemsOf(this.#filling, each, 'each');
    } catch (error) {
      this.#failed(notFilled(error as Error), undefined);
      return;
    }
    this.#each = new EachRun({
      host: this.#host,
      stage: this.stage,
      items,
      filling: this.#filling,
      startedAt: this.#startedAt,
      dueAt: this.#dueAt,
      mayStandIn: (failure) => this.#mayStandIn(failure),
      done: (end) => this.#eachDone(end),
    });
    this.#each.start();
  }

  #eachDone({ value, failure, labels, bytes, ...figures }: EachEnd): void {
    const { path, x } = this.#host;
    this.#each = undefined;
    if (failure) {
      this.#failed(failure, undefined);
      return;
    }
    const tookMs = path.deps.clock.mono() - this.#startedAt;
    this.#count(tookMs);
    this.stage.times.observe(tookMs);
    const { tokensIn, tokensOut, asked, failed } = figures;
    this.#tell(
      'stage-answered-each',
      {
        tookMs: Math.round(tookMs),
        ...foundOut(value),
        asked,
        ...(failed > 0 ? { failed } : {}),
        tokensIn,
        tokensOut,
      },
      timeSetting(x, this.stage),
    );
    this.#host.ended(this, value, { labels, call: undefined, bytes });
  }

  /** Nobody had to be asked. */
  #given(value: StageValue): void {
    this.#tell('stage-given', foundOut(value));
    this.#host.ended(this, value, GIVEN);
  }

  #answered(value: StageValue, end: CallEnd): void {
    const { path, x } = this.#host;
    const now = path.deps.clock.mono();
    this.#count(now - this.#startedAt);
    this.stage.times.observe((this.#firstContentAt ?? now) - this.#startedAt);
    const rung = end.inner?.degraded;
    this.#tell(
      'stage-answered',
      { ...figuresOf(end, this.#dueAt - this.#startedAt), ...foundOut(value) },
      timeSetting(x, this.stage),
    );
    const label = this.isRerouted ? 'route' : rung;
    const labels = label === undefined ? [] : [label];
    this.#host.ended(this, value, { labels, call: end, bytes: end.body.length });
  }

  #failed(failure: Failure, end: CallEnd | undefined): void {
    const { path, x } = this.#host;
    const { stage } = this;
    const now = path.deps.clock.mono();
    const figures = end
      ? figuresOf(end, this.#dueAt - this.#startedAt)
      : { tookMs: Math.round(now - this.#startedAt) };
    this.#tell(
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
      this.#mayStandIn(failure)
    ) {
      if (typeof onFailure === 'object' && 'route' in onFailure) {
        this.isRerouted = true;
        this.#tell('stage-rerouted', { route: onFailure.route }, setting);
        this.#ask(onFailure.route);
        return;
      }
      this.#count(now - this.#startedAt);
      const skips = onFailure === 'skip';
      this.#tell(skips ? 'stage-skipped' : 'stage-stood-in', {}, setting);
      const value = skips ? emptyValue(stage) : standIn(stage.settings, onFailure.use);
      this.#host.ended(this, value, { ...GIVEN, labels: [skips ? 'skip' : 'use'] });
      return;
    }
    this.#count(now - this.#startedAt);
    this.#host.failed(this, failure, end);
  }

  /**
   * A line of a batch waits out whatever may pass: nothing stands in for a stage that may be answered later. What will be the
   * same again is not waited out, nor is a stage that took longer than the budget that it was given.
   */
  #mayStandIn(failure: Failure): boolean {
    const { path, x } = this.#host;
    if (x.terms?.ladder !== false) return true;
    if (failure.code === 'deadline_exceeded') {
      return this.stage.settings.budget !== undefined && path.deps.clock.mono() >= this.#dueAt;
    }
    const status = statusOf(failure);
    return status < 500 && status !== 429;
  }

  #tell(code: string, figures: Step['figures'], setting?: string): void {
    const { path, x } = this.#host;
    tell(path, x, this.stage, code, figures, setting);
  }

  #count(ms: number): void {
    const { stage } = this;
    const { path, x } = this.#host;
    stage.seconds ??= path.deps.metrics.stageSeconds.of(x.route!.name, stage.name);
    stage.seconds.observe(ms / 1000);
  }
}

/** What a stage says that was skipped, or not run: there is nothing of what it could have found. */
function emptyValue({ gives }: PlannedStage): StageValue {
  return {
    text: '',
    ...(gives.has('items') && { items: [] }),
    ...(gives.has('vectors') && { vectors: [] }),
  };
}

function nothingFound(): Failure {
  return {
    code: 'backend_error',
    message: 'None of the stages that it is made of has found anything that it could give.',
    phase: 'before-queue',
  };
}
