import { type EventDraft, eventMaker } from '../../events/event-maker.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { WorkerMetrics } from '../../telemetry/metrics.ts';
import type { AnswerComparer, Compared, FactSink } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import type { Path } from '../path.ts';
import type { PairSink } from './contracts.ts';
import type { ComparedShadow, ReadyPair } from './pairing.ts';

/** Pairs that wait to be compared; beyond it they are skipped. */
const WAITING_MAX = 64;
/** Comparisons that ask a route and wait for its answer. */
const RUNNING_MAX = 4;
/** How often the ledger is told what came of the comparisons of one shadow, at most. */
const TOLD_EVERY_MS = 60_000;

export interface ComparisonsDeps {
  clock: Clock;
  random: Random;
  timers: Timers;
  metrics: WorkerMetrics;
  facts: FactSink;
  comparer: AnswerComparer;
  /** Hears of copies to a backend under release. */
  pairs: PairSink | undefined;
}

/** What came of the comparisons of one shadow since it was told last. */
interface Report {
  route: string;
  backend: string;
  by: string;
  pairs: number;
  alike: number;
  worse: number;
  better: number;
  sum: number;
  skipped: Record<string, number>;
  /** The request of the greatest difference. */
  worst: { difference: number; request: string } | undefined;
  timer: TimerHandle;
}

/**
 * Compares pairs of answers, each in a turn of its own, so that callers' requests go on in between; what comes of it goes to
 * the release that the copy was made for, to the metrics, and for other shadows summed up to the ledger.
 */
export class Comparisons {
  readonly #deps: ComparisonsDeps;
  readonly #event: (draft: EventDraft) => ReturnType<ReturnType<typeof eventMaker>>;
  readonly #reports = new Map<string, Report>();
  #waiting: { path: Path; pair: ReadyPair }[] = [];
  readonly #running = new Map<ReadyPair, () => void>();
  #timer: TimerHandle;
  #closed = false;

  constructor(deps: ComparisonsDeps) {
    this.#deps = deps;
    this.#event = eventMaker(deps.clock, deps.random);
  }

  add(path: Path, pair: ReadyPair): void {
    if (this.#waiting.length >= WAITING_MAX) this.#end(pair, { skipped: 'busy' });
    else {
      this.#waiting.push({ path, pair });
      this.#arm();
    }
  }

  /** The worker leaves: what is not compared yet never will be, and what is known is told. */
  close(): void {
    const left = [...this.#waiting.map(({ pair }) => pair), ...this.#running.keys()];
    this.#waiting = [];
    for (const giveUp of this.#running.values()) giveUp();
    this.#running.clear();
    this.#deps.timers.clear(this.#timer);
    this.#timer = undefined;
    for (const pair of left) this.#end(pair, { skipped: 'dropped' });
    for (const report of this.#reports.values()) this.#tell(report);
    this.#closed = true;
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#waiting.length === 0 || this.#running.size >= RUNNING_MAX) return;
    this.#timer = this.#deps.timers.set(0, () => {
      this.#timer = undefined;
      const next = this.#waiting.shift();
      if (next) this.#compare(next.path, next.pair);
      this.#arm();
    });
  }

  #compare(path: Path, pair: ReadyPair): void {
    const answers = pair.answers();
    if (!answers) {
      this.#end(pair, { skipped: 'dropped' });
      return;
    }
    let over = false;
    const giveUp = this.#deps.comparer.compare(
      path,
      { x: pair.x, settings: pair.shadow.compare, ...answers },
      (compared) => {
        over = true;
        this.#running.delete(pair);
        this.#end(pair, compared);
        this.#arm();
      },
    );
    if (!over) this.#running.set(pair, giveUp);
  }

  #end(pair: ReadyPair, compared: Compared): void {
    pair.release();
    const { x, shadow } = pair;
    if ('skipped' in compared) this.skipped(x, shadow, compared.skipped);
    else this.#compared(x, shadow, compared.difference);
  }

  skipped(x: Exchange, shadow: ComparedShadow, cause: string): void {
    this.#count(x, shadow, cause);
    if (shadow.release !== undefined) this.#deps.pairs?.skipped(shadow.release, x, cause);
    else if (!this.#closed) {
      const { skipped } = this.#report(x, shadow);
      skipped[cause] = (skipped[cause] ?? 0) + 1;
    }
  }

  #compared(x: Exchange, shadow: ComparedShadow, difference: number): void {
    const { by, margin } = shadow.compare;
    const verdict = difference > margin ? 'worse' : difference < -margin ? 'better' : 'alike';
    this.#count(x, shadow, verdict);
    if (shadow.release !== undefined) {
      this.#deps.pairs?.pair(shadow.release, x, { difference, by });
      return;
    }
    const report = this.#report(x, shadow);
    report.pairs++;
    report[verdict]++;
    report.sum += difference;
    if (!report.worst || difference > report.worst.difference) report.worst = { difference, request: x.id };
  }

  #count(x: Exchange, { backend }: ComparedShadow, outcome: string): void {
    this.#deps.metrics.compared.of(x.route!.name, backend.name, outcome).add();
  }

  #report(x: Exchange, { backend, compare }: ComparedShadow): Report {
    const route = x.route!.name;
    const key = `${route}\u0000${backend.name}`;
    let report = this.#reports.get(key);
    if (!report) {
      const made: Report = {
        route,
        backend: backend.name,
        by: compare.by,
        pairs: 0,
        alike: 0,
        worse: 0,
        better: 0,
        sum: 0,
        skipped: {},
        worst: undefined,
        timer: this.#deps.timers.set(TOLD_EVERY_MS, () => this.#tell(made)),
      };
      this.#reports.set(key, made);
      report = made;
    }
    return report;
  }

  #tell(report: Report): void {
    const { route, sum, worst, timer, ...told } = report;
    this.#deps.timers.clear(timer);
    this.#reports.delete(`${route}\u0000${report.backend}`);
    const skips = Object.values(report.skipped).reduce((all, count) => all + count, 0);
    this.#deps.facts.push({
      kind: 'event',
      event: this.#event({
        type: 'answers-compared',
        subject: `route:${route}`,
        data: {
          ...told,
          skips,
          ...(report.pairs > 0 && { difference: round(sum / report.pairs) }),
          ...(worst && worst.difference > 0 && { example: worst.request }),
        },
      }),
    });
  }
}

function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
