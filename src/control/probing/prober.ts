import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { Readings } from '../../links/messages.ts';

/** One endpoint that is asked how it is. */
export interface ProbeTarget {
  backend: string;
  endpoint: string;
  /** What is asked by GET. */
  url: string;
  headers: Record<string, string>;
  tls: { ca?: string; cert?: string; key?: string; serverName?: string } | undefined;
  /** Mean time between two probes, in milliseconds. */
  everyMs: number;
  /** Good answers in a row that make it well, and bad ones that make it unwell. */
  healthy: number;
  unhealthy: number;
  /** The path is the operator's choice, so that an answer such as 404 is the endpoint's fault and not the path's. */
  pathGiven: boolean;
}

export type ProbeAnswer = { status: number } | { fault: string };

/** Asks once; never rejects, and answers within `withinMs` milliseconds. */
export type Probe = (target: ProbeTarget, withinMs: number) => Promise<ProbeAnswer>;

/** What is told when an endpoint is found to be better or worse than before. */
export interface HealthChange {
  backend: string;
  endpoint: string;
  health: 'well' | 'unwell';
  figures: Record<string, number | string>;
}

export interface ProberOptions {
  clock: Clock;
  timers: Timers;
  random: Random;
  probe: Probe;
  onChange: (change: HealthChange) => void;
  /** An endpoint does not let itself be asked (401, 404 and the like): its health stays unknown. Told once for each. */
  onMute: (target: ProbeTarget, status: number) => void;
}

/** The longest that one probe may take, in milliseconds. */
const PROBE_MS_MAX = 2000;
/** A probe comes earlier or later by up to this share of `everyMs`, so that many never fall together. */
const JITTER = 0.2;
/** Statuses that say something about the path or the key, and nothing about the engine. */
const MUTE_STATUSES = new Set([401, 403, 404, 405, 501]);

interface Watched {
  target: ProbeTarget;
  /** The target as text: another one starts from nothing. */
  made: string;
  health: 'well' | 'unwell' | undefined;
  good: number;
  bad: number;
  mute: boolean;
  timer: TimerHandle;
  gone: boolean;
}

/**
 * Asks every endpoint at its own pace, never by an inference. An endpoint counts as neither well nor unwell until
 * enough answers in a row have agreed; after that it takes as many to change.
 */
export class Prober {
  readonly #options: ProberOptions;
  readonly #watched = new Map<string, Watched>();

  constructor(options: ProberOptions) {
    this.#options = options;
  }

  /** From now on these endpoints are asked. Those that were asked before, in the same way, keep what is known of them. */
  watch(targets: readonly ProbeTarget[]): void {
    const wanted = new Map(targets.map((target) => [keyOf(target), target]));
    for (const [key, watched] of this.#watched) {
      const target = wanted.get(key);
      if (target && JSON.stringify(target) === watched.made) wanted.delete(key);
      else this.#drop(key, watched);
    }
    for (const [key, target] of wanted) {
      const made = JSON.stringify(target);
      const watched: Watched = {
        target,
        made,
        health: undefined,
        good: 0,
        bad: 0,
        mute: false,
        timer: undefined,
        gone: false,
      };
      this.#watched.set(key, watched);
      // The first one soon, but not all at once.
      this.#ask(watched, this.#options.random.next() * JITTER * target.everyMs);
    }
  }

  /** What is known, for those endpoints of which something is. */
  readings(): Pick<Required<Readings>, 'health'> {
    const health: Required<Readings>['health'] = {};
    for (const [key, watched] of this.#watched) {
      if (watched.health) health[key] = watched.health;
    }
    return { health };
  }

  /** Whether enough is known of every endpoint to tell how it is, or that it cannot be told. */
  get settled(): boolean {
    return [...this.#watched.values()].every(({ health, mute }) => health !== undefined || mute);
  }

  close(): void {
    for (const [key, watched] of this.#watched) this.#drop(key, watched);
  }

  #drop(key: string, watched: Watched): void {
    watched.gone = true;
    this.#options.timers.clear(watched.timer);
    this.#watched.delete(key);
  }

  #ask(watched: Watched, inMs: number): void {
    const { timers, clock, random, probe } = this.#options;
    const { everyMs } = watched.target;
    watched.timer = timers.set(inMs, async () => {
      const began = clock.mono();
      const answer = await probe(watched.target, Math.min(everyMs, PROBE_MS_MAX));
      if (watched.gone) return;
      this.#judge(watched, answer, clock.mono() - began);
      const pace = everyMs * (1 - JITTER + 2 * JITTER * random.next());
      this.#ask(watched, Math.max(0, pace - (clock.mono() - began)));
    });
  }

  #judge(watched: Watched, answer: ProbeAnswer, tookMs: number): void {
    const { target } = watched;
    if ('status' in answer && MUTE_STATUSES.has(answer.status) && !target.pathGiven) {
      const first = !watched.mute;
      watched.mute = true;
      if (first) this.#options.onMute(target, answer.status);
      return;
    }
    const good = 'status' in answer && answer.status < 400;
    watched.good = good ? watched.good + 1 : 0;
    watched.bad = good ? 0 : watched.bad + 1;
    const before = watched.health;
    if (watched.good >= target.healthy) watched.health = 'well';
    if (watched.bad >= target.unhealthy) watched.health = 'unwell';
    if (watched.health === before || watched.health === undefined) return;
    this.#options.onChange({
      backend: target.backend,
      endpoint: target.endpoint,
      health: watched.health,
      figures: {
        ...answer,
        inARow: good ? watched.good : watched.bad,
        tookMs: Math.round(tookMs),
        everyMs: target.everyMs,
        url: target.url,
        before: before ?? 'unknown',
      },
    });
  }
}

/** How endpoints are named in readings: `BACKEND|ADDRESS`. */
export function keyOf({ backend, endpoint }: { backend: string; endpoint: string }): string {
  return `${backend}|${endpoint}`;
}
