import { isDeepStrictEqual } from 'node:util';
import { type Target, writtenTargets } from '../../config/redirect.ts';
import { sameTargets } from '../../config/targets.ts';
import type { LedgerEvent } from '../../events/contracts.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import { pause, type TimerHandle, type Timers } from '../../kernel/timers.ts';
import type { ReleaseReport } from '../../releases/canary/contracts.ts';
import type { Action, Gate, Phase, ReleaseArms } from '../../releases/contracts.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { type Carried, carryOut, type InForce } from './carrying.ts';
import type { Intent, ReleaseControl } from './contracts.ts';
import { askGates } from './gates.ts';
import type { Judge } from './judge.ts';
import type { KeptRelease, ReleaseChange } from './kept.ts';
import { dividedTargets, neededBackends } from './slices.ts';
import { Telling } from './telling.ts';

export interface RunOptions {
  kept: KeptRelease;
  judge: Judge;
  ledger: LedgerService;
  clock: Clock;
  timers: Timers;
  log: Logger;
  gates: readonly Gate[];
  /** It is over, and nothing of it is in force any more. */
  onEnd: () => void;
}

/** How often time alone is looked at; also how soon what could not be done is tried again. */
const TICK_MS = 1000;
/** Evidence since the last checkpoint is read again by the control that comes after this one. */
const CHECKPOINT_MS = 10_000;

const OUTCOMES: Record<Exclude<Action['do'], 'hold'>, string> = {
  share: 'release-share-changed',
  freeze: 'release-edges-told',
  promote: 'release-promoted',
  'roll-back': 'release-rolled-back',
};

/** One release under way: what its machine wants is decided aloud, stored, carried out, seen to be so, and told. */
export class ReleaseRun {
  readonly #options: RunOptions;
  readonly #inForce: InForce;
  readonly #telling: Telling;
  readonly #ending = new AbortController();
  #control: ReleaseControl | undefined;
  #position: number;
  #checkpointMs: number;
  #todo: Action[] = [];
  #carrying: { action: Action; preempt: AbortController } | undefined;
  #working: Promise<void> | undefined;
  /** A snapshot was published since it was last looked whether the files have overtaken it. */
  #unsettled = false;
  /** Who gave the word, where somebody did. */
  #byHand: string | undefined;
  /** Why it is rolled back, where that is not for what the machine knows. */
  #forced: Action['reason'] | undefined;
  #tick: TimerHandle;

  constructor(options: RunOptions) {
    this.#options = options;
    const { share, edges, position } = options.kept.body;
    this.#inForce = { share, ...(edges && { edges }), restored: false };
    this.#position = position;
    this.#telling = new Telling(options.kept, options.ledger);
    this.#checkpointMs = options.clock.mono();
  }

  get id(): string {
    return this.#options.kept.id;
  }
  get kept(): KeptRelease {
    return this.#options.kept;
  }
  get position(): number {
    return this.#position;
  }
  get report(): ReleaseReport {
    return this.#options.judge.report;
  }
  get phase(): Phase {
    return this.#options.judge.phase;
  }
  get share(): number {
    return this.#inForce.share;
  }
  /** Why it cannot do what it wants to. */
  get stuck(): Action['reason'] | undefined {
    return this.#telling.stuck;
  }

  /** How sessions are divided: undefined where they are not. */
  get arms(): ReleaseArms | undefined {
    const { to, baseline, overtaken, ended, shadow } = this.kept.body;
    const { share, edges, restored } = this.#inForce;
    if (restored || overtaken || ended) return undefined;
    const copies = shadow && this.phase === 'shadow';
    return {
      id: this.id,
      canary: to,
      ...(baseline !== undefined && { baseline }),
      share,
      ...(edges && { edges }),
      ...(copies && { shadow }),
    };
  }

  /** Begins, or goes on where it was. */
  begin(control: ReleaseControl): void {
    this.#control = control;
    for (const backend of neededBackends(this.kept.body))
      control.idle.wake(backend, this.kept.body.newest, this.id);
    const { gates, timers, log } = this.#options;
    const { route, to, plan, stress } = this.kept.body;
    const asked = { release: this.id, route, backend: to, ...(stress && { stress }) };
    const open = gates.filter(({ name }) => plan.gates.includes(name) && this.report.gates[name] === 'open');
    void askGates(open, asked, { timers, log, signal: this.#ending.signal }, (name, verdict) => {
      this.#options.judge.gate(name, verdict);
      this.#look();
    });
    this.#beat();
  }

  close(): void {
    this.#ending.abort();
    this.#carrying?.preempt.abort();
    this.#options.timers.clear(this.#tick);
  }

