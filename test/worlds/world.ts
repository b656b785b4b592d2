import { type Settings, settingsSchema } from '../../src/config/schema/index.ts';
import { priorities } from '../../src/kernel/priorities.ts';
import { type Random, seededRandom } from '../../src/kernel/random.ts';
import type { Arrival } from '../../src/simulation/contracts.ts';
import type { Ailment } from '../../src/simulation/engine.ts';

/** Chance, as the makers of worlds want it. */
class Dice {
  readonly random: Random;
  constructor(seed: number) {
    this.random = seededRandom(seed);
  }
  /** A whole number of `low` to `high`, both included. */
  whole(low: number, high: number): number {
    return low + Math.floor(this.random.next() * (high - low + 1));
  }
  /** Evenly on a scale of magnitudes. */
  scale(low: number, high: number): number {
    return Math.round(low * (high / low) ** this.random.next());
  }
  chance(share: number): boolean {
    return this.random.next() < share;
  }
  one<Item>(items: readonly Item[]): Item {
    return items[this.whole(0, items.length - 1)]!;
  }
  list<Item>(low: number, high: number, make: (index: number) => Item): Item[] {
    return Array.from({ length: this.whole(low, high) }, (_, index) => make(index));
  }
}

/** What happens to the machines in the middle of it. */
export type Mishap = { atMs: number; backend: string; endpoint: number } & (
  | { kind: 'ails'; ailment: Ailment; forMs: number }
  | { kind: 'cut' }
  | { kind: 'restart'; downMs: number }
);

/** A configuration, what is asked of it, and what goes wrong: all of it follows from the seed. */
export interface WorldPlan {
  seed: number;
  settings: Settings;
  /** Whether engines tell of their load. */
  gauges: boolean;
  arrivals: Arrival[];
  mishaps: Mishap[];
  /** Other settings that are swapped in. */
  swaps: { atMs: number; settings: Settings }[];
  /** When a drain begins, and when what is left is ended. */
  drain: { atMs: number; endAtMs: number } | undefined;
  durationMs: number;
}

type Part = Record<string, unknown>;

export function planWorld(seed: number): WorldPlan {
  const dice = new Dice(seed);
  // In a crowded world far more is asked than can be answered, and there is time to wait.
  const crowded = dice.chance(0.35);
  const backends = makeBackends(dice, crowded);
  const routes = makeRoutes(dice, Object.keys(backends), crowded);
  const tenants = dice.chance(crowded ? 0.9 : 0.7) ? makeTenants(dice, Object.keys(routes)) : undefined;
  // Drawn apart, so that worlds without any stay what they were.
  const piped = new Dice(seed ^ 0x9199);
  const pipelines = piped.chance(0.3) ? { search: makePipeline(piped, Object.keys(routes)) } : {};
  const tiered = new Dice(seed ^ 0x7135);
  if (tiered.chance(0.25)) addTiers(tiered, backends, routes, tenants);
  const written = {
    gateway: makeGateway(dice),
    backends,
    routes,
    ...(tenants && { tenants }),
    pipelines,
  };
  const settings = settingsSchema.parse(written);
  const durationMs = crowded ? dice.scale(500, 10_000) : dice.scale(2000, 30_000);
  const swaps = dice.list(0, dice.chance(0.4) ? 3 : 0, () => ({
    atMs: dice.whole(0, durationMs),
    settings: settingsSchema.parse(changed(dice, written)),
  }));
  const drainAt = dice.whole(durationMs / 2, durationMs);
  return {
    seed,
    settings,
    arrivals: makeArrivals(dice, settings, durationMs, crowded).map((arrival) =>
      'search' in pipelines && piped.chance(0.4) ? { ...arrival, route: 'search' } : arrival,
    ),
    mishaps: makeMishaps(dice, settings, durationMs),
    swaps: swaps.sort((a, b) => a.atMs - b.atMs),
    gauges: dice.chance(0.5),
    drain: dice.chance(0.15) ? { atMs: drainAt, endAtMs: drainAt + dice.whole(0, 3000) } : undefined,
    durationMs,
  };
}

function makeGateway(dice: Dice): Part {
  const gateway: Part = dice.chance(0.1) ? { bufferBytesMax: '1MiB' } : {};
  if (dice.chance(0.3))
    gateway['floors'] = { interactive: dice.one([0, 0.1, 0.3]), batch: dice.one([0, 0.05, 0.2]) };
  if (dice.chance(0.1)) gateway['cacheBytesMax'] = '64KiB';
  return gateway;
}

