import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RouteSettings } from '../../config/schema/index.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { GoldenAnswer } from '../../releases/parity/answers.ts';
import { canonical, settingsOf } from '../../releases/parity/fingerprint.ts';
import { readGolden } from '../../releases/parity/golden.ts';
import { type EndpointState, type Noticed, Sentinel } from '../../releases/parity/sentinel.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Place } from './asker.ts';
import { SENTINEL_KIND } from './contracts.ts';
import { placesOf } from './reach.ts';
import { referenceOf } from './reference.ts';
import type { ParityService } from './service.ts';

export interface SentinelsOptions {
  ledger: LedgerService;
  clock: Clock;
  timers: Timers;
  random: Random;
  log: Logger;
  parity: ParityService;
}

/** What the metrics tell: prompts by route, backend and outcome (`answered`, `failed`, `no-room`). */
export type SentinelCounts = ReadonlyMap<string, number>;

/** How long an endpoint may take to answer; the others are asked no further before. */
const ANSWER_MS_MAX = 30_000;
/** How often what is known is kept where nothing was noticed. */
const KEEP_MS = 60_000;

interface Watch {
  route: string;
  /** The settings that it was begun with, as text: with others it begins anew. */
  made: string;
  settings: NonNullable<RouteSettings['sentinel']>;
  sentinel: Sentinel;
  revision: number;
  keptAtMs: number;
  timer: TimerHandle;
  gone: boolean;
}

interface Kept {
  /** SHA-256 of the golden set: of another nothing kept is worth anything. */
  golden: string;
  endpoints: Record<string, EndpointState>;
}

/** The sentinels of all routes: golden prompts go to endpoints at their rate, and what they notice is told. */
export class Sentinels {
  readonly #options: SentinelsOptions;
  readonly #watches = new Map<string, Watch>();
  readonly #counts = new Map<string, number>();
  /** Routes whose golden set could not be used, and what they were to be watched by: told once. */
  readonly #refused = new Map<string, string>();
  readonly #closing = new AbortController();
  #settling: Promise<void> = Promise.resolve();

  constructor(options: SentinelsOptions) {
    this.#options = options;
  }

  get counts(): SentinelCounts {
    return this.#counts;
  }

