import type { Settings } from '../config/schema/index.ts';
import type { RequestRecord } from '../events/contracts.ts';
import type { AcceleratorProfile } from './accelerator/step.ts';
import type { SimulatedCaller } from './caller.ts';
import type { Arrival, Disturbance } from './contracts.ts';
import { SimulatedGateway } from './gateway.ts';
import { type GroupReport, Recorder, type Tally } from './recorder.ts';

export interface SimulationOptions {
  settings: Settings;
  /** By backend; those with `engine: sim` need none. */
  profiles?: ReadonlyMap<string, AcceleratorProfile>;
  /** In order of time. */
  arrivals: Iterator<Arrival>;
  disturbances?: (gateway: SimulatedGateway) => readonly Disturbance[];
  seed: number;
  /** Nothing more comes after so many milliseconds. Default: what the arrivals say. */
  durationMs?: number;
  /** Told once each simulated second. */
  onProgress?: (nowMs: number, offered: number) => void;
  onRecord?: (record: RequestRecord) => void;
}

/** One moment of the series over time: what happened since the one before, and what stood then. */
export interface Moment extends Tally {
  /** Milliseconds after the start. */
  atMs: number;
  inflight: number;
  waiting: number;
}

export interface EndpointReport {
  backend: string;
  endpoint: string;
  /** Requests sent to it, repeated ones included. */
  requests: number;
  /** Share of the time in which it computed, 0 to 1; one sequence is enough for that. */
  busy: number;
  /** Sequences that ran, and tokens they held, on average over the samples. */
  running: number;
  kvTokens: number;
  promptTokens: number;
  outputTokens: number;
  /** Requests that may be there at once, at the end. */
  limit: number;
}

export interface SimulationReport {
  seed: number;
  /** Simulated milliseconds, from the first moment to the last answer. */
  elapsedMs: number;
  /** Simulated milliseconds in which requests came. */
  offeredMs: number;
  all: GroupReport;
  groups: GroupReport[];
  endpoints: EndpointReport[];
  /** Attempts after the first, by `BACKEND: REASON`. */
  retries: Record<string, number>;
  series: Moment[];
  /** What was still taken at the end; all zero. */
  left: Record<string, number>;
}

const SAMPLE_MS = 1000;
/** Moments of the series; beyond it two become one. */
const MOMENTS_MAX = 600;
/** How long the last requests may take after the last one came, milliseconds. */
const TAIL_MS_MAX = 3_600_000;

/** Runs a configuration against a load in virtual time. */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const run = new SimulationRun(options);
  run.play();
  return await run.report();
}

class SimulationRun {
  readonly #options: SimulationOptions;
  readonly #gateway: SimulatedGateway;
  readonly #recorder: Recorder;
  readonly #series: Moment[] = [];
  readonly #loads = new Map<string, { running: number; kvTokens: number }>();
  #samples = 0;
  #everyMs = SAMPLE_MS;
  #coming: Arrival | undefined;
  #lastAt = 0;
  /** Whose record comes next: it is settled right after its caller was answered. */
  #answered: SimulatedCaller | undefined;

