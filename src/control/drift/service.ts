import type { Settings } from '../../config/schema/index.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { Observation } from '../../links/messages.ts';
import { incidentIn, type Notice } from '../../releases/drift/backend-monitor.ts';
import { StoreError } from '../../store/contracts.ts';
import { everyDocument } from '../../store/every-document.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { RunHook } from './hook.ts';
import { languageOf } from './language.ts';
import { Predictions } from './predictions.ts';
import { Retraining } from './retraining.ts';
import { keyOf, Watched, type WatchedDocument, watchedBy } from './watched.ts';

export interface DriftOptions {
  ledger: LedgerService;
  clock: Clock;
  timers: Timers;
  random: Random;
  log: Pick<Logger, 'warn'>;
  runHook: RunHook;
}

/** What is needed of control. */
export interface DriftControl {
  readonly effective: { readonly settings: Settings };
  readonly gateways: {
    onObservations: ((observations: readonly Observation[], lost: number) => void) | undefined;
  };
}

export interface LabelsTaken {
  matched: number;
  /** Of no answer that was observed lately, or of one that has its label. */
  unmatched: number;
  /** Of answers that told no class to hold the label against. */
  unusable: number;
}

/** A label of one answer: what would have been right, or whether it was. */
export interface Label {
  /** Armature's id of the request, or the caller's own. */
  request: string;
  label?: string | number | undefined;
  right?: boolean | undefined;
}

const KIND = 'drift';
const STORE_MS = 5_000;
/** Characters that are stored at one time: of many that are watched, some wait for the next. */
const STORED_CHARS_MAX = 2 * 1024 * 1024;

/**
 * Watches what workers observe: a monitor for each backend of each route that has `drift`. Its state is stored every few
 * seconds, and whenever it tells something, so that a control that follows goes on from there.
 */
export class DriftService {
  readonly #options: DriftOptions;
  readonly #predictions: Predictions;
  readonly #retraining: Retraining;
  readonly #watched = new Map<string, Watched>();
  /** What an earlier control left, until the settings say what becomes of it. */
  readonly #found = new Map<string, { body: WatchedDocument; revision: number }>();
  readonly #gone = new Map<string, number>();
  #control: DriftControl | undefined;
  /** Those that what is watched follows from; control's may be newer until something comes. */
  #settings: Settings | undefined;
  #timer: TimerHandle;
  #storing: Promise<void> | undefined;
  #closed = false;
  #observed = 0;
  #lost = 0;

