import { idTime } from '../kernel/ids.ts';
import type { Store, StoredOrigin } from '../store/contracts.ts';
import type { Evidence, LedgerEvent, RequestRecord, Step } from './contracts.ts';
import type { WhyOrigin, WhyStep } from './why.ts';
import { inWords } from './words.ts';

/** Events of one chain; the causes beyond them are counted. */
const EVENTS_MAX = 100;

/** Attempts as such; how one failed is a step of its own. */
const WENT_OUT = new Set(['sent', 'sent-on-fresh-connection', 'trial']);

const hasFailed = ({ what, code }: Step): boolean => what === 'attempt' && !WENT_OUT.has(code);

/** Where a session moved: that it did, and what chose where it goes. */
const MOVES = /^(moved$|tier-choice@|target-by-weight@)/;

/** Values of one change that are told one by one. */
const CHANGES_MAX = 50;

type Changed = StoredOrigin & { path: string; before?: unknown; after?: unknown };

/** A step before it has its place, and the steps that follow from it: they come before it. */
interface Draft {
  atMs: number;
  step: WhyStep;
  effects: Draft[];
  placed: boolean;
}

/** Gathers what a decision follows from, and puts it in order. */
export class Chain {
  readonly #store: Pick<Store, 'ledger' | 'snapshots'>;
  readonly #drafts: Draft[] = [];
  /** The newest step of each event that has been read. */
  readonly #told = new Map<string, Draft>();
  readonly #origins = new Map<number, Record<string, StoredOrigin>>();
  /** Causes that are to be read, and the steps that name them. */
  #wanted = new Map<string, Draft[]>();

  constructor(store: Pick<Store, 'ledger' | 'snapshots'>) {
    this.#store = store;
  }

  /** Adds a step that stands in no event. */
  say(atMs: number, what: string, code: string, figures: Record<string, unknown>, causes: string[]): void {
    this.#want(this.#add(atMs, what, code, figures, null, causes));
  }

  /** Adds these events and everything that they follow from. */
  async follow(roots: readonly LedgerEvent[]): Promise<void> {
    for (const event of roots) await this.#tell(event, true);
    while (this.#wanted.size > 0) {
      const [id, effects] = this.#wanted.entries().next().value!;
      if (this.#told.size >= EVENTS_MAX) {
        this.#cut();
        return;
      }
      this.#wanted.delete(id);
      const stored = await this.#store.ledger.event(id);
      if (stored) await this.#tell(stored.event, false, effects);
      else this.#missing(id, effects);
    }
  }

  /** Newest first; a cause always after what it caused, whatever the clocks say. */
  steps(): WhyStep[] {
    const left = this.#drafts.toSorted((a, b) => b.atMs - a.atMs);
    const steps: WhyStep[] = [];
    while (left.length > 0) {
      const ready = left.findIndex((draft) => draft.effects.every((effect) => effect.placed));
      // A circle (it cooled an endpoint, and found it cooling) begins with what was asked for, which was added first.
      const next = ready < 0 ? left.indexOf(this.#drafts.find(({ placed }) => !placed)!) : ready;
      const [draft] = left.splice(next, 1);
      draft!.placed = true;
      steps.push(draft!.step);
    }
    return steps;
  }

  async #tell(event: LedgerEvent, isRoot: boolean, effects: Draft[] = []): Promise<void> {
    const draft = recordIn(event)
      ? await this.#tellRequest(event, event.data as unknown as RequestRecord, isRoot)
      : this.#add(
          Date.parse(event.at),
          kindOf(event.subject),
          event.type,
          { ...figuresOf(event), event: event.id, subject: event.subject, actor: event.actor },
          await this.#settingOf(event),
          event.causes,
        );
    this.#tellChanges(event, draft);
    this.#tellReason(event, draft);
    draft.effects.push(...effects);
    this.#told.set(event.id, draft);
    // Other roots may have named it already.
    draft.effects.push(...(this.#wanted.get(event.id) ?? []));
    this.#wanted.delete(event.id);
    this.#want(draft);
  }

  /** Every value that a change of the configuration changed, with its place. */
  #tellChanges({ id, at, data }: LedgerEvent, whole: Draft): void {
    if (!Array.isArray(data.changes)) return;
    for (const { path, before, after, ...origin } of data.changes.slice(0, CHANGES_MAX) as Changed[]) {
      const code =
        before === undefined ? 'value-set' : after === undefined ? 'value-removed' : 'value-changed';
      const figures = { path, before, after, change: id };
      const place = Object.keys(origin).length > 0 ? { path, ...origin } : null;
      this.#add(Date.parse(at), 'configuration', code, figures, place, []).effects.push(whole);
    }
  }