  /** What a worker saw, in the order of the ledger; what is known already is left out. */
  evidence(position: number, event: LedgerEvent): void {
    if (position <= this.#position || this.#ending.signal.aborted) return;
    this.#options.judge.evidence(event);
    this.#position = position;
    this.#look();
  }

  /** False where it is over: then nothing happens. Resolves when it is carried out, or cannot be for now. */
  async abort(actor: string): Promise<boolean> {
    if (!this.#options.judge.abort()) return false;
    this.#byHand = actor;
    this.#carrying?.preempt.abort();
    await this.#worked();
    return true;
  }

  /** The same; not while files have overtaken it. */
  async promote(actor: string): Promise<boolean> {
    if (!this.#options.judge.promote()) return false;
    this.#byHand = actor;
    await this.#worked();
    return true;
  }

  /** A snapshot was published: the files may have been edited, by which the release loses what it goes by. */
  settled(): void {
    if (!this.#control || this.#ending.signal.aborted || this.#forced) return;
    const { route, to } = this.kept.body;
    const { settings } = this.#control.effective;
    if (!settings.routes[route]) this.#force({ code: 'release-route-removed', figures: { route } });
    else if (!settings.backends[to])
      this.#force({ code: 'release-backend-removed', figures: { backend: to } });
    this.#unsettled = true;
    this.#work();
  }

  /** Gives way to files that were edited, and goes on where that was taken back. */
  async #settle(): Promise<void> {
    this.#unsettled = false;
    const { route, overtaken, written, intent } = this.kept.body;
    const { settings, files } = this.#control!.effective;
    const targets = settings.routes[route]?.targets;
    if (!targets || this.#forced || intent?.action.do === 'roll-back') return;
    if (!overtaken && !this.#isAsPut(targets)) await this.#giveWay();
    else if (overtaken && sameTargets(writtenTargets(files, route), written)) await this.#resume();
  }

  /** Before its first share the route is left as it was; and a step may have been carried out, and not be known to be. */
  #isAsPut(targets: readonly Target[]): boolean {
    const { captured, to, intent } = this.kept.body;
    const { share } = this.#inForce;
    if (share === 0 && sameTargets(targets, captured)) return true;
    const action = intent?.action;
    const shares = [
      share,
      ...(action?.do === 'share' ? [action.share] : action?.do === 'promote' ? [1] : []),
    ];
    return shares.some((one) => sameTargets(targets, dividedTargets(captured, to, one)));
  }

  #force(reason: Action['reason']): void {
    if (!this.#options.judge.abort()) return;
    this.#forced = reason;
    this.#look();
  }

  #beat(): void {
    this.settled();
    this.#look();
    if (!this.#ending.signal.aborted) this.#tick = this.#options.timers.set(TICK_MS, () => this.#beat());
  }

  #look(): void {
    if (!this.#control || this.#ending.signal.aborted) return;
    const actions = this.#options.judge.due;
    for (const action of actions) if (action.do === 'hold') this.#telling.held(action.reason, action.causes);
    this.#todo = actions.filter((action) => action.do !== 'hold');
    const back = this.#todo.some((action) => action.do === 'roll-back');
    if (back && this.#carrying?.action.do !== 'roll-back') this.#carrying?.preempt.abort();
    this.#work();
  }

  async #worked(): Promise<void> {
    // What was at work may have been another action, which has given way.
    for (let round = 0; round < 2; round++) {
      this.#look();
      await this.#working;
    }
  }

  /** One thing after another; what comes while it works is seen to before it ends, or at the next beat. */
  #work(): void {
    if (this.#working) return;
    this.#working = this.#workAll()
      .catch((error: Error) => {
        this.#options.log.warn({ err: error, release: this.id }, 'a release cannot go on; it is tried again');
      })
      .finally(() => {
        this.#working = undefined;
      });
  }

  async #workAll(): Promise<void> {
    if (this.#unsettled) await this.#settle();
    for (let action = this.#next; action; action = this.#next) {
      if (!(await this.#carry(action))) {
        // Another may have taken its place while it waited.
        if (this.#next?.do === action.do) break;
      }
    }
    await this.#renewArms();
    await this.#endIfOver();
    const { clock } = this.#options;
    if (this.#position > this.kept.body.position && clock.mono() - this.#checkpointMs >= CHECKPOINT_MS)
      await this.#store({}, []);
  }

  get #next(): Action | undefined {
    if (this.#ending.signal.aborted) return undefined;
    const back = this.#todo.find((action) => action.do === 'roll-back');
    return back ?? (this.kept.body.overtaken ? undefined : this.#todo[0]);
  }

  async #carry(action: Action): Promise<boolean> {
    const preempt = new AbortController();
    this.#carrying = { action, preempt };
    try {
      const intent = await this.#intend(action);
      const carried = await carryOut({
        id: this.id,
        body: this.kept.body,
        intent,
        control: this.#control!,
        timers: this.#options.timers,
        inForce: this.#inForce,
        signal: preempt.signal,
        byHand: this.#byHand !== undefined || intent.actor !== 'armature',
      });
      if (!carried.done) {
        if (carried.reason) this.#telling.cannot(carried.reason, intent.event);
        return false;
      }
      await this.#conclude(action, intent, carried);
      return true;
    } finally {
      this.#carrying = undefined;
    }
  }

  /** Stored before it acts. The same that was decided before a restart stays decided. */
  async #intend(action: Action): Promise<Intent> {
    const { intent } = this.kept.body;
    if (intent && isDeepStrictEqual(wanted(intent.action), wanted(action))) return intent;
    const forced = action.do === 'roll-back' ? this.#forced : undefined;
    const reason = forced ?? action.reason;
    const byHand =
      !forced && (action.do === 'roll-back' || action.do === 'promote') ? this.#byHand : undefined;
    const actor = byHand ?? 'armature';
    const data = { ...wanted(action), reason };
    const event = this.#telling.event({ type: 'release-decided', actor, causes: action.causes, data });
    const made = { action: { ...action, reason }, actor, event: event.id };
    await this.#store({ intent: made, newest: event.id }, [event]);
    return made;
  }

  async #conclude(action: Action, intent: Intent, carried: Extract<Carried, { done: true }>): Promise<void> {
    const { judge } = this.#options;
    const event = this.#telling.event({
      type: OUTCOMES[action.do as keyof typeof OUTCOMES],
      actor: intent.actor,
      causes: [intent.event, ...carried.causes],
      data: { ...carried.figures, reason: intent.action.reason },
    });
    judge.done(action);
    this.#todo = this.#todo.filter((other) => other !== action);
    this.#telling.done();
    const { share, edges } = this.#inForce;
    const over = action.do === 'roll-back' && this.#ended('rolled-back', event, intent.action.reason);
    const change = { intent: undefined, newest: event.id, share, edges, ...(over && { ended: over }) };
    await this.#storeSurely({ ...change, ...(over && { overtaken: undefined }) }, [event]);
    this.#options.log.info({ release: this.id, event: event.id, ...event.data }, event.type);
    if (over) this.#end();
    else this.#look();
  }

  /** A promoted backend was watched for long enough. */
  async #endIfOver(): Promise<void> {
    if (!this.#options.judge.ended || this.#ending.signal.aborted) return;
    const { route, to } = this.kept.body;
    const reason = { code: 'release-watched', figures: { route, to } };
    const event = this.#telling.event({ type: 'release-ended', data: { reason } });
    await this.#store({ ended: this.#ended('promoted', event, reason), newest: event.id }, [event]);
    this.#end();
    await this.#control!.renewSnapshot([event.id]);
  }

  #ended(how: 'promoted' | 'rolled-back', { at, id }: LedgerEvent, reason: Action['reason']) {
    const { left } = this.#inForce;
    return { at, how, event: id, reason, report: this.report, ...(left !== undefined && { left }) };
  }

  #end(): void {
    this.close();
    this.#options.onEnd();
  }

  /** The files were edited: their targets are in force, and the release waits for a word, or its deadline. */
  async #giveWay(): Promise<void> {
    const why: string[] = [];
    for (const type of ['configuration-changed', 'overlay-refused']) {
      const [stored] = await this.#options.ledger.store.ledger.events({ type, order: 'desc', limit: 1 });
      if (stored) why.push(stored.event.id);
    }
    const reason = { code: 'release-file-edited', figures: { route: this.kept.body.route } };
    const event = this.#telling.event({ type: 'release-held', causes: why, data: { reason } });
    this.#inForce.share = 0;
    const overtaken = { code: reason.code, event: event.id };
    await this.#store({ overtaken, newest: event.id }, [event]);
    await this.#control!.renewSnapshot([event.id]);
  }

