import type { WorkerMetrics } from '../telemetry/metrics.ts';
import { isAwaited } from './cold-start.ts';
import { reckonCost, weightOf } from './cost.ts';
import type { Exchange } from './exchange.ts';
import { noteDecision } from './note-decision.ts';
import { fixedAnswer } from './own-answers.ts';
import type { Path } from './path.ts';
import { speaks } from './state/targets.ts';

/** Why a request is not answered in full whose priority is held at a rung of shorter answers. */
const HELD = 'rung-held';

/** Walks down the ladder to the next rung that can answer; where there is none, the caller is told the failure. */
export function descend(path: Path, x: Exchange): void {
  const { clock, metrics } = path.deps;
  const call = x.call!;
  const route = x.route!;
  const ladder =
    x.terms?.ladder === false ||
    isPinned(x) ||
    isSequence(x) ||
    call.kind === 'model' ||
    call.kind === 'model-ready'
      ? []
      : route.settings.ladder;
  const now = clock.mono();
  x.leaveLine?.();
  for (let at = x.rung + 1; at < ladder.length; at++) {
    const rung = ladder[at]!;
    if ('answer' in rung) {
      if (x.failure?.code === 'invalid_request') continue; // too long for any model: it is the caller who can help it
      x.degraded = 'answer';
      const answer = fixedAnswer(x, call, rung.answer);
      if (!answer) continue;
      path.step(x, 'rung', 'fixed-answer', { rung: at, ...why(x) }, settingOf(x, at));
      countRung(metrics, x);
      x.attempt = undefined;
      path.answer(x, answer, 'degraded');
      return;
    }
    if ('cached' in rung && path.deps.answers.stale(path, x, at, rung.cached.staleMax)) return;
    if ('output' in rung && answerShorter(path, x, at, rung.output.tokensMax, now)) return;
    if ('backend' in rung && takeBackend(path, x, at, rung.backend, now)) return;
  }
  x.degraded = undefined;
  const failure = x.failure!;
  path.refuse(
    x,
    failure.code === 'overloaded'
      ? { ...failure, retryAfterSeconds: Math.max(failure.retryAfterSeconds ?? 0, retryAfter(x, now)) }
      : failure,
  );
}

/** Counts an answer of the rung that the request has come to, and the want that a rung without an engine stands for. */
export function countRung(metrics: WorkerMetrics, { degraded, failure, shedFor, route }: Exchange): void {
  if (degraded === undefined) return;
  metrics.degraded.of(route!.name, degraded).add();
  if (degraded === 'answer' || degraded === 'cached') {
    metrics.shed.of(route!.name, shedFor ?? failure?.code ?? 'overloaded').add();
  }
}

/** Goes to another backend, where that can take it while there is time. */
function takeBackend(path: Path, x: Exchange, at: number, name: string, now: number): boolean {
  const backend = path.deps.world.backends.get(name);
  if (now >= x.deadlineAt || !backend || !speaks(backend, x.call!.protocol)) return false;
  const usable = backend.endpoints.some((endpoint) => endpoint.waitMs(now) === 0 && endpoint.hasRoom);
  if (!usable && !isAwaited(path, x, backend, now)) return false;
  x.rung = at;
  x.degraded = 'backend';
  if (x.outputTokensMax !== undefined) inFull(x);
  x.targets = [{ name, weight: 1, backend }];
  x.attemptsOfRung = 0;
  x.backend = undefined;
  path.step(x, 'rung', 'other-backend', { rung: at, backend: name, ...why(x) }, settingOf(x, at));
  path.plan(x, false);
  return true;
}

/**
 * Requests of this priority are held at a rung of shorter answers: this one goes straight there, or to one above it that can
 * take it. False where it is for a full answer: there is room again, or it is as short already.
 */
export function goStraight(path: Path, x: Exchange): boolean {
  const route = x.route!;
  const hold = route.hold!;
  const now = path.deps.clock.mono();
  const input = { priority: x.rank, waiting: 0, used: 0, places: 0 };
  const at = hold.read(input, now).rung;
  const rung = at === undefined ? undefined : route.settings.ladder[at];
  if (rung === undefined || !('output' in rung) || !shortens(x, rung.output.tokensMax)) return false;
  for (const { backend } of x.targets) {
    input.waiting += backend.line.length;
    for (const endpoint of backend.endpoints) {
      if (endpoint.waitMs(now) > 0) continue;
      input.used += endpoint.inflight;
      input.places += endpoint.limit;
    }
  }
  const read = hold.read(input, now);
  const { choice, reason } = hold.decide(input, now);
  noteDecision(x, now, 'rung', { policy: hold, reason, input: read, draws: [], setting: settingOf(x, at!) });
  if (choice === undefined) return false;
  x.shedFor = HELD;
  for (let above = 0; above < choice; above++) {
    const better = route.settings.ladder[above]!;
    if ('cached' in better && path.deps.answers.stale(path, x, above, better.cached.staleMax)) return true;
    if ('backend' in better && takeBackend(path, x, above, better.backend, now)) return true;
  }
  x.shedFor = undefined;
  shorten(x, choice, rung.output.tokensMax);
  path.plan(x, false);
  return true;
}

