import {
  breakOff,
  type Exchange,
  headerOf,
  type Path,
  type Route,
  sharedHeaders,
} from '../gateway/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import { type Framed, type Framing, frame, frameDocument, framingOf } from './answers.ts';
import { type CallerRequest, extrasFor } from './caller-request.ts';
import { RequestScope, StageFilling } from './filling.ts';
import type { ClassVectors } from './flow/class-vectors.ts';
import { chooseFirst } from './flow/compute.ts';
import type { StageValue } from './kinds/contracts.ts';
import { mayPassOn } from './passing.ts';
import type { PipelinePlan, PlannedStage } from './plan.ts';
import { StreamReframing } from './reframe.ts';
import { type CallEnd, noAnswer, type StreamTaker } from './stage-call.ts';
import { type StageEnd, type StageHost, StageRun } from './stage-run.ts';

const NO_EXTRAS: Record<string, unknown> = {};

/** One request to a pipeline: starts its stages when those before them are over, and gives the last one's answer. */
export class PipelineRun implements StageHost {
  readonly path: Path;
  readonly x: Exchange;
  readonly routes: ReadonlyMap<string, Route>;
  readonly classVectors: ClassVectors;
  readonly #plan: PipelinePlan;
  readonly #caller: CallerRequest;
  readonly #scope: RequestScope;
  /** Of each stage whose answer may be the caller's. */
  readonly #framings: (Framing | undefined)[];
  /** And what it was answered, where it has ended and it is not known yet whether it is. */
  readonly #calls: (CallEnd | undefined)[] = [];
  /** The one whose words go to the caller. */
  #passing: StageRun | undefined;
  /** Of each stage, how many it still waits for. */
  readonly #before: number[];
  /** Of each stage that is running. */
  readonly #running: (StageRun | undefined)[] = [];
  readonly #labels: string[] = [];
  /** Bytes of what stages answered, for which room is taken. */
  #held = 0;
  /** How many run, since when one does, and how long one did: what is left of the request's time is the gateway's own. */
  #active = 0;
  #activeSince = 0;
  #activeMs = 0;
  /** Of the stages' own requests. */
  #overheadMs = 0;