  /** The edit was taken back. */
  async #resume(): Promise<void> {
    const { route, to, captured, share } = this.kept.body;
    const event = this.#telling.event({ type: 'release-resumed', data: { share } });
    await this.#store({ overtaken: undefined, newest: event.id }, [event]);
    this.#inForce.share = share;
    const targets = dividedTargets(captured, to, share);
    const redirected = { route, targets, release: this.id, actor: 'armature', overFile: false };
    await this.#control!.redirect(redirected, [event.id]);
  }

  async #renewArms(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    const published = this.#control!.snapshots.current.releases?.[this.kept.body.route];
    // What is told to workers has been through JSON.
    if (JSON.stringify(published) !== JSON.stringify(this.arms))
      await this.#control!.renewSnapshot([this.#telling.newest]);
  }

  async #store(change: ReleaseChange, events: readonly LedgerEvent[]): Promise<void> {
    const { judge, clock } = this.#options;
    const state = change.ended ? undefined : judge.state;
    await this.kept.store({ ...change, machine: state, position: this.#position }, events);
    this.#checkpointMs = clock.mono();
    if (change.newest !== undefined) this.#telling.newest = change.newest;
  }

  /** What was done is done: it is stored as soon as it can be. */
  async #storeSurely(change: ReleaseChange, events: readonly LedgerEvent[]): Promise<void> {
    for (;;) {
      try {
        await this.#store(change, events);
        return;
      } catch (error) {
        this.#options.log.warn({ err: error, release: this.id }, 'a release cannot be stored; trying again');
        await pause(this.#options.timers, TICK_MS);
        if (this.#ending.signal.aborted) throw error;
      }
    }
  }
}

/** What of an action makes it the same. */
function wanted(action: Action): Record<string, unknown> {
  return { do: action.do, ...(action.do === 'share' && { share: action.share }) };
}