function makeLimits(dice: Dice, crowded: boolean): Part {
  const limits: Part = { concurrency: dice.scale(1, crowded ? 6 : 24) };
  if (dice.chance(0.5))
    limits['adaptive'] = dice.one(['knee', 'target', 'gradient2', 'vegas', 'aimd', 'off', 'off']);
  if (limits['adaptive'] === 'target' || dice.chance(0.1)) limits['firstToken'] = `${dice.scale(50, 2000)}ms`;
  return limits;
}

function makeBackends(dice: Dice, crowded: boolean): Record<string, Part> {
  const faulty = dice.chance(0.3);
  const made = dice.list(1, crowded ? 2 : 4, (index) => {
    const served: Part = {
      limits: makeLimits(dice, crowded),
      timeouts: {
        connect: '1s',
        firstByte: `${dice.scale(500, 20_000)}ms`,
        idle: `${dice.scale(2500, 20_000)}ms`,
        total: `${dice.scale(2000, 60_000)}ms`,
      },
    };
    if (dice.chance(0.3)) {
      const faults = faulty
        ? {
            errorRate: dice.random.next() * 0.2,
            resetRate: dice.random.next() * 0.2,
            stallRate: dice.random.next() * 0.1,
          }
        : {};
      served['engine'] = 'sim';
      served['profile'] = {
        prefillTokensPerSecond: dice.scale(2000, 40_000),
        decodeTokensPerSecond: dice.scale(30, 600),
        batchMax: dice.scale(1, 32),
        kvTokensMax: dice.scale(5000, 100_000),
        jitter: dice.one([0, 0.2]),
        faults,
      };
    } else {
      served['engine'] = dice.one(['openai', 'vllm']);
      served['model'] = `model-${index}`;
      served['endpoints'] = dice.list(1, crowded ? 3 : 5, (at) => `http://10.0.${index}.${at}:8000/v1`);
    }
    return [`b${index}`, served] as const;
  });
  return Object.fromEntries(made);
}

function makeRoutes(dice: Dice, backends: readonly string[], crowded: boolean): Record<string, Part> {
  const made = dice.list(1, 3, (index) => {
    const own = [...backends].sort(() => dice.random.next() - 0.5);
    const targets = own
      .slice(0, dice.whole(1, own.length))
      .map((backend) => ({ backend, weight: dice.one([0, 1, 1, 5]) }));
    if (targets.every(({ weight }) => weight === 0)) targets[0]!.weight = 1;
    const rungs = [
      ...(dice.chance(0.3) ? [{ output: { tokensMax: dice.one([5, 40]) } }] : []),
      ...own.slice(targets.length).map((backend) => ({ backend })),
      ...(dice.chance(0.3) ? [{ cached: { staleMax: '10m' } }] : []),
      ...(dice.chance(0.4) ? [{ answer: 'Come again.' }] : []),
    ];
    const route: Part = {
      targets,
      ladder: dice.chance(0.5) ? rungs : [],
      deadline: `${crowded ? dice.scale(5000, 120_000) : dice.scale(200, 20_000)}ms`,
      queue: { max: crowded ? dice.one([16, 512]) : dice.one([0, 1, 4, 16, 64, 512]) },
      affinity: dice.one(['none', 'none', 'session', 'prefix']),
      retry: { attempts: dice.whole(1, 4), budget: dice.one([0, 0.05, 0.1, 0.5]) },
    };
    if (dice.chance(0.2))
      route['hedge'] = { after: dice.one(['p95', '50ms', '500ms']), budget: dice.one([0.05, 0.5]) };
    if (dice.chance(0.2)) route['cache'] = { ttl: dice.one(['1s', '5m']) };
    if (dice.chance(0.2)) route['singleFlight'] = true;
    if (dice.chance(0.2))
      route['batch'] = {
        delay: dice.one(['2ms', '30ms']),
        max: dice.one([2, 16]),
        acrossTenants: dice.chance(0.5),
      };
    if (dice.chance(0.15)) {
      const by = dice.one(['exact', 'structured', 'numeric', 'decision']);
      const compare = dice.chance(0.5) ? { compare: { by } } : {};
      route['shadow'] = [{ backend: dice.one(backends), percent: dice.one([10, 100]), ...compare }];
    }
    return [`r${index}`, route] as const;
  });
  return Object.fromEntries(made);
}

