import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { systemClock } from '../../src/kernel/clock.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { openaiRequests } from '../../src/load/requests.ts';
import type { Intended } from '../../src/load/schedule.ts';
import { openSender } from '../../src/load/sender.ts';

/** One kind of traffic: what it sends, and when. */
export interface Stream {
  name: string;
  schedule: Iterator<Intended>;
  headers: Record<string, string>;
}

export interface OfferSettings {
  /** `http://HOST:PORT` */
  origin: string;
  model: string;
  forMs: number;
  /** An answer after this is no good. */
  deadlineMs: number;
  connections: number;
  /** Streamed answers; else whole ones. */
  streamed: boolean;
}

/** What became of one kind of traffic. */
export interface Result {
  name: string;
  offered: number;
  /** Full answers within the deadline. */
  good: number;
  /** Full answers after it. */
  late: number;
  /** Answers of a rung, labelled so. */
  degraded: number;
  /** 429 and 503. */
  refused: number;
  /** 504. */
  timedOut: number;
  /** No answer within the deadline and a second. */
  hung: number;
  /** Everything else: other statuses, cut and broken answers. */
  failed: number;
  failures: Record<string, number>;
  /** Milliseconds from sending. */
  total: { p50: number; p99: number };
  firstToken: { p50: number; p99: number };
  refusal: { p50: number; p99: number };
  /** Good answers and offers in each second. */
  seconds: { offered: number; good: number }[];
}

class Kept {
  readonly #histogram: RecordableHistogram = createHistogram({ lowest: 1, highest: 600_000_000, figures: 3 });
  add(ms: number): void {
    this.#histogram.record(Math.max(1, Math.round(ms * 1000)));
  }
  get spread(): { p50: number; p99: number } {
    if (this.#histogram.count === 0) return { p50: 0, p99: 0 };
    return { p50: this.#histogram.percentile(50) / 1000, p99: this.#histogram.percentile(99) / 1000 };
  }
}

/**
 * Offers traffic in an open loop: requests are sent at their times whatever comes back, and latency counts from those
 * times. Resolves when every request has ended.
 */
export async function offer(streams: readonly Stream[], settings: OfferSettings): Promise<Result[]> {
  const results = await Promise.all(streams.map((stream, at) => offerOne(stream, settings, at + 1)));
  return results;
}

function offerOne(stream: Stream, settings: OfferSettings, seed: number): Promise<Result> {
  const { origin, model, forMs, deadlineMs, connections, streamed } = settings;
  const compose = openaiRequests({ base: '/v1', model, kind: 'chat', stream: streamed }, seededRandom(seed));
  const sender = openSender(origin, { connections, headers: stream.headers });
  const kept = { total: new Kept(), firstToken: new Kept(), refusal: new Kept() };
  const counts = { offered: 0, good: 0, late: 0, degraded: 0, refused: 0, timedOut: 0, hung: 0, failed: 0 };
  const failures: Record<string, number> = {};
  const seconds: { offered: number; good: number }[] = [];
  const begin = systemClock.mono();
  let open = 0;
  return new Promise((resolve) => {
    let next = stream.schedule.next();
    const end = () => {
      if (open > 0 || (next.done !== true && next.value.atMs < forMs)) return;
      void sender.close();
      resolve({
        name: stream.name,
        ...counts,
        failures,
        total: kept.total.spread,
        firstToken: kept.firstToken.spread,
        refusal: kept.refusal.spread,
        seconds,
      });
    };
    const send = (intended: Intended) => {
      const at = begin + intended.atMs;
      const second = (seconds[Math.floor(intended.atMs / 1000)] ??= { offered: 0, good: 0 });
      counts.offered++;
      second.offered++;
      open++;
      let first: number | undefined;
      let over = false;
      const close = (judge: () => void) => {
        if (over) return;
        over = true;
        systemTimers.clear(timer);
        judge();
        open--;
        end();
      };
      const timer = systemTimers.set(at - systemClock.mono() + deadlineMs + 1000, () => {
        abort();
        close(() => counts.hung++);
      });
      const abort = sender.send(compose(intended), {
        onSent() {},
        onToken() {
          first ??= systemClock.mono() - at;
        },
        onEnd: ({ status, failure, degraded }) =>
          close(() => {
            const tookMs = systemClock.mono() - at;
            if (status === 429 || status === 503) {
              counts.refused++;
              kept.refusal.add(tookMs);
            } else if (status === 504) counts.timedOut++;
            else if (failure !== undefined) {
              counts.failed++;
              failures[failure] = (failures[failure] ?? 0) + 1;
            } else if (degraded !== undefined) counts.degraded++;
            else {
              kept.total.add(tookMs);
              if (first !== undefined) kept.firstToken.add(first);
              if ((first ?? tookMs) <= deadlineMs) {
                counts.good++;
                second.good++;
              } else counts.late++;
            }
          }),
      });
    };
    const pump = () => {
      const elapsed = systemClock.mono() - begin;
      while (next.done !== true && next.value.atMs <= elapsed && next.value.atMs < forMs) {
        send(next.value);
        next = stream.schedule.next();
      }
      if (next.done === true || next.value.atMs >= forMs) end();
      else systemTimers.set(next.value.atMs - elapsed, pump);
    };
    pump();
  });
}

/** Two schedules of a run: the share `critical` of the arrivals, drawn at random, and the others. */
export function* thinned(schedule: Iterator<Intended>, keep: () => boolean): Generator<Intended> {
  for (let next = schedule.next(); next.done !== true; next = schedule.next()) if (keep()) yield next.value;
}
