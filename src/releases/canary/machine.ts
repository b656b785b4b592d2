import { assert } from '../../kernel/assert.ts';
import type { Action, Phase, StoredEvidence } from '../contracts.ts';
import { EvidenceBook, type Settled } from './book.ts';
import { brokenMember } from './broken-evidence.ts';
import type { ReleasePlan, ReleaseReport } from './contracts.ts';
import { nextOf, viewsNow } from './course.ts';
import { reportOf } from './report.ts';
import { type CanaryState, phaseEndsMs, type Standing, standingAtStart } from './state.ts';
import { harmOf, SKEWED_AT, shown, stepsOf } from './verdict.ts';
import { watchBase, worseThanBounds } from './watch.ts';

export type { CanaryState } from './state.ts';

/** A canary that is new to sessions has cold caches: times of so many milliseconds after a change of the share are left out. */
const SETTLE_MS = 60_000;
/** A hold is told again when its reason changes, and not more often than this. */
const HOLD_EVERY_MS = 60_000;
/** Events of evidence that an action names as its causes. */
const CAUSES_MAX = 4;

type Reason = Action['reason'];

/**
 * Runs one release: evidence and time go in, actions with their reasons come out. It does no I/O and draws no chance, so that
 * the same evidence at the same times gives the same actions, live, after a restart and in simulation.
 */
export class CanaryMachine {
  readonly #plan: ReleasePlan;
  readonly #standing: Standing;
  readonly #book: EvidenceBook;

  private constructor(plan: ReleasePlan, standing: Standing, book: EvidenceBook) {
    assert(stepsOf(plan).length > 0, 'a plan has a step below 100 %');
    this.#plan = plan;
    this.#standing = standing;
    this.#book = book;
  }

  static begin(plan: ReleasePlan, nowMs: number): CanaryMachine {
    return new CanaryMachine(plan, standingAtStart(plan, nowMs), new EvidenceBook(plan));
  }

  static restore(state: CanaryState): CanaryMachine {
    const { plan, standing, book } = structuredClone(state);
    return new CanaryMachine(plan, standing, new EvidenceBook(plan, book, standing.edges));
  }

  /** As JSON, whole, and a copy. Some 200 kB where much was seen. */
  get state(): CanaryState {
    return structuredClone({
      shape: 1,
      plan: this.#plan,
      standing: this.#standing,
      book: this.#book.toJSON(),
    } satisfies CanaryState);
  }

  get phase(): Phase {
    return this.#standing.phase;
  }
  /** Nothing more will come of it. */
  get ended(): boolean {
    return this.#standing.ended;
  }