  private constructor(options: DriftOptions) {
    this.#options = options;
    this.#predictions = new Predictions(options.ledger.store.documents);
    const { ledger, timers, runHook } = options;
    this.#retraining = new Retraining({
      ledger,
      timers,
      runHook,
      changed: (watched) => this.#changed(watched),
    });
  }

  static async open(options: DriftOptions): Promise<DriftService> {
    const service = new DriftService(options);
    const { documents } = options.ledger.store;
    for await (const { id, body, revision } of everyDocument(documents, KIND))
      service.#found.set(id, { body: body as WatchedDocument, revision });
    await service.#predictions.load();
    return service;
  }

  /** `settings`: those that run now. */
  begin(control: DriftControl): void {
    this.#control = control;
    control.gateways.onObservations = (observations, lost) => this.observe(observations, lost);
    this.#swap();
  }

  /** Takes the settings that run now: what they do not watch any more is forgotten, what they watch otherwise begun anew. */
  #swap(): void {
    const { settings } = this.#control!.effective;
    if (settings === this.#settings) return;
    this.#settings = settings;
    for (const [key, { body, revision }] of this.#found) {
      const { drift } = settings.routes[body.route] ?? {};
      const model = settings.backends[body.backend]?.model;
      if (drift && body.settings === watchedBy(drift) && model === body.model) {
        const watched = new Watched(body.route, body.backend, body.model, drift);
        try {
          watched.restore(body, revision);
          this.#watched.set(key, watched);
          this.#retraining.goOn(watched);
          continue;
        } catch (error) {
          // Such as what another release of Armature has stored.
          this.#options.log.warn({ err: error, drift: key }, 'what is stored of drift is not understood');
        }
      }
      this.#gone.set(key, revision);
      this.#storeSoon(STORE_MS);
      const reason = model === body.model ? 'settings-changed' : 'model-changed';
      if (drift && model !== undefined) this.#tellRenewed(body, reason, 'armature', incidentIn(body.monitor));
    }
    this.#found.clear();
    for (const watched of [...this.#watched.values()]) {
      const { drift } = settings.routes[watched.route] ?? {};
      const model = settings.backends[watched.backend]?.model;
      if (!drift || model === undefined) this.#forget(watched);
      else if (model !== watched.model) this.#renew(watched, 'model-changed', 'armature');
      else if (watchedBy(drift) !== watchedBy(watched.settings))
        this.#renew(watched, 'settings-changed', 'armature');
      else watched.settings = drift;
    }
  }

  /** What a worker saw; `lost` were more than it could tell. */
  observe(observations: readonly Observation[], lost: number): void {
    if (this.#closed) return; // another control goes on with what is stored
    this.#swap();
    this.#lost += lost;
    for (const observation of observations) this.#observe(observation);
  }

  #observe(observation: Observation): void {
    const { route, backend, model, values, texts, score } = observation;
    const drift = this.#settings?.routes[route]?.drift;
    // A worker may lag behind by a snapshot.
    if (!drift || this.#settings!.backends[backend]?.model !== model) {
      this.#lost++;
      return;
    }
    const key = keyOf(route, backend);
    let watched = this.#watched.get(key);
    if (!watched) {
      watched = new Watched(route, backend, model, drift);
      watched.revision = this.#gone.get(key) ?? 0;
      this.#gone.delete(key);
      this.#watched.set(key, watched);
    }
    this.#observed++;
    for (const [feature, text] of Object.entries(texts ?? {})) values[feature] = languageOf(text);
    const { clock, random } = this.#options;
    const notices = watched.monitor.observe(values, clock.wall(), random);
    if (score !== undefined) watched.monitor.answered(score);
    this.#predictions.add(observation);
    this.#changed(watched);
    this.#tell(watched, notices);
  }

  /** Late labels of answers that were observed; each answer is labelled once. */
  label(labels: readonly Label[]): LabelsTaken {
    this.#swap();
    const taken: LabelsTaken = { matched: 0, unmatched: 0, unusable: 0 };
    for (const { request, label, right } of labels) {
      const prediction = this.#predictions.take(request);
      const watched = prediction && this.#watched.get(keyOf(prediction.route, prediction.backend));
      const known =
        right ?? (prediction?.class === undefined ? undefined : prediction.class === String(label));
      if (!prediction || watched?.model !== prediction.model) taken.unmatched++;
      else if (known === undefined) taken.unusable++;
      else {
        taken.matched++;
        this.#changed(watched);
        this.#tell(watched, watched.monitor.labelled(prediction.score, known, this.#options.clock.wall()));
      }
    }
    return taken;
  }

  #tell(watched: Watched, notices: readonly Notice[]): void {
    const { ledger } = this.#options;
    const { route, backend, model } = watched;
    for (const notice of notices) {
      if (notice.notice === 'frozen') {
        const { feature, rows, watched: isWatched } = notice;
        const data = { route, backend, model, feature, rows, watched: isWatched };
        ledger.append({
          type: 'drift-reference-frozen',
          subject: `drift:${route}|${backend}|${feature}`,
          data,
        });
        continue;
      }
      const incident = notice.notice === 'detected' ? undefined : notice.incident;
      const { effect, ...finding } = notice.notice === 'detected' ? notice.finding : notice.incident.first;
      const { event, also } = incident ?? {};
      const { id } = ledger.append({
        type: `drift-${notice.notice}`,
        subject: `drift:${route}|${backend}|${finding.feature}`,
        causes: event === undefined ? [] : [event],
        data: { route, backend, model, ...finding, effect, ...(also && also.length > 0 && { also }) },
      });
      if (notice.notice === 'detected') {
        notice.open(id);
        watched.hook = undefined;
      } else if (notice.notice === 'confirmed') this.#retraining.ask(watched, id);
      this.#storeSoon(0); // a control that follows does not tell it again
    }
  }

  /** A new reference, for one backend of a route or for all; how many. */
  refreeze(route: string, backend: string | undefined, actor: string): number {
    this.#swap();
    const all = [...this.#watched.values()].filter(
      (each) => each.route === route && (backend === undefined || each.backend === backend),
    );
    for (const watched of all) this.#renew(watched, 'asked', actor);
    return all.length;
  }

  /** `incident`: the event of the one that ends so. */
  #tellRenewed(
    { route, backend }: Pick<Watched, 'route' | 'backend'>,
    reason: string,
    actor: string,
    incident: string | undefined,
  ): void {
    const { model } = this.#settings!.backends[backend]!;
    this.#options.ledger.append({
      type: 'drift-reference-renewed',
      subject: `drift:${route}|${backend}`,
      actor,
      causes: incident === undefined ? [] : [incident],
      data: { route, backend, model, for: reason },
    });
  }

  #renew(watched: Watched, reason: string, actor: string): void {
    const { route, backend, monitor, revision } = watched;
    this.#tellRenewed(watched, reason, actor, monitor.incident?.event);
    const { drift } = this.#settings!.routes[route]!;
    const { model } = this.#settings!.backends[backend]!;
    const anew = new Watched(route, backend, model, drift!);
    anew.revision = revision;
    this.#watched.set(anew.key, anew);
    this.#changed(anew);
  }

  #forget(watched: Watched): void {
    this.#watched.delete(watched.key);
    if (watched.revision > 0) this.#gone.set(watched.key, watched.revision);
    this.#storeSoon(STORE_MS);
  }

  /** Whether a route of that name is watched. */
  watches(route: string): boolean {
    this.#swap();
    return this.#settings!.routes[route]?.drift !== undefined;
  }

  /** What has an incident, and what has none. */
  get open(): { route: string; backend: string; incident: boolean }[] {
    this.#swap();
    return [...this.#watched.values()].map(({ route, backend, monitor }) => ({
      route,
      backend,
      incident: monitor.incident !== undefined,
    }));
  }

  /** By route and backend. */
  get all(): ReturnType<Watched['view']>[] {
    this.#swap();
    return [...this.#watched.values()]
      .sort((a, b) => (a.key < b.key ? -1 : 1))
      .map((watched) => watched.view(this.#options.random));
  }

  /** Since this process began; `lost` of what workers could not tell, or was of another snapshot. */
  get counts(): { observed: number; lost: number } {
    return { observed: this.#observed, lost: this.#lost };
  }

  #changed(watched: Watched): void {
    watched.changed = true;
    this.#storeSoon(STORE_MS);
  }

  #storeSoon(inMs: number): void {
    const { timers } = this.#options;
    if (this.#closed || (this.#timer !== undefined && inMs > 0)) return;
    timers.clear(this.#timer);
    this.#timer = timers.set(inMs, () => {
      this.#timer = undefined;
      this.#storing ??= this.#store().finally(() => {
        this.#storing = undefined;
      });
    });
  }

  /** What cannot be stored now is stored later. */
  async #store(): Promise<void> {
    try {
      await this.#storeSome(STORED_CHARS_MAX);
      await this.#predictions.store();
    } catch (error) {
      this.#options.log.warn({ err: error }, 'what is known of drift cannot be stored; it is tried again');
    }
    if ([...this.#watched.values()].some(({ changed }) => changed)) this.#storeSoon(STORE_MS);
  }

  async #storeSome(charsMax: number): Promise<void> {
    const { documents } = this.#options.ledger.store;
    for (const [id, on] of [...this.#gone]) {
      await documents.change([{ kind: KIND, id, on }], []);
      this.#gone.delete(id);
    }
    let chars = 0;
    for (const watched of [...this.#watched.values()]) {
      if (!watched.changed || chars > charsMax) continue;
      const text = JSON.stringify(watched.document);
      chars += text.length;
      watched.changed = false;
      try {
        await documents.change(
          [{ kind: KIND, id: watched.key, on: watched.revision, body: JSON.parse(text) }],
          [],
        );
        watched.revision++;
        // Others come first the next time.
        if (this.#watched.get(watched.key) === watched) {
          this.#watched.delete(watched.key);
          this.#watched.set(watched.key, watched);
        }
      } catch (error) {
        watched.changed = true;
        // A control that was on its way out wrote last; what is known here is newer.
        if (error instanceof StoreError && error.trouble === 'conflict')
          watched.revision = (await documents.get(KIND, watched.key))?.revision ?? 0;
        throw error;
      }
    }
  }

  /** Stores what is known, as far as it can be. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.timers.clear(this.#timer);
    this.#retraining.close();
    await this.#storing;
    try {
      await this.#storeSome(Number.POSITIVE_INFINITY);
      await this.#predictions.store();
    } catch (error) {
      this.#options.log.warn({ err: error }, 'what was last seen of drift is not stored');
    }
  }
}