  constructor(
    path: Path,
    x: Exchange,
    plan: PipelinePlan,
    caller: CallerRequest,
    classVectors: ClassVectors,
  ) {
    this.classVectors = classVectors;
    this.path = path;
    this.x = x;
    this.routes = path.deps.world.routes;
    this.#plan = plan;
    this.#caller = caller;
    const { text, messages, body } = caller;
    const call = x.call!;
    const session = x.session === undefined ? '' : x.session.slice(x.tenant.length + 1);
    this.#scope = new RequestScope(
      { text, messages, body, model: call.route, tenant: x.tenant, stream: call.stream },
      { id: session },
    );
    this.#framings = plan.stages.map((stage) => (stage.answers ? framingOf(call, stage) : undefined));
    this.#before = plan.stages.map(({ before }) => before);
  }

  start(): void {
    const { x, path } = this;
    // Each stage has a time of its own, at the latest that of the pipeline: what happens then is for the stage to say.
    path.deps.timers.clear(x.timer);
    x.timer = undefined;
    x.scope.add(() => this.#close());
    for (const stage of this.#plan.stages) {
      if (x.over) return;
      if (stage.before === 0) this.#begin(stage);
    }
  }

  fillingOf(stage: PlannedStage): StageFilling {
    return new StageFilling(this.#plan, this.#scope, stage);
  }

  extrasOf(stage: PlannedStage, streams: boolean): Record<string, unknown> {
    // Over OIP a caller sends tensors, and says nothing of how texts are made.
    if (!stage.answers || this.x.call!.protocol === 'oip') return NO_EXTRAS;
    return extrasFor(this.x, this.#caller.body, stage.kind!.name, streams);
  }

  takerOf(run: StageRun): StreamTaker | undefined {
    const framing = this.#framings[run.stage.index];
    if (!framing?.streams || !mayPassOn(run.stage, this.#plan, this.#scope.stages)) return undefined;
    const { x, path } = this;
    const call = x.call!;
    const reframing =
      framing.reframes && call.kind !== 'embeddings' && call.protocol === 'openai'
        ? new StreamReframing(call.kind)
        : undefined;
    return {
      open: (headers) => {
        run.begun();
        this.#passing = run;
        this.#cancelAll(run); // nobody asks for what others would have said
        const rung = headerOf(headers, 'x-armature-degraded');
        if (run.isRerouted) this.#label(run.stage, 'route');
        if (rung !== undefined) this.#label(run.stage, rung);
        this.#settleLabels();
        x.committed = x.streaming = true;
        x.status = 200;
        x.firstContentAt = path.deps.clock.mono();
        path.step(x, 'answer', 'committed', {});
        x.caller.onDrain = () => run.resume();
        const shown = sharedHeaders(headers);
        path.addHeaders(x, shown);
        x.caller.open(200, shown);
      },
      piece: (bytes) => {
        const told = reframing ? reframing.push(bytes) : bytes;
        return told.length === 0 || x.caller.write(told);
      },
    };
  }

  ended(run: StageRun, value: StageValue, { labels, call, bytes }: StageEnd): void {
    const { x } = this;
    const { stage } = run;
    this.#over(run, call);
    if (x.over) return;
    if (!x.committed) for (const label of labels) this.#label(stage, label);
    if (stage.isLast || run === this.#passing) {
      this.#answer(run, value, call);
      return;
    }
    if (!this.#hold(bytes)) {
      this.#fail(stage, {
        code: 'overloaded',
        message: 'There is no room for its answer now.',
        phase: 'sent',
      });
      return;
    }
    this.#scope.stages[stage.name] = value;
    if (stage.answers) this.#calls[stage.index] = call;
    for (const next of stage.next) {
      if (x.over) return;
      if (--this.#before[next.index]! === 0) this.#begin(next);
    }
  }

  failed(run: StageRun, failure: Failure, end: CallEnd | undefined): void {
    this.#over(run, end);
    if (!this.x.over) this.#fail(run.stage, failure, end);
  }

  #begin(stage: PlannedStage): void {
    if (this.#active++ === 0) this.#activeSince = this.path.deps.clock.mono();
    const run = new StageRun(this, stage);
    this.#running[stage.index] = run;
    run.start();
  }

  #over(run: StageRun, end: CallEnd | undefined): void {
    this.#running[run.stage.index] = undefined;
    if (end?.inner) {
      const { waitedMs, upstreamMs } = end.inner;
      this.#overheadMs += Math.max(0, end.tookMs - waitedMs - upstreamMs);
    }
    if (--this.#active === 0) this.#activeMs += this.path.deps.clock.mono() - this.#activeSince;
  }

  /** The last stage is over: what it gave is the answer. */
  #answer(run: StageRun, value: StageValue, own: CallEnd | undefined): void {
    const { x, path } = this;
    const chosen = answeringStage(run.stage, this.#plan, this.#scope.stages);
    const end = chosen === run.stage ? own : this.#calls[chosen.index];
    if (end?.inner?.backend) x.backend = end.inner.backend;
    if (x.committed) {
      x.outcome = x.degraded === undefined ? 'ok' : 'degraded';
      x.caller.end();
      path.step(x, 'answer', 'answered', {});
      path.finish(x);
      return;
    }
    const framed = this.#framed(chosen, value, end);
    if (!framed) {
      this.#fail(run.stage, end ? noAnswer() : (x.failure ?? noAnswer()));
      return;
    }
    this.#settleLabels();
    const { headers, body } = framed;
    x.firstContentAt = path.deps.clock.mono();
    path.step(x, 'answer', 'answered', { bytes: Buffer.byteLength(body) });
    this.#holdForReader(Buffer.byteLength(body));
    path.answer(x, { status: 200, headers, body }, x.degraded === undefined ? 'ok' : 'degraded');
  }

  #framed(stage: PlannedStage, value: StageValue, end: CallEnd | undefined): Framed | undefined {
    if (!end) return frame(this.x, value);
    const headers = sharedHeaders(end.headers);
    const framing = this.#framings[stage.index]!;
    if (framing.passes) return frameDocument(this.x, framing, headers, end.body);
    const framed = frame(this.x, value);
    const backend = headerOf(headers, 'x-armature-backend');
    if (framed && backend !== undefined) framed.headers.push('x-armature-backend', backend);
    return framed;
  }

  /** Without a way out the whole fails as the stage did. */
  #fail(stage: PlannedStage, failure: Failure, end?: CallEnd): void {
    const { x, path } = this;
    const { param: _, ...rest } = failure;
    const told: Failure = { ...rest, message: `Stage '${stage.name}': ${failure.message}`, phase: x.phase };
    if (end?.inner?.backend) x.backend = end.inner.backend;
    if (x.committed) breakOff(path, x, told, true);
    else path.refuse(x, told);
  }

  #label(stage: PlannedStage, what: string): void {
    this.#labels.push(`${stage.name}:${what}`);
  }

  /** The answer begins: what made it a rougher one is known. */
  #settleLabels(): void {
    const { x } = this;
    if (this.#labels.length === 0) return;
    x.degraded = this.#labels.join(', ');
    const { degraded } = this.path.deps.metrics;
    for (const label of this.#labels) degraded.of(x.route!.name, label).add();
  }

  #hold(bytes: number): boolean {
    if (!this.path.deps.buffers.take(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  /** A slow reader holds the answer until the last of it has left. */
  #holdForReader(bytes: number): void {
    const { buffers } = this.path.deps;
    if (buffers.take(bytes)) this.x.caller.whenClosed(() => buffers.give(bytes));
  }

  #cancelAll(but: StageRun | undefined): void {
    for (const run of this.#running) {
      if (!run || run === but) continue;
      this.#over(run, undefined);
      run.cancel();
    }
  }

  /** The request is over, however it ended: nothing of it goes on. */
  #close(): void {
    const { x, path } = this;
    this.#cancelAll(undefined);
    path.deps.buffers.give(this.#held);
    this.#held = 0;
    x.upstreamMs += Math.max(0, this.#activeMs - this.#overheadMs);
    // Each stage told its own when it was over.
    x.steps.sort((a, b) => a.at - b.at);
  }
}

/** The stage whose answer is the caller's: of a `first` the one that it has chosen. */
function answeringStage(
  last: PlannedStage,
  plan: PipelinePlan,
  found: Readonly<Record<string, StageValue>>,
): PlannedStage {
  const { first } = last.settings;
  const chosen = first && chooseFirst(first, (name) => found[name]);
  return chosen === undefined ? last : answeringStage(plan.stage(chosen), plan, found);
}