  /** Where what was decided has a reason of its own. */
  #tellReason({ id, at, subject, data }: LedgerEvent, whole: Draft): void {
    if (!isReason(data.reason)) return;
    const { code, figures } = data.reason;
    const told = this.#add(Date.parse(at), kindOf(subject), code, { ...figures, reasonOf: id }, null, []);
    told.effects.push(whole);
  }

  /** The value of the configuration that an event says it goes by. */
  async #settingOf({ data }: LedgerEvent): Promise<WhyOrigin | null> {
    const { setting, snapshot } = data;
    if (typeof setting !== 'string' || typeof snapshot !== 'number') return null;
    return this.#originOf(snapshot, setting);
  }

  /**
   * The request as a whole, then its decisions: all of them for one that was asked for, else attempts that failed, and what
   * moved its session.
   */
  async #tellRequest(event: LedgerEvent, record: RequestRecord, isRoot: boolean): Promise<Draft> {
    const { steps, wallMs, snapshotEvent: _event, ...figures } = record;
    const { id, ...rest } = figures;
    const whole = this.#add(
      Date.parse(event.at),
      'request',
      event.type,
      { request: id, ...rest },
      null,
      event.causes,
    );
    let after = whole;
    const moved = steps.some(({ code }) => code === 'moved');
    for (const step of steps.toReversed()) {
      if (!isRoot && !hasFailed(step) && !(moved && MOVES.test(step.policy ?? step.code))) continue;
      const draft = await this.#tellDecision(
        record,
        step,
        isRoot ? step.figures : { ...step.figures, request: id },
      );
      draft.effects.push(after);
      this.#want(draft);
      after = draft;
    }
    return whole;
  }

  async #tellDecision(record: RequestRecord, step: Step, figures: Record<string, unknown>): Promise<Draft> {
    const origin = step.setting === undefined ? null : await this.#originOf(record.snapshot, step.setting);
    const causes = new Set(step.causes);
    // A value that was changed live follows from that change.
    if (origin?.event !== undefined) causes.add(origin.event);
    if (step.setting !== undefined) causes.add(record.snapshotEvent);
    const { stage, what } = step;
    const told = stage === undefined ? figures : { stage, ...figures };
    const draft = this.#add(record.wallMs + step.at, what, step.code, told, origin, [...causes]);
    // What happened on the way of one stage of a pipeline says of which.
    if (stage !== undefined && what !== 'stage') draft.step.reason = `${stage}: ${draft.step.reason}`;
    return draft;
  }

  #add(
    atMs: number,
    what: string,
    code: string,
    figures: Record<string, unknown>,
    origin: WhyOrigin | null,
    causes: string[],
  ): Draft {
    const at = new Date(atMs).toISOString();
    const step = { at, what, code, reason: inWords(code, figures), figures, origin, causes };
    const draft = { atMs, step, effects: [], placed: false };
    this.#drafts.push(draft);
    return draft;
  }

  #want(draft: Draft): void {
    for (const cause of draft.step.causes) {
      const told = this.#told.get(cause);
      if (told) {
        if (told !== draft) told.effects.push(draft);
        continue;
      }
      const effects = this.#wanted.get(cause) ?? [];
      effects.push(draft);
      this.#wanted.set(cause, effects);
    }
  }

  #missing(id: string, effects: Draft[]): void {
    const atMs = idTime(id) ?? Math.min(...effects.map((effect) => effect.atMs));
    const draft = this.#add(atMs, 'event', 'cause-not-kept', { event: id }, null, []);
    draft.effects.push(...effects);
    this.#told.set(id, draft);
  }

  #cut(): void {
    const oldest = Math.min(...this.#drafts.map((draft) => draft.atMs));
    const draft = this.#add(oldest, 'event', 'chain-cut', { left: this.#wanted.size }, null, []);
    draft.effects.push(...[...this.#wanted.values()].flat());
    this.#wanted = new Map();
  }

  async #originOf(snapshot: number, path: string): Promise<WhyOrigin | null> {
    let origins = this.#origins.get(snapshot);
    if (!origins) {
      origins = (await this.#store.snapshots.get(snapshot))?.origins ?? {};
      this.#origins.set(snapshot, origins);
    }
    return originOf(origins, path);
  }
}

/** What was changed live in the value comes first; then the value's own place, or that of the nearest that holds it. */
function originOf(origins: Record<string, StoredOrigin>, path: string): WhyOrigin | null {
  const live = Object.entries(origins)
    .filter(
      ([inner, { actor }]) =>
        actor !== undefined && /^[.[]/.test(inner.slice(path.length)) && inner.startsWith(path),
    )
    .sort(([, a], [, b]) => ((a.date ?? '') < (b.date ?? '') ? 1 : -1))[0];
  if (live) return { path: live[0], ...live[1] };
  for (let held = path; held !== ''; held = held.replace(/(\.[^.[]*|\[\d+\])$|^[^.[]*$/, '')) {
    if (Object.hasOwn(origins, held)) return { path: held, ...origins[held]! };
  }
  return null;
}

function recordIn({ type, data }: LedgerEvent): boolean {
  return type.startsWith('request-') && Array.isArray(data.steps);
}

/** Its data, save the changes and the reason, which have steps of their own; of evidence its counts. */
function figuresOf({ type, data }: LedgerEvent): Record<string, unknown> {
  if (type === 'evidence-gathered') return countsOf(data as unknown as Evidence);
  const { changes, reason, ...figures } = data;
  if (!isReason(reason) && reason !== undefined) figures.reason = reason;
  if (changes !== undefined) figures.changes = Array.isArray(changes) ? changes.length : changes;
  return figures;
}

function countsOf({ release, route, worker, snapshot, share, arms }: Evidence): Record<string, unknown> {
  const { canary, baseline, stable } = arms;
  return {
    ...{ release, route, worker, snapshot, share },
    canaryRequests: canary.requests,
    canaryFailed: canary.failed,
    otherRequests: baseline.requests + stable.requests,
    otherFailed: baseline.failed + stable.failed,
  };
}

function isReason(value: unknown): value is { code: string; figures: Record<string, unknown> } {
  if (typeof value !== 'object' || value === null) return false;
  const { code, figures } = value as Record<string, unknown>;
  return typeof code === 'string' && typeof figures === 'object' && figures !== null;
}

/** `endpoint:b1|http://...` -> `endpoint` */
function kindOf(subject: string): string {
  const colon = subject.indexOf(':');
  return colon < 0 ? subject : subject.slice(0, colon);
}