/** Every backend stands in a tier, and most routes have rules for them. */
function addTiers(
  dice: Dice,
  backends: Record<string, Part>,
  routes: Record<string, Part>,
  tenants: Record<string, Part> | undefined,
): void {
  const names = ['edge', 'mid', 'large'];
  for (const backend of Object.values(backends)) {
    backend['tier'] = dice.one(names);
    if (dice.chance(0.7)) backend['price'] = { in: dice.whole(1, 9), out: dice.whole(1, 9) };
    if (dice.chance(0.2)) backend['context'] = { window: dice.scale(100, 5000) };
  }
  for (const tenant of Object.values(tenants ?? {})) if (dice.chance(0.3)) tenant['tier'] = dice.one(names);
  for (const route of Object.values(routes)) {
    if (dice.chance(0.2)) continue;
    route['tiers'] = dice.list(1, 4, () => {
      const when: Part = {};
      if (dice.chance(0.3)) when['priority'] = [dice.one(priorities), dice.one(priorities)];
      if (dice.chance(0.3)) when['promptTokensMax'] = dice.scale(10, 3000);
      if (dice.chance(0.2)) when['promptTokensMin'] = dice.scale(10, 3000);
      if (dice.chance(0.3)) when['load'] = { [dice.one(names)]: dice.one([0.2, 0.8, 1.5]) };
      return {
        tier: dice.one([...names, 'asked', 'cheapest']),
        when,
        waitMax: dice.one(['0ms', '0ms', '500ms', '1h']),
      };
    });
  }
}

function makePipeline(dice: Dice, routes: readonly string[]): Part {
  const deadlineMs = dice.scale(300, 20_000);
  const names = dice.list(1, 4, (index) => `s${index}`);
  const stage = (index: number): Part => {
    const made: Part = {
      route: dice.one(routes),
      input: dice.one(['{{ request.text }}', 'Say it in a word.']),
      after: names.slice(0, index).filter(() => dice.chance(0.4)),
      onFailure: dice.one(['skip', 'fail', { use: 'nothing' }, { route: dice.one(routes) }]),
      stream: dice.chance(0.5),
    };
    if (dice.chance(0.5)) made['budget'] = dice.one(['auto', `${Math.round(deadlineMs / 6)}ms`]);
    if (dice.chance(0.2)) made['when'] = dice.one(['request.stream', 'request.text == ""']);
    if (dice.chance(0.2))
      Object.assign(made, {
        each: '["a", "b", "c"]',
        input: '{{ item.text }}',
        concurrency: dice.whole(1, 3),
      });
    return made;
  };
  const stages = Object.fromEntries(names.map((name, index) => [name, stage(index)]));
  const texts = names.map((name) => `{{ ${name} }}`).join(' ');
  stages['end'] = {
    ...stage(names.length),
    each: undefined,
    after: names,
    input: `${texts} {{ request.text }}`,
  };
  return { deadline: `${deadlineMs}ms`, stages };
}

function makeTenants(dice: Dice, routes: readonly string[]): Record<string, Part> {
  const made = dice.list(1, 4, (index) => {
    const tenant: Part = { priority: dice.one(priorities) };
    if (dice.chance(0.3)) tenant['share'] = dice.one([0.5, 2, 10]);
    if (dice.chance(0.1)) tenant['routes'] = [dice.one(routes)];
    if (dice.chance(0.3)) {
      const limits: Part = {};
      if (dice.chance(0.5)) limits['requests'] = `${dice.scale(1, 50)}/s`;
      if (dice.chance(0.5)) limits['tokens'] = `${dice.scale(10_000, 1_000_000)}/min`;
      if (dice.chance(0.5)) limits['concurrency'] = dice.scale(1, 16);
      if (dice.chance(0.3))
        limits['routes'] = {
          [dice.one(routes)]: { requests: `${dice.scale(1, 20)}/s`, concurrency: dice.scale(1, 8) },
        };
      tenant['limits'] = limits;
    }
    return [`t${index}`, tenant] as const;
  });
  return Object.fromEntries(made);
}

