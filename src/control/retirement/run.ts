import { join } from 'node:path';
import { ApiFault } from '../../api/contracts.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { LedgerEvent } from '../../events/contracts.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import { pause, type TimerHandle, type Timers } from '../../kernel/timers.ts';
import type { Snapshot } from '../../links/messages.ts';
import { Callers, cameAtMs } from '../../releases/retirement/calls.ts';
import { RETIREMENT_KIND, type RetirementDocument } from '../../releases/retirement/contracts.ts';
import { drained, isDrained, referencesTo, restored } from '../../releases/retirement/references.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Gateways } from '../gateways.ts';
import { exportRecords } from './export.ts';
import { callsAfter } from './scan.ts';
import { askWorkers } from './workers.ts';

/** How often it is looked whether requests have ended, and whether anybody calls. */
const LOOK_MS = 2_000;
/** Within this time what a worker saw is in the ledger. So nothing is proven in less. */
export const TOLD_MS = 5_000;

/** What a retirement needs of control. */
export interface RetirementControl {
  readonly effective: { settings: Settings; shown: Record<string, unknown> };
  readonly snapshots: { current: Pick<Snapshot, 'number'> };
  readonly gateways: Pick<Gateways, 'peers' | 'ask'>;
  change(body: string, actor: string): Promise<{ event: string }>;
}

export interface RunOptions {
  ledger: LedgerService;
  log: Logger;
  clock: Clock;
  timers: Timers;
  /** The data directory. */
  data: string;
  /** Who uses a version, in words. */
  usersOf: (version: string) => Promise<string[]>;
  /** The last step: keys and versions. Done again it does nothing more. */
  last: (body: Readonly<RetirementDocument>, actor: string) => Promise<{ keys: string[]; archived: boolean }>;
}

