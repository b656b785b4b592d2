import { settingsSchema } from '../../src/config/schema/index.ts';
import type { Endpoint } from '../../src/gateway/state/endpoint.ts';
import { type Random, seededRandom } from '../../src/kernel/random.ts';
import type { AcceleratorProfile } from '../../src/simulation/accelerator/step.ts';
import type { SimulatedEngine } from '../../src/simulation/engine.ts';
import { SimulatedGateway } from '../../src/simulation/gateway.ts';

/** A load of one kind: sizes are drawn around their means, log-normally. */
export interface Load {
  profile?: Partial<AcceleratorProfile>;
  prompt: number;
  output: number;
  spread: number;
  stream: boolean;
  /** How often the capacity of the profile is asked for, from which moment on. */
  demand: readonly (readonly [atMs: number, times: number])[];
  /** From which moment on every step takes so many times as long. */
  paces?: readonly (readonly [atMs: number, times: number])[];
}

export interface RigOptions {
  load: Load;
  limits: object;
  deadline?: string;
  seed?: number;
}

/** What one request told. */
interface First {
  at: number;
  /** From sending it to the engine to its first content. */
  ms: number;
}

const PROFILE: Omit<AcceleratorProfile, 'coldStart'> = {
  prefillTokensPerSecond: 8000,
  decodeTokensPerSecond: 60,
  batchMax: 32,
  kvTokensMax: 100_000,
  jitter: 0.1,
  faults: { errorRate: 0, resetRate: 0, stallRate: 0 },
};

const SAMPLE_MS = 100;

/** A whole gateway in front of one simulated engine, in virtual time, under an open loop of requests. */
export class LimitRig {
  readonly gateway: SimulatedGateway;
  readonly engine: SimulatedEngine;
  readonly endpoint: Endpoint;
  /** Every 100 ms: the limit, and what runs and waits inside the engine. */
  readonly samples: {
    at: number;
    limit: number;
    running: number;
    waiting: number;
    inflight: number;
    tokens: number;
  }[] = [];
  readonly firsts: First[] = [];
  /** Answered whole and within the deadline: when it came, when it was answered, and its tokens. */
  readonly good: { cameAt: number; at: number; tokens: number }[] = [];
  /** Requests that got no answer in time though they had been sent: when they came. */
  readonly missed: number[] = [];
  readonly refused: number[] = [];
  readonly #options: RigOptions;
  readonly #random: Random;

  constructor(options: RigOptions) {
    this.#options = options;
    const { load, limits, deadline = '10s', seed = 1 } = options;
    this.#random = seededRandom(seed);
    this.gateway = new SimulatedGateway({
      settings: settingsSchema.parse({
        backends: { model: { engine: 'sim', limits, profile: { ...PROFILE, ...load.profile } } },
        routes: { chat: { targets: [{ backend: 'model' }], deadline } },
      }),
      seed,
      wantsRecord: () => false,
      onAnswered: (caller) => {
        const { startedAt, endedAt, status, code } = caller;
        const { promptTokens, outputTokens } = caller.arrival;
        if (status === 200 && !caller.broken)
          this.good.push({ cameAt: startedAt, at: endedAt, tokens: promptTokens + outputTokens });
        else if (code === 'deadline_exceeded') this.missed.push(startedAt);
        else this.refused.push(startedAt);
      },
    });
    this.engine = this.gateway.enginesOf('model')[0]!;
    this.endpoint = [...this.gateway.gateway.world.endpoints.values()][0]!;
    this.#listen();
    for (const [atMs, times] of load.paces ?? [])
      this.gateway.time.set(atMs, () => this.engine.ails({ kind: 'slow', times }));
    this.#arrive();
    this.#sample();
  }

  run(ms: number): this {
    this.gateway.time.run(ms);
    return this;
  }

  #listen(): void {
    const { endpoint, firsts } = this;
    const began = endpoint.began.bind(endpoint);
    endpoint.began = (sent, tokensIn, deadlineMs, now) => {
      firsts.push({ at: now, ms: now - sent.startedAt });
      began(sent, tokensIn, deadlineMs, now);
    };
  }

  #arrive(): void {
    const { load } = this.#options;
    const { time } = this.gateway;
    const now = time.mono();
    const demand = load.demand.findLast(([at]) => at <= now)![1];
    this.gateway.send({
      atMs: now,
      route: 'chat',
      kind: 'chat',
      promptTokens: this.#draw(load.prompt),
      outputTokens: this.#draw(load.output),
      stream: load.stream,
      outputTokensMax: undefined,
      tenant: undefined,
      priority: undefined,
      deadlineMs: undefined,
      session: undefined,
      leavesAfterMs: undefined,
    });
    const perMs = (demand * capacityOf(load)) / 1000;
    time.set(-Math.log(1 - this.#random.next()) / perMs, () => this.#arrive());
  }

  #draw(mean: number): number {
    const { spread } = this.#options.load;
    const angle = 2 * Math.PI * this.#random.next();
    const normal = Math.sqrt(-2 * Math.log(1 - this.#random.next())) * Math.cos(angle);
    return Math.max(1, Math.min(4000, Math.round(mean * Math.exp(spread * normal - spread ** 2 / 2))));
  }

  #sample(): void {
    const { running, waiting } = this.engine.accelerator.load();
    const { limit, inflight, tokensInFlight: tokens } = this.endpoint;
    const at = this.gateway.time.mono();
    this.samples.push({ at, limit, running, waiting, inflight, tokens });
    this.gateway.time.set(SAMPLE_MS, () => this.#sample());
  }
}

/** Requests a second that the profile can do, roughly: the batch is full of requests of mean size. */
export function capacityOf({ profile, prompt, output }: Pick<Load, 'profile' | 'prompt' | 'output'>): number {
  const { batchMax, kvTokensMax, decodeTokensPerSecond, prefillTokensPerSecond } = { ...PROFILE, ...profile };
  const batch = Math.min(batchMax, kvTokensMax / (prompt + output));
  const decode = 1 / decodeTokensPerSecond / batch + 1 / prefillTokensPerSecond;
  return 1 / (output * decode + prompt / prefillTokensPerSecond);
}

export const mean = (of: readonly number[]): number => of.reduce((a, b) => a + b, 0) / of.length;

export function quantile(of: readonly number[], q: number): number {
  const sorted = [...of].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]!;
}