/** Other limits, an endpoint less or more, another queue: what an operator changes. Names stay, or a route's go. */
function changed(
  dice: Dice,
  written: { backends: Record<string, Part>; routes: Record<string, Part> },
): Part {
  const next = structuredClone(written) as typeof written;
  for (const backend of Object.values(next.backends)) {
    if (dice.chance(0.5)) backend['limits'] = { concurrency: dice.scale(1, 24) };
    const endpoints = backend['endpoints'] as string[] | undefined;
    if (!endpoints) continue;
    if (dice.chance(0.3) && endpoints.length > 1) endpoints.splice(dice.whole(0, endpoints.length - 1), 1);
    if (dice.chance(0.3)) endpoints.push(`http://10.9.${dice.whole(0, 9)}.${dice.whole(0, 255)}:8000/v1`);
    backend['endpoints'] = [...new Set(endpoints)];
  }
  for (const route of Object.values(next.routes)) {
    if (dice.chance(0.3)) route['queue'] = { max: dice.one([0, 2, 64]) };
    if (dice.chance(0.2)) route['deadline'] = `${dice.scale(200, 20_000)}ms`;
  }
  return next;
}

function makeArrivals(dice: Dice, settings: Settings, durationMs: number, crowded: boolean): Arrival[] {
  const routes = Object.keys(settings.routes);
  const tenants = settings.tenants ? Object.keys(settings.tenants) : [undefined];
  const count = crowded ? dice.scale(100, 500) : dice.scale(10, 400);
  const bursty = dice.chance(0.5);
  // Where callers do not say how much they want at most, quotas have to guess.
  const says = dice.chance(0.5);
  const repeats = dice.chance(0.3);
  const arrivals: Arrival[] = [];
  let burstAt = 0;
  for (let i = 0; i < count; i++) {
    if (i % 20 === 0) burstAt = dice.whole(0, durationMs);
    const atMs =
      bursty && dice.chance(0.8) ? burstAt + dice.random.next() * 50 : dice.random.next() * durationMs;
    const outputTokens = dice.scale(1, 120);
    arrivals.push({
      atMs: dice.chance(0.2) ? Math.round(atMs) : atMs, // some at one moment
      route: dice.chance(0.02) ? 'nowhere' : dice.one(routes),
      kind: dice.chance(0.1) ? 'embeddings' : 'chat',
      promptTokens: dice.scale(1, 3000),
      outputTokens,
      stream: dice.chance(0.5),
      outputTokensMax: dice.one([says ? outputTokens : undefined, outputTokens, outputTokens, 500]),
      tenant: dice.one(tenants),
      priority: dice.chance(0.4) ? dice.one(priorities) : undefined,
      deadlineMs: dice.chance(crowded ? 0.05 : 0.2) ? dice.scale(20, 5000) : undefined,
      session: dice.chance(0.3) ? `s${dice.whole(0, 5)}` : undefined,
      leavesAfterMs: dice.chance(0.1) ? dice.scale(1, 3000) : undefined,
    });
  }
  for (const arrival of arrivals) {
    if (arrival.kind === 'embeddings') arrival.stream = false;
    if (!repeats || !dice.chance(0.7)) continue;
    const subject = dice.whole(1, 6);
    const outputTokens = 10 * subject;
    Object.assign(arrival, {
      subject,
      promptTokens: 100 * subject,
      outputTokens,
      outputTokensMax: outputTokens,
    });
  }
  return arrivals.sort((a, b) => a.atMs - b.atMs);
}

function makeMishaps(dice: Dice, settings: Settings, durationMs: number): Mishap[] {
  const backends = Object.keys(settings.backends);
  if (dice.chance(0.3)) return [];
  return dice.list(1, 6, (): Mishap => {
    const where = {
      atMs: dice.whole(0, durationMs),
      backend: dice.one(backends),
      endpoint: dice.whole(0, 4),
    };
    if (dice.chance(0.2)) return { ...where, kind: 'cut' };
    if (dice.chance(0.2)) return { ...where, kind: 'restart', downMs: dice.scale(10, 5000) };
    const ailment = dice.one<Ailment>([
      { kind: 'refusing' },
      { kind: 'silent' },
      { kind: 'slow', times: dice.scale(2, 50) },
      { kind: 'answers', status: dice.one([500, 502, 503, 429, 401, 404]) },
      { kind: 'answers', status: dice.one([503, 429]), retryAfterSeconds: dice.whole(1, 20) },
    ]);
    return { ...where, kind: 'ails', ailment, forMs: dice.scale(10, 10_000) };
  });
}