/**
 * A smaller budget of output at the same targets, for a request that was not sent as there was no room for it in time. Others
 * like it follow it there from now on, which is what makes room. It helps this one itself where the whole answer is due by the
 * deadline: then a shorter one may still fit.
 */
function answerShorter(path: Path, x: Exchange, at: number, tokensMax: number, now: number): boolean {
  if (x.shedFor === undefined || x.attempts > 0 || !shortens(x, tokensMax)) return false;
  x.route!.hold?.observe({ kind: 'taken', priority: x.rank, rung: at }, now);
  const isLate = x.shedFor === 'would-miss-deadline' || x.shedFor === 'too-late-to-serve';
  if (!isLate || x.call!.stream || now >= x.deadlineAt) return false;
  path.step(x, 'rung', 'shorter-answer', { rung: at, tokensMax, ...why(x) }, settingOf(x, at));
  shorten(x, at, tokensMax);
  path.plan(x, false);
  return true;
}

/** Whether it would have longer answers without the rung. */
function shortens(x: Exchange, tokensMax: number): boolean {
  const call = x.call!;
  if (call.protocol !== 'openai' || call.kind === 'embeddings') return false;
  return (
    tokensMax < Math.min(call.request.outputTokensMax ?? tokensMax + 1, x.outputTokensMax ?? tokensMax + 1)
  );
}

function shorten(x: Exchange, at: number, tokensMax: number): void {
  x.rung = at;
  x.degraded = 'output';
  x.cost = shortened(x, tokensMax);
  x.outputTokensMax = tokensMax;
  x.targets = x.route!.targets[x.call!.protocol];
  x.lookedUpIn = x.snapshot;
  x.attemptsOfRung = 0;
}

function shortened({ cost, call }: Exchange, tokensMax: number): Exchange['cost'] {
  const choices = call!.protocol === 'openai' ? call!.request.choices : 1;
  return { tokensIn: cost.tokensIn, tokensOut: Math.min(cost.tokensOut, tokensMax * choices) };
}

/** Below a rung of shorter answers another one gives what the caller asked for. */
function inFull(x: Exchange): void {
  x.outputTokensMax = undefined;
  x.cost = reckonCost(x.call!, x.caller.body.length, x.route!.usualOut.value);
}

/**
 * An answer held its place for `ms`: the hold has to know what it would have taken of the targets in full. So of those that it
 * kept away from them as well.
 */
export function tellHold(x: Exchange, ms: number, now: number): void {
  const away = x.shedFor === HELD;
  if (!away && !isAtTargets(x)) return;
  const full = !away && x.outputTokensMax === undefined;
  const inFull = full ? 1 : weightOf(reckonCost(x.call!, x.caller.body.length, x.route!.usualOut.value));
  x.route!.hold!.observe(
    { kind: 'served', ms, growth: full ? 1 : Math.max(1.01, inFull / weightOf(x.cost)) },
    now,
  );
}

/** It is at its route's own targets, for a full answer or a shorter one. */
export function isAtTargets({ rung, outputTokensMax }: Exchange): boolean {
  return rung < 0 || outputTokensMax !== undefined;
}

/** What brought it down the ladder. */
function why({ shedFor, failure }: Exchange): { for?: string } {
  const cause = shedFor ?? failure?.code;
  return cause === undefined ? {} : { for: cause };
}

function settingOf({ route }: Exchange, at: number): string {
  return `routes.${route!.name}.ladder[${at}]`;
}

/** The earliest moment at which an endpoint of the route may be used again, in whole seconds. */
function retryAfter(x: Exchange, now: number): number {
  const waits = x
    .route!.targets[x.call!.protocol].flatMap(({ backend: { host, endpoints } }) =>
      host?.coming(endpoints.length, now)
        ? [host.leftMs(now)]
        : endpoints.map((endpoint) => endpoint.waitMs(now)),
    )
    .filter((ms) => ms < Number.POSITIVE_INFINITY);
  const earliest = waits.length > 0 ? Math.min(...waits) : 1000;
  return Math.max(1, Math.ceil(earliest / 1000));
}

/** `/versions/N` names one version: nothing else may answer. */
export function isPinned(x: Exchange): boolean {
  return x.call!.protocol === 'oip' && x.call!.version !== undefined;
}

/** Its state lies at one endpoint: no other may answer. */
export function isSequence(x: Exchange): boolean {
  return x.call!.protocol === 'oip' && x.call!.request?.sequence !== undefined;
}
