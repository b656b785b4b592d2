import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { PageTarget } from './targets.ts';

export type PageAnswer = { page: string } | { status: number } | { fault: string };

/** One page that can be read again and again. `read` never rejects, and answers within `withinMs` milliseconds. */
export interface PageSource {
  read(withinMs: number): Promise<PageAnswer>;
  close(): void;
}

export type OpenPage = (target: PageTarget) => PageSource;

export interface ScraperOptions {
  clock: Clock;
  timers: Timers;
  random: Random;
  open: OpenPage;
  /** A page was asked for. False: nothing of use was in it. */
  onAnswer: (target: PageTarget, answer: PageAnswer) => boolean;
}

/** Mean time between two scrapes of one page, and the longest that one may take, in milliseconds. */
const EVERY_MS = 1000;
const WITHIN_MS = 1000;
/** Each comes earlier or later by up to this share, so that many never fall together. */
const JITTER = 0.2;
/** An engine is left alone for so many times as long as the scrape took it: where many are waiting, scrapes are work too. */
const REST = 2;
/** A usual page that has never been there is asked for less and less often, down to once in so many milliseconds. */
const ABSENT_MS_MAX = 60_000;

interface Watched {
  target: PageTarget;
  made: string;
  source: PageSource;
  /** Answers without anything of use since there was one with it, or since the start. */
  useless: number;
  everRead: boolean;
  timer: TimerHandle;
  gone: boolean;
}

/** Reads every page at its own pace, never twice at once. */
export class Scraper {
  readonly #options: ScraperOptions;
  readonly #watched = new Map<string, Watched>();

  constructor(options: ScraperOptions) {
    this.#options = options;
  }

  /** From now on these pages are read; those that were read before, in the same way, go on. */
  watch(targets: readonly PageTarget[]): void {
    const wanted = new Map(targets.map((target) => [JSON.stringify(target), target]));
    for (const [made, watched] of this.#watched) {
      if (!wanted.delete(made)) this.#drop(watched);
    }
    for (const [made, target] of wanted) {
      const source = this.#options.open(target);
      const watched: Watched = {
        target,
        made,
        source,
        useless: 0,
        everRead: false,
        timer: undefined,
        gone: false,
      };
      this.#watched.set(made, watched);
      // The first one soon, but not all at once.
      this.#ask(watched, this.#options.random.next() * JITTER * EVERY_MS);
    }
  }

  close(): void {
    for (const watched of this.#watched.values()) this.#drop(watched);
  }

  #drop(watched: Watched): void {
    watched.gone = true;
    this.#options.timers.clear(watched.timer);
    watched.source.close();
    this.#watched.delete(watched.made);
  }

  #ask(watched: Watched, inMs: number): void {
    const { timers, clock, random } = this.#options;
    watched.timer = timers.set(inMs, async () => {
      const began = clock.mono();
      const answer = await watched.source.read(WITHIN_MS);
      if (watched.gone) return;
      const useful = this.#options.onAnswer(watched.target, answer);
      watched.useless = useful ? 0 : watched.useless + 1;
      watched.everRead ||= useful;
      const took = clock.mono() - began;
      const pace = this.#paceMs(watched) * (1 - JITTER + 2 * JITTER * random.next());
      this.#ask(watched, Math.max(pace - took, took * REST));
    });
  }

  #paceMs({ target, everRead, useless }: Watched): number {
    if (target.written || everRead) return EVERY_MS;
    return Math.min(ABSENT_MS_MAX, EVERY_MS * 2 ** Math.min(useless, 10));
  }
}