  /** Takes in what a worker saw, once for each event of the ledger, in their order. */
  evidence({ event, evidence }: StoredEvidence): void {
    const standing = this.#standing;
    if (evidence.release !== this.#plan.id || standing.ended) return;
    const member = brokenMember(evidence);
    if (member !== undefined) {
      standing.broken ??= { event, member };
      return;
    }
    this.#book.take(evidence, this.#settled());
    const e = this.#book.assignment.skewed();
    if (e >= Math.log(SKEWED_AT)) standing.skewed ??= { event, e: shown(e) };
    if (evidence.arms.canary.requests === 0 && evidence.pairs.length === 0) return;
    standing.recent.push(event);
    if (standing.recent.length > CAUSES_MAX) standing.recent.shift();
  }

  /** A gate of the plan has been passed, or not: then the release is rolled back. `event` tells of it. */
  gate(name: string, passed: boolean, event: string): void {
    assert(this.#standing.gates[name] !== undefined, `${name} is a gate of the plan`);
    this.#standing.gates[name] = passed ? 'passed' : 'failed';
    if (!this.#standing.gateEvents.includes(event)) this.#standing.gateEvents.push(event);
  }

  /**
   * What is to be done now; to be called after evidence, and every second or so. An action that changes anything is given
   * again at each call until `done` says that it was carried out, or another takes its place (a rollback does). `hold` asks
   * for nothing: it is told when its reason changes, unless it is the plan itself that makes it wait.
   */
  advance(nowMs: number): Action[] {
    const standing = this.#standing;
    if (standing.ended) return [];
    const action = this.#wayBack ?? (standing.phase === 'promoted' ? this.#watched(nowMs) : this.#due(nowMs));
    if (!action) return [];
    if (action.do !== 'hold') {
      standing.intent = action;
      return [action];
    }
    const { held } = standing;
    const { code } = action.reason;
    if (code === 'release-step-unripe') return []; // as planned: the report says it
    if (held && (held.code === code || nowMs - held.atMs < HOLD_EVERY_MS)) return [];
    standing.held = { code, atMs: nowMs };
    return [action];
  }

  /** The action was carried out. */
  done(action: Action, nowMs: number): void {
    const standing = this.#standing;
    if (action.do === 'hold') return;
    standing.last = action.reason;
    delete standing.intent;
    delete standing.held;
    if (action.do === 'freeze') {
      standing.edges = this.#book.edges = action.edges;
      standing.settledMs = nowMs + SETTLE_MS;
    }
    if (action.do === 'share') {
      standing.share = action.share;
      standing.step = stepsOf(this.#plan).findIndex(({ share }) => share === action.share);
      standing.stepSinceMs = nowMs;
      standing.stepSessionsBefore = this.#book.counts.sessions;
      standing.settledMs = nowMs + SETTLE_MS;
      if (standing.phase !== 'canary') this.#enter('canary', nowMs);
    }
    if (action.do === 'promote') {
      standing.share = 1;
      standing.settledMs = nowMs + SETTLE_MS;
      standing.watch = { sinceMs: nowMs, base: watchBase(this.#book) };
      delete standing.word;
      this.#enter('promoted', nowMs);
    }
    if (action.do === 'roll-back') {
      standing.share = 0;
      standing.ended = true;
      this.#enter('rolled-back', nowMs);
    }
  }

  /** An operator's word: false where nothing is in progress, and then nothing happens. It wins over everything. */
  abort(): boolean {
    if (this.#standing.ended) return false;
    this.#standing.word = 'abort';
    return true;
  }

  /** An operator's word; false where there is nothing to promote any more. An abort, and harm, win over it. */
  promote(): boolean {
    const { ended, phase, word, intent } = this.#standing;
    if (ended || phase === 'promoted' || word === 'abort' || intent?.do === 'roll-back') return false;
    this.#standing.word = 'promote';
    return true;
  }

  report(nowMs: number): ReleaseReport {
    return reportOf(this.#plan, this.#standing, this.#book, nowMs);
  }

  /** A rollback that is under way goes on for its own reason; an operator's abort takes the place of anything else. */
  get #wayBack(): Action | undefined {
    const { intent, word } = this.#standing;
    if (intent?.do === 'roll-back') return intent;
    return word === 'abort' ? this.#rollBack('release-aborted-by-operator', {}) : undefined;
  }

  #due(nowMs: number): Action {
    const standing = this.#standing;
    const failed = Object.keys(standing.gates).find((gate) => standing.gates[gate] === 'failed');
    if (failed) return this.#rollBack('release-gate-failed', { gate: failed }, standing.gateEvents);
    const harm = harmOf(this.#plan, viewsNow(this.#plan, this.#book));
    if (harm?.by === 'metric') {
      const { metric, harm: e, harmAt } = harm.view;
      return this.#rollBack('release-metric-worse', { metric, e: shown(e), at: shown(harmAt) });
    }
    if (harm) return this.#rollBack('release-metrics-worse', { e: shown(harm.log), at: shown(harm.at) });
    if (standing.intent?.do === 'promote') return standing.intent;
    if (standing.word === 'promote')
      return this.#causing({ do: 'promote', reason: { code: 'release-promoted-by-operator', figures: {} } });
    const late = nowMs >= phaseEndsMs(this.#plan, standing)!;
    if (!late && standing.intent) return standing.intent;
    if (standing.phase === 'gates' && !late) this.#passGates(nowMs);
    const next = nextOf(this.#plan, standing, this.#book, nowMs);
    if (!late || next.do === 'promote') return this.#causing(next);
    const figures = { phase: standing.phase, ...(next.do === 'hold' ? { for: next.reason.code } : {}) };
    return this.#rollBack('release-deadline-passed', figures);
  }

  /** What a promoted backend may still be rolled back for. */
  #watched(nowMs: number): Action | undefined {
    const standing = this.#standing;
    const { sinceMs, base } = standing.watch!;
    const worse = worseThanBounds(this.#plan, this.#book, base);
    if (worse) {
      const { metric, rate, bound, log, at } = worse;
      const figures = { metric, rate: Number(rate.toPrecision(3)), bound, e: shown(log), at: shown(at) };
      return this.#rollBack('release-worse-after-promotion', figures);
    }
    if (nowMs >= sinceMs + this.#plan.watchMs) standing.ended = true;
    return undefined;
  }

  /** Copies come before callers, where there are to be any; that needs nobody to do anything. */
  #passGates(nowMs: number): void {
    const open = Object.values(this.#standing.gates).some((gate) => gate === 'open');
    if (!open && this.#plan.shadow) this.#enter('shadow', nowMs);
  }

  #enter(phase: Standing['phase'], nowMs: number): void {
    this.#standing.phase = phase;
    this.#standing.phaseSinceMs = nowMs;
  }

  #settled(): Settled {
    const { edges, settledMs = Number.POSITIVE_INFINITY } = this.#standing;
    return {
      timesMs: edges ? settledMs : Number.POSITIVE_INFINITY,
      costsMs: edges?.cost === undefined ? Number.POSITIVE_INFINITY : settledMs,
    };
  }

  #rollBack(code: string, figures: Reason['figures'], causes = this.#standing.recent): Action {
    return { do: 'roll-back', reason: { code, figures }, causes: [...causes] };
  }

  #causing<Some extends Pick<Action, 'do' | 'reason'>>(some: Some): Some & { causes: string[] } {
    const { recent, broken, skewed, gateEvents } = this.#standing;
    const code = some.reason.code;
    if (code === 'release-evidence-broken') return { ...some, causes: [broken!.event] };
    if (code === 'release-arms-skewed') return { ...some, causes: [skewed!.event] };
    if (code === 'release-canary-begins') return { ...some, causes: [...gateEvents, ...recent] };
    return { ...some, causes: [...recent] };
  }
}
