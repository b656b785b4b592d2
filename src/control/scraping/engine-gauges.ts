import type { Settings } from '../../config/schema/index.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import { GAUGE_STALE_MS, type GaugeReading } from '../../links/messages.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { readPage } from './page.ts';
import { type OpenPage, type PageAnswer, Scraper } from './scraper.ts';
import { type PageSubject, type PageTarget, pageTargets } from './targets.ts';

export interface EngineGaugesOptions {
  clock: Clock;
  timers: Timers;
  random: Random;
  open: OpenPage;
  ledger: LedgerService;
  log: Logger;
  /** Tells every worker what was read anew, by `BACKEND|ADDRESS`. */
  tell: (gauges: Record<string, GaugeReading>) => void;
}

/** What is known of one endpoint's load, for who looks at it. */
export interface KnownGauge extends GaugeReading {
  ageMs: number;
  /** Too old to go by. */
  stale: boolean;
}

/** What was read within so many milliseconds is told to the workers at once. */
const TELL_MS = 100;
/** An endpoint whose gauges come and go is told of once in so many milliseconds. */
const TELL_AGAIN_MS = 300_000;

interface Known {
  target: PageTarget;
  reading: GaugeReading | undefined;
  /** When it was read last, or when it was first asked for. */
  atMs: number;
  /** That its gauges cannot be read is in the ledger. */
  unread: boolean;
  toldMs: number;
}

/**
 * What engines tell of their own load: read once, here, and told to every worker, which goes by it while it is fresh. That
 * one cannot be read any more is told in the ledger, and stops nothing.
 */
export class EngineGauges {
  readonly #options: EngineGaugesOptions;
  readonly #scraper: Scraper;
  readonly #known = new Map<string, Known>();
  #news = new Set<string>();
  #telling: TimerHandle;

  constructor(options: EngineGaugesOptions) {
    this.#options = options;
    const { clock, timers, random, open } = options;
    const onAnswer = (target: PageTarget, answer: PageAnswer) => this.#answered(target, answer);
    this.#scraper = new Scraper({ clock, timers, random, open, onAnswer });
  }

  /** From now on the pages of these settings are read. `endpoints`: where each backend is reached. */
  watch(settings: Settings, endpoints: Record<string, readonly string[]>): void {
    const targets = pageTargets(settings, endpoints);
    const subjects = new Map(targets.flatMap((target) => target.subjects.map(({ key }) => [key, target])));
    for (const key of this.#known.keys()) if (!subjects.has(key)) this.#known.delete(key);
    const atMs = this.#options.clock.mono();
    for (const [key, target] of subjects) {
      const known = this.#known.get(key);
      if (known) known.target = target;
      else
        this.#known.set(key, {
          target,
          reading: undefined,
          atMs,
          unread: false,
          toldMs: Number.NEGATIVE_INFINITY,
        });
    }
    this.#scraper.watch(targets);
  }

  /** What a worker that has just joined is told: everything that is fresh. */
  get fresh(): Record<string, GaugeReading> {
    return this.#readings([...this.#known.keys()]);
  }

  /** By `BACKEND|ADDRESS`; nothing of those that were never read. */
  get known(): Record<string, KnownGauge> {
    const now = this.#options.clock.mono();
    return Object.fromEntries(
      [...this.#known].flatMap(([key, { reading, atMs }]) => {
        const ageMs = Math.round(now - atMs);
        return reading ? [[key, { ...reading, ageMs, stale: ageMs > GAUGE_STALE_MS }]] : [];
      }),
    );
  }

  close(): void {
    this.#options.timers.clear(this.#telling);
    this.#scraper.close();
  }

  #answered(target: PageTarget, answer: PageAnswer): boolean {
    let useful = false;
    for (const subject of target.subjects) {
      const reading = 'page' in answer ? readPage(answer.page, subject.names, subject.model) : undefined;
      if (reading) {
        useful = true;
        this.#read(subject, reading);
      } else this.#missed(subject.key, answer);
    }
    return useful;
  }

  #read({ key, sharedBy }: PageSubject, reading: GaugeReading): void {
    const known = this.#known.get(key);
    if (!known) return;
    known.reading = partOf(reading, sharedBy);
    known.atMs = this.#options.clock.mono();
    if (known.unread) {
      known.unread = false;
      this.#options.ledger.append({ type: 'gauges-read', subject: `endpoint:${key}`, data: { ...reading } });
    }
    this.#news.add(key);
    this.#telling ??= this.#options.timers.set(TELL_MS, () => this.#tell());
  }

  #missed(key: string, answer: PageAnswer): void {
    const known = this.#known.get(key);
    const now = this.#options.clock.mono();
    if (!known || known.unread || now - known.atMs <= GAUGE_STALE_MS) return;
    // Where the engine usually has its page there may be none: that is as it is.
    if (!known.reading && !known.target.written) return;
    if (now - known.toldMs < TELL_AGAIN_MS) return;
    known.unread = true;
    known.toldMs = now;
    const { url } = known.target;
    const why = 'page' in answer ? { fault: 'none of its load gauges is on the page' } : answer;
    const data = { url, ...why, ageMs: Math.round(now - known.atMs) };
    this.#options.log.warn({ endpoint: key, ...data }, "the engine's gauges cannot be read");
    this.#options.ledger.append({ type: 'gauges-unread', subject: `endpoint:${key}`, data });
  }

  #tell(): void {
    this.#telling = undefined;
    const news = this.#readings([...this.#news]);
    this.#news = new Set();
    this.#options.tell(news);
  }

  #readings(keys: readonly string[]): Record<string, GaugeReading> {
    const now = this.#options.clock.mono();
    return Object.fromEntries(
      keys.flatMap((key) => {
        const known = this.#known.get(key);
        const ageMs = known ? Math.round(now - known.atMs) : 0;
        return known?.reading && ageMs <= GAUGE_STALE_MS ? [[key, { ...known.reading, ageMs }]] : [];
      }),
    );
  }
}

/** An endpoint's part of figures that several share. */
function partOf({ waiting, running, ...rest }: GaugeReading, sharedBy: number): GaugeReading {
  return {
    ...(waiting !== undefined && { waiting: waiting / sharedBy }),
    ...(running !== undefined && { running: running / sharedBy }),
    ...rest,
  };
}