  /** The configuration has changed, or is there for the first time. */
  settled(): void {
    this.#settling = this.#settling
      .then(() => this.#settle())
      .catch((error: unknown) => this.#options.log.error({ err: error }, 'a sentinel could not begin'));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#settling;
    for (const watch of this.#watches.values()) this.#drop(watch);
  }

  async #settle(): Promise<void> {
    const { settings, config } = this.#control.effective;
    const wanted = new Map(
      Object.entries(settings.routes).flatMap(([route, { sentinel }]) =>
        sentinel ? [[route, sentinel]] : [],
      ),
    );
    for (const watch of this.#watches.values()) {
      const now = wanted.get(watch.route);
      const same = now && made(now, config.certificates[now.golden]) === watch.made;
      if (!same) this.#drop(watch);
    }
    for (const [route, sentinel] of wanted) {
      if (!this.#watches.has(route) && !this.#closing.signal.aborted)
        await this.#begin(route, sentinel, config.certificates[sentinel.golden]);
    }
  }

  async #begin(route: string, settings: Watch['settings'], sha256: string | undefined): Promise<void> {
    const { ledger, log, clock } = this.#options;
    let golden: ReturnType<typeof readGolden>;
    if (this.#refused.get(route) === made(settings, sha256)) return;
    this.#refused.delete(route);
    try {
      golden = readGolden(readFileSync(settings.golden, 'utf8'));
    } catch (error) {
      this.#refused.set(route, made(settings, sha256));
      log.error({ route, err: error }, 'a golden set cannot be used: the route has no sentinel');
      const message = (error as Error).message;
      ledger.append({
        type: 'golden-refused',
        subject: `route:${route}`,
        data: { file: settings.golden, message },
      });
      return;
    }
    const kept = await ledger.store.documents.get(SENTINEL_KIND, route);
    const body = kept?.body as Kept | undefined;
    const state = body?.golden === golden.sha256 ? body.endpoints : {};
    const watch: Watch = {
      route,
      made: made(settings, sha256),
      settings,
      sentinel: new Sentinel(golden.prompts, settings, state),
      revision: kept?.revision ?? 0,
      keptAtMs: clock.mono(),
      timer: undefined,
      gone: false,
    };
    this.#watches.set(route, watch);
    this.#later(watch);
  }

  #drop(watch: Watch): void {
    watch.gone = true;
    this.#options.timers.clear(watch.timer);
    this.#watches.delete(watch.route);
  }

  #later(watch: Watch): void {
    const { timers, log } = this.#options;
    if (watch.gone || this.#closing.signal.aborted) return;
    watch.timer = timers.set(watch.settings.every, () => {
      this.#round(watch)
        .catch((error: unknown) =>
          log.warn({ route: watch.route, err: error }, 'a sentinel could not be asked'),
        )
        .finally(() => this.#later(watch));
    });
  }

  /** One prompt to each endpoint. Those that are not frozen yet are asked what they have not decided on, twice. */
  async #round(watch: Watch): Promise<void> {
    const { sentinel, route } = watch;
    const { random } = this.#options;
    const places = this.#places(route);
    sentinel.keep(places.map((place) => this.#key(place)));
    const prompt = sentinel.draw(random);
    const answers = new Map<string, GoldenAnswer>();
    await Promise.all(
      places.map(async (place) => {
        const unfrozen = sentinel.unfrozen(this.#key(place));
        if (unfrozen) {
          const both = await Promise.all([
            this.#ask(watch, place, unfrozen),
            this.#ask(watch, place, unfrozen),
          ]);
          if (both[0] && both[1]) sentinel.freeze(this.#key(place), unfrozen, [both[0], both[1]]);
          else sentinel.failed(this.#key(place), unfrozen);
          return;
        }
        const answer = await this.#ask(watch, place, prompt);
        if (answer) answers.set(this.#key(place), answer);
      }),
    );
    if (watch.gone) return;
    const settings = this.#control.effective.settings.routes[route];
    const reference = settings && places.find(({ backend }) => backend === referenceOf(settings));
    const noticed = sentinel.observe(prompt, answers, reference && this.#key(reference));
    for (const place of places) {
      const found = noticed.get(this.#key(place));
      if (found) await this.#notice(watch, place, found);
    }
    if (this.#options.clock.mono() - watch.keptAtMs >= KEEP_MS) await this.#keep(watch, []);
  }

  async #ask(
    watch: Watch,
    place: Place,
    prompt: ReturnType<Sentinel['draw']>,
  ): Promise<GoldenAnswer | undefined> {
    const { parity } = this.#options;
    const { asker, room, control } = parity.reaching;
    const count = (outcome: string) => {
      const key = `${watch.route}|${place.backend}|${outcome}`;
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    };
    if (!(await room.at(place.backend, place.endpoint, control))) {
      count('no-room');
      return undefined;
    }
    const late = new AbortController();
    const limit = this.#options.timers.set(ANSWER_MS_MAX, () => late.abort());
    try {
      const signal = AbortSignal.any([this.#closing.signal, late.signal]);
      const answer = await asker.ask(place, prompt, signal);
      count('answered');
      if (answer.fingerprint !== undefined) await parity.answeredAs(place.backend, answer.fingerprint);
      return answer;
    } catch (error) {
      count('failed'); // says nothing of its decisions, and nothing of its health
      this.#options.log.debug({ endpoint: place.endpoint, err: error }, 'a golden prompt was not answered');
      return undefined;
    } finally {
      this.#options.timers.clear(limit);
    }
  }

  /** Told, kept and acted on: certificates of the backend hold no more, and what it decides now is frozen. */
  async #notice(watch: Watch, { backend, endpoint }: Place, found: Noticed): Promise<void> {
    const { ledger, log, parity } = this.#options;
    const { what, prompts, count, evidence } = found;
    const { route, settings, sentinel } = watch;
    const event = ledger.event({
      type: 'sentinel-noticed',
      subject: `endpoint:${backend}|${endpoint}`,
      causes: [this.#control.snapshots.current.event],
      data: {
        route,
        backend,
        endpoint,
        for: `sentinel-${what}`,
        prompts,
        count,
        evidence: Number(evidence.toPrecision(4)),
        runLength: settings.runLength,
      },
    });
    log.warn(
      { event: event.id, route, backend, endpoint, what, prompts, count },
      'a sentinel noticed a change',
    );
    if (what === 'changed') sentinel.renew(this.#key({ backend, endpoint }));
    await this.#keep(watch, [event]);
    await parity.doubt(backend, [event.id], `a sentinel noticed it after ${prompts} prompts`);
  }

  async #keep(
    watch: Watch,
    events: Parameters<LedgerService['store']['documents']['change']>[1],
  ): Promise<void> {
    const { ledger, clock } = this.#options;
    const { route: id, revision: on, sentinel, settings } = watch;
    const golden = this.#control.effective.config.certificates[settings.golden] ?? '';
    const body: Kept = { golden, endpoints: sentinel.state };
    await ledger.store.documents.change([{ kind: SENTINEL_KIND, id, body, on }], events);
    watch.revision = on + 1;
    watch.keptAtMs = clock.mono();
  }

  /** Endpoints of targets that answer callers; of an idle host there are none, and it is not woken. */
  #places(route: string): Place[] {
    const targets = this.#control.effective.settings.routes[route]?.targets ?? [];
    return targets.flatMap(({ backend, weight }) => (weight > 0 ? placesOf(backend, this.#control) : []));
  }

  /** With other settings it is another thing that is watched. */
  #key({ backend, endpoint }: Pick<Place, 'backend' | 'endpoint'>): string {
    const settings = canonical(settingsOf(backend, this.#control.effective.settings));
    return `${backend}|${endpoint}|${createHash('sha256').update(settings).digest('base64url').slice(0, 12)}`;
  }

  get #control() {
    return this.#options.parity.reaching.control;
  }
}

const made = (settings: Watch['settings'], sha256: string | undefined) => JSON.stringify([settings, sha256]);