/** One retirement, step by step: each is in the ledger, and kept, before the next. */
export class RetirementRun {
  readonly id: string;
  /** Why it does not go on, in words. */
  stuck: string | undefined;
  readonly #options: RunOptions;
  #body: RetirementDocument;
  #revision: number;
  #control: RetirementControl | undefined;
  #timer: TimerHandle;
  #turn: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(id: string, body: RetirementDocument, revision: number, options: RunOptions) {
    this.id = id;
    this.#body = body;
    this.#revision = revision;
    this.#options = options;
  }

  get body(): Readonly<RetirementDocument> {
    return this.#body;
  }

  begin(control: RetirementControl): void {
    this.#control = control;
    // Nobody has looked while control was away, and what workers have seen meanwhile is not in the ledger yet.
    const isProven = this.#body.state === 'proven';
    if (this.#body.state === 'watching' || isProven) this.#body.quietSinceMs = this.#options.clock.wall();
    this.#goOn(isProven ? TOLD_MS : 1);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#options.timers.clear(this.#timer);
    await this.#turn;
  }

  /** Everything is as it was before. Throws an ApiFault once the last step has begun. */
  undo(actor: string): Promise<void> {
    return this.#inTurn(async () => {
      const { state, subject, plan } = this.#body;
      if (state === 'undone') return;
      if (state === 'finishing' || state === 'finished')
        throw new ApiFault(
          409,
          'conflict',
          `${this.id} has made its last step: it cannot be undone any more.`,
        );
      const part = restored(this.#control!.effective.settings, subject, plan.drains);
      const changed = part && (await this.#control!.change(JSON.stringify(part), actor));
      await this.#keep({ state: 'undone' }, 'retirement-undone', actor, {}, changed ? [changed.event] : []);
      this.stuck = undefined;
    });
  }

  /** The last step. Throws an ApiFault where it is not proven that nobody calls it. */
  finish(actor: string): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#body.state === 'finished') return;
      if (this.#body.state === 'proven') await this.#lookOnceMore();
      if (this.#body.state !== 'proven' && this.#body.state !== 'finishing')
        throw new ApiFault(409, 'conflict', this.#notYet());
      if (this.#body.state === 'proven')
        await this.#keep({ state: 'finishing' }, 'retirement-finishing', actor, {}, []);
      await this.#finish(actor);
    });
  }

  /** Whether it is still as it was proven. Throws an ApiFault where that cannot be seen now. */
  async #lookOnceMore(): Promise<void> {
    const { clock, timers } = this.#options;
    const { quietSinceMs = 0 } = this.#body;
    const leftMs = quietSinceMs + TOLD_MS - clock.wall();
    if (leftMs > 0) await pause(timers, Math.min(leftMs, TOLD_MS));
    this.stuck = undefined;
    await this.#watch();
    if (this.#body.state === 'proven' && this.stuck !== undefined)
      throw new ApiFault(409, 'conflict', `It cannot be seen whether anybody calls it now: ${this.stuck}.`);
  }

  #notYet(): string {
    const { state, watchMs, lastCall } = this.#body;
    if (state === 'undone') return `${this.id} was undone.`;
    const called = lastCall ? ` '${lastCall.tenant}' called it last, at ${lastCall.lastAt}.` : '';
    const waits = this.stuck === undefined ? '' : ` It waits: ${this.stuck}.`;
    return `It is not proven yet that nobody calls it: ${Math.round(watchMs / 1000)} s without a call are wanted.${called}${waits}`;
  }

  /** One thing at a time. */
  #inTurn<Result>(run: () => Promise<Result>): Promise<Result> {
    const next = this.#turn.then(run);
    this.#turn = next.catch(() => undefined);
    return next;
  }

  #goOn(afterMs: number): void {
    const { timers } = this.#options;
    timers.clear(this.#timer);
    if (this.#closed || this.#body.state === 'finished' || this.#body.state === 'undone') return;
    this.#timer = timers.set(afterMs, () => {
      void this.#inTurn(() => this.#look()).finally(() => this.#goOn(LOOK_MS));
    });
  }

  async #look(): Promise<void> {
    if (this.#closed) return;
    try {
      this.stuck = undefined;
      const { state, startedBy } = this.#body;
      if (state === 'draining') await this.#drain();
      else if (state === 'watching' || state === 'proven') await this.#watch();
      else if (state === 'finishing') await this.#finish(startedBy);
    } catch (error) {
      this.stuck = (error as Error).message;
      this.#options.log.warn(
        { err: error, retirement: this.id },
        'a retirement does not go on; it is tried again',
      );
    }
  }

  /** Nobody is sent there any more, and what runs there ends; then what is known of it is written out. */
  async #drain(): Promise<void> {
    const { subject, startedBy } = this.#body;
    const { ledger, clock, data } = this.#options;
    const control = this.#control!;
    const { settings } = control.effective;
    const part = isDrained(settings, subject) ? undefined : drained(settings, subject);
    const changed = part && (await control.change(JSON.stringify(part), startedBy));
    const { inflight, lacking } = await askWorkers(subject, control);
    this.stuck = inflight > 0 ? `${inflight} requests still run there` : lacking;
    if (this.stuck !== undefined) return;
    if (this.#body.drainedMs === undefined)
      await this.#keep(
        { drainedMs: clock.wall() },
        'retirement-drained',
        'armature',
        { inflight, snapshot: control.snapshots.current.number },
        changed ? [changed.event] : [],
      );
    const folder = join(data, 'retired', this.id);
    const position = await ledger.store.ledger.head();
    const exported = await exportRecords(ledger.store.ledger, subject, folder, this.#slice());
    await this.#keep(
      { exported, state: 'watching', position, quietSinceMs: clock.wall() },
      'retirement-exported',
      'armature',
      { ...exported },
      [],
    );
  }

  /** What the configuration says of it, secrets masked. */
  #slice(): unknown {
    const { subject, plan } = this.#body;
    const shown = this.#control!.effective.shown as Record<string, Record<string, unknown> | undefined>;
    const section = subject.kind === 'backend' ? 'backends' : 'routes';
    const own =
      subject.kind === 'version' ? {} : { [section]: { [subject.name]: shown[section]?.[subject.name] } };
    return { ...own, targets: plan.drains, references: plan.references };
  }

  /** A call begins the watch anew; so does somebody who sends requests there again, and a worker whose calls are not known. */
  async #watch(): Promise<void> {
    const { subject, drainedMs = 0, state } = this.#body;
    const { ledger, clock } = this.#options;
    const now = clock.wall();
    const { inflight, lacking, away } = await askWorkers(subject, this.#control!);
    const found = await callsAfter(ledger.store.ledger, subject, this.#body.position ?? 0);
    const calls = found.calls.filter((event) => cameAtMs(event) > drainedMs);
    const { settings } = this.#control!.effective;
    const isNamed = referencesTo(settings, subject).some(({ blocks }) => blocks);
    const [user] = subject.kind === 'version' ? await this.#options.usersOf(subject.name) : [];
    const isOpen = isNamed || user !== undefined || !isDrained(settings, subject);
    this.#body.position = found.position;
    if (calls.length > 0 || isOpen || inflight > 0) {
      await this.#called(calls, now);
      if (isOpen)
        this.stuck = `${user === undefined ? 'requests are sent there' : `${user} uses it`} again: undo it, or take that back`;
      return;
    }
    if (away) this.#body.quietSinceMs = now;
    this.stuck = lacking;
    const quietMs = now - (this.#body.quietSinceMs ?? now);
    if (state !== 'watching' || lacking !== undefined || quietMs < this.#body.watchMs) return;
    const workers = this.#control!.gateways.peers.length;
    await this.#keep({ state: 'proven' }, 'retirement-proven', 'armature', { quietMs, workers }, []);
  }

  async #called(calls: readonly LedgerEvent[], now: number): Promise<void> {
    const callers = new Callers();
    for (const event of calls) callers.add(event);
    const [last] = callers.list;
    this.#body.quietSinceMs = now;
    if (!last) {
      this.#body.state = 'watching';
      return;
    }
    const count = callers.list.reduce((sum, { requests }) => sum + requests, 0);
    const causes = last.lastRequest === undefined ? [] : [last.lastRequest];
    const { tenant, lastAt } = last;
    await this.#keep(
      { state: 'watching', calls: this.#body.calls + count, lastCall: last },
      'retirement-called',
      'armature',
      { tenant, count, lastAt },
      causes,
    );
  }

  async #finish(actor: string): Promise<void> {
    const { clock, last } = this.#options;
    const done = await last(this.#body, actor);
    const finished = { at: new Date(clock.wall()).toISOString(), ...done };
    await this.#keep({ state: 'finished', finished }, 'retirement-finished', actor, { ...done }, []);
  }

  async #keep(
    change: Partial<RetirementDocument>,
    type: string,
    actor: string,
    data: Record<string, unknown>,
    causes: string[],
  ): Promise<void> {
    const { ledger } = this.#options;
    const { subject, newest } = this.#body;
    const event = ledger.event({
      type,
      subject: `retirement:${this.id}`,
      actor,
      causes: [newest, ...causes],
      data: { what: subject.kind, name: subject.name, ...data },
    });
    const body: RetirementDocument = { ...this.#body, ...change, newest: event.id };
    await ledger.store.documents.change(
      [{ kind: RETIREMENT_KIND, id: this.id, body, on: this.#revision }],
      [event],
    );
    this.#body = body;
    this.#revision++;
  }
}