  constructor(options: SimulationOptions) {
    this.#options = options;
    const { routes, pipelines } = options.settings;
    this.#recorder = new Recorder(
      (name) => (routes[name] ?? pipelines[name])?.deadline ?? Number.POSITIVE_INFINITY,
    );
    const gateway = new SimulatedGateway({
      settings: options.settings,
      seed: options.seed,
      ...(options.profiles && { profiles: options.profiles }),
      onAnswered: (caller) => {
        this.#answered = caller;
        this.#recorder.answered(caller);
      },
      onRecord: (record) => {
        const caller = this.#answered?.requestId === record.requestId ? this.#answered : undefined;
        this.#recorder.explained(caller, record);
        options.onRecord?.(record);
      },
    });
    this.#gateway = gateway;
    for (const { atMs, run } of options.disturbances?.(gateway) ?? []) gateway.time.set(atMs, run);
    this.#schedule();
  }

  /** Until the last request has its answer. */
  play(): void {
    const { time, gateway } = this.#gateway;
    let tailEnd = Number.POSITIVE_INFINITY;
    for (;;) {
      time.run(SAMPLE_MS);
      this.#sample();
      this.#options.onProgress?.(time.mono(), this.#recorder.offered);
      if (this.#coming) continue;
      tailEnd = Math.min(tailEnd, time.mono() + TAIL_MS_MAX);
      if (gateway.path.running.size === 0 || time.mono() >= tailEnd) break;
    }
  }

  async report(): Promise<SimulationReport> {
    const { time, registry, taken } = this.#gateway;
    const elapsedMs = time.mono();
    const retries: Record<string, number> = {};
    for (const metric of await registry.getMetricsAsJSON()) {
      if (metric.name !== 'armature_retries_total') continue;
      for (const { labels, value } of metric.values as { labels: Record<string, string>; value: number }[])
        if (value > 0) retries[`${labels['backend']}: ${labels['reason']}`] = value;
    }
    return {
      seed: this.#options.seed,
      elapsedMs,
      offeredMs: this.#options.durationMs ?? this.#lastAt,
      all: this.#recorder.all(),
      groups: this.#recorder.groups(),
      endpoints: this.#endpoints(elapsedMs),
      retries: Object.fromEntries(Object.entries(retries).sort(([a], [b]) => (a < b ? -1 : 1))),
      series: this.#series,
      left: taken,
    };
  }

  #endpoints(elapsedMs: number): EndpointReport[] {
    const { world } = this.#gateway.gateway;
    return [...world.backends.values()].flatMap((backend) =>
      backend.endpoints.map((endpoint) => {
        const engine = this.#gateway.engines.get(new URL(endpoint.address).origin)!;
        const load = engine.accelerator.load();
        return {
          backend: backend.name,
          endpoint: endpoint.address,
          requests: engine.requests,
          busy: round(load.busyMs / elapsedMs, 4),
          running: round((this.#loads.get(endpoint.key)?.running ?? 0) / this.#samples, 2),
          kvTokens: round((this.#loads.get(endpoint.key)?.kvTokens ?? 0) / this.#samples, 0),
          promptTokens: load.promptTokensTotal,
          outputTokens: load.outputTokensTotal,
          limit: endpoint.limit,
        };
      }),
    );
  }

  #sampleLoads(): void {
    this.#samples++;
    for (const { key, address } of this.#gateway.gateway.world.endpoints.values()) {
      const load = this.#gateway.engines.get(new URL(address).origin)?.accelerator.load();
      if (!load) continue;
      const sum = this.#loads.get(key) ?? { running: 0, kvTokens: 0 };
      sum.running += load.running;
      sum.kvTokens += load.kvTokens;
      this.#loads.set(key, sum);
    }
  }

  #schedule(): void {
    const next = this.#options.arrivals.next();
    const { durationMs = Number.POSITIVE_INFINITY } = this.#options;
    if (next.done || next.value.atMs >= durationMs) {
      this.#coming = undefined;
      return;
    }
    this.#coming = next.value;
    this.#gateway.time.set(next.value.atMs - this.#gateway.time.mono(), () => this.#come());
  }

  #come(): void {
    const arrival = this.#coming!;
    this.#lastAt = arrival.atMs;
    this.#recorder.offer(arrival);
    this.#schedule();
    this.#gateway.send(arrival);
  }

  #sample(): void {
    const { time, gateway } = this.#gateway;
    this.#sampleLoads();
    if (time.mono() % this.#everyMs !== 0) return;
    let waiting = 0;
    for (const { line } of gateway.world.backends.values()) waiting += line.length;
    let inflight = 0;
    for (const endpoint of gateway.world.endpoints.values()) inflight += endpoint.inflight;
    this.#series.push({ atMs: time.mono(), ...this.#recorder.take(), inflight, waiting });
    if (this.#series.length < MOMENTS_MAX) return;
    this.#everyMs *= 2;
    const halved = pairs(this.#series);
    this.#series.length = 0;
    this.#series.push(...halved);
  }
}

/** Two moments as one: what happened added up, what stood as it stood at the second. */
function pairs(series: readonly Moment[]): Moment[] {
  const halved: Moment[] = [];
  for (let i = 0; i + 1 < series.length; i += 2) {
    const a = series[i]!;
    const b = series[i + 1]!;
    halved.push({
      ...b,
      offered: a.offered + b.offered,
      good: a.good + b.good,
      late: a.late + b.late,
      degraded: a.degraded + b.degraded,
      refused: a.refused + b.refused,
      failed: a.failed + b.failed,
      left: a.left + b.left,
    });
  }
  return halved;
}

function round(value: number, digits: number): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}
