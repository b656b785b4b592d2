import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { Logger } from '../telemetry/logger.ts';
import { addCounts, countsOf, isMetrics, mergeMetrics } from '../telemetry/merge.ts';
import type { MetricJson } from '../telemetry/tally.ts';
import type { GatewayPeer, Gateways } from './gateways.ts';

/** How long a worker may take to answer a scrape; after that its last answer is taken. */
const ANSWER_MS = 1000;
const LOOK_MS = 20;
/** Workers are asked so often even when nobody scrapes, so that one that is killed takes little with it. */
const SAMPLE_MS = 5000;
/** Workers that have left and whose counts are kept apart; beyond it the oldest are added up. */
const APART_MAX = 16;

interface Counted {
  metrics: MetricJson[];
  /** It is connected: its gauges count as well. */
  here: boolean;
}

/** What is kept on disk, so that counts outlive control. */
interface Kept {
  workers: { boot: string; metrics: MetricJson[] }[];
  older: MetricJson[];
}

/**
 * The metrics of all workers as one: the living are asked, the dead are remembered, so that counters never fall. A worker
 * whose connection ended may come back on another, so its counts stand under its boot.
 */
export class WorkerMetrics {
  readonly #gateways: Gateways;
  readonly #timers: Timers;
  readonly #file: string;
  readonly #log: Logger;
  /** By boot, those that left longest ago first. */
  readonly #counted = new Map<string, Counted>();
  #older: MetricJson[] = [];
  #timer: TimerHandle;
  readonly #workers: () => number;
  #met = false;

  /** `file` is where counts are kept; `workers` are so many as there should be. */
  constructor(options: {
    gateways: Gateways;
    workers: () => number;
    timers: Timers;
    file: string;
    log: Logger;
  }) {
    this.#workers = options.workers;
    this.#gateways = options.gateways;
    this.#timers = options.timers;
    this.#file = options.file;
    this.#log = options.log;
    this.#remember();
    this.#sample();
  }

  /** Asks every worker and gives the sum of all, in Prometheus' exposition format; `own` are metrics of control itself. */
  async exposition(own: MetricJson[]): Promise<string> {
    await this.#meet();
    await this.#ask();
    const sets = [...this.#counted.values()].map(({ metrics, here }) => (here ? metrics : countsOf(metrics)));
    return mergeMetrics([...sets, this.#older, own]).metrics();
  }

  /** A worker tells its last counts on its way out. */
  parting({ boot }: GatewayPeer, metrics: unknown): void {
    if (isMetrics(metrics)) this.#counted.set(boot, { metrics, here: true });
  }

  async left({ boot }: GatewayPeer): Promise<void> {
    const counted = this.#counted.get(boot);
    if (!counted) return;
    this.#counted.delete(boot);
    this.#counted.set(boot, { metrics: countsOf(counted.metrics), here: false });
    const apart = [...this.#counted].filter(([, { here }]) => !here);
    for (const [old, { metrics }] of apart.slice(0, Math.max(0, apart.length - APART_MAX))) {
      this.#counted.delete(old);
      this.#older = await addCounts([this.#older, metrics]);
    }
    this.#keep();
  }

  close(): void {
    this.#timers.clear(this.#timer);
    this.#keep();
  }

  /** Waits for the workers that a control which has just begun does not know yet: their counters must not seem to fall. */
  async #meet(): Promise<void> {
    for (let waitedMs = 0; !this.#met && waitedMs < ANSWER_MS; waitedMs += LOOK_MS) {
      if (this.#gateways.peers.length >= this.#workers()) break;
      await new Promise<void>((resolve) => this.#timers.set(LOOK_MS, resolve));
    }
    this.#met = true;
  }

  async #ask(): Promise<void> {
    await Promise.all(
      this.#gateways.peers.map(async (peer) => {
        const metrics = await this.#gateways.ask(peer, 'metrics', ANSWER_MS);
        if (isMetrics(metrics))
          this.#counted.set(peer.boot, { metrics, here: this.#gateways.has(peer.boot) });
      }),
    );
  }

  #sample(): void {
    this.#timer = this.#timers.set(SAMPLE_MS, () => void this.#ask().then(() => this.#sample()));
  }

  #keep(): void {
    const workers = [...this.#counted].map(([boot, { metrics }]) => ({ boot, metrics: countsOf(metrics) }));
    try {
      writeFileSync(`${this.#file}.new`, JSON.stringify({ workers, older: this.#older } satisfies Kept));
      renameSync(`${this.#file}.new`, this.#file);
    } catch (error) {
      this.#log.warn({ err: error }, 'counts of workers cannot be kept; they would not outlive control');
    }
  }

  #remember(): void {
    try {
      const { workers, older } = JSON.parse(readFileSync(this.#file, 'utf8')) as Kept;
      for (const { boot, metrics } of workers) this.#counted.set(boot, { metrics, here: false });
      this.#older = older;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      this.#log.warn({ err: error }, 'counts of earlier workers cannot be read; counters begin anew');
    }
  }
}
