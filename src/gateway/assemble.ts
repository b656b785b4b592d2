import type { Registry } from 'prom-client';
import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import { Contexts, Pipelines } from '../pipelines/assemble.ts';
import type { TokenizerFiles, TokenizerPool } from '../pipelines/contracts.ts';
import { AnswerComparison } from '../releases/assemble.ts';
import { type GaugeReadings, type WorkerMetrics, workerMetrics } from '../telemetry/metrics.ts';
import { Answers } from './answers/index.ts';
import { BufferBudget } from './buffer-budget.ts';
import type { FactSink, Leases, OpenTransport, StatefulEndpoints } from './contracts.ts';
import { Drifts } from './drift/index.ts';
import type { ObservationSink } from './drift/route-drift.ts';
import { EndpointWatch } from './endpoint-watch.ts';
import { Path } from './path.ts';
import { Preparing } from './preparing/index.ts';
import { Quotas } from './quota/quotas.ts';
import { Rates } from './quota/rates.ts';
import { EvidenceGatherer } from './release/evidence.ts';
import { Sequences } from './sequences.ts';
import { ShadowCopies } from './shadow/index.ts';
import { World } from './state/world.ts';

export interface GatewayParts {
  /** Which of the workers it is. Default: 0. */
  worker?: number;
  clock: Clock;
  random: Random;
  timers: Timers;
  leases: Leases;
  /** Absent where there is no control to share them with. */
  rates?: Rates;
  facts: FactSink;
  /** Where what is seen of answers goes; absent where nobody watches for drift. */
  observations?: ObservationSink;
  openTransport: OpenTransport;
  registry: Registry;
  /** What the gauges show, read at each collection; absent where nobody looks at them. */
  gauges?: () => GaugeReadings;
  version: string;
  /** Absent where nothing is kept, such as in a simulation. */
  stateful?: StatefulEndpoints | undefined;
  /** What makes tokens of texts; absent where nothing does. */
  tokenizers?: { pool: TokenizerPool; files: TokenizerFiles } | undefined;
  /** Prompts stand for their lengths, as in a simulation: none is made to fit. */
  promptsAreLengths?: boolean;
}

export interface Gateway {
  world: World;
  path: Path;
  buffers: BufferBudget;
  metrics: WorkerMetrics;
  evidence: EvidenceGatherer;
}

const NOTHING_TO_SHOW: GaugeReadings = {
  endpoints: [],
  queued: { critical: 0, interactive: 0, standard: 0, batch: 0 },
  routes: [],
  factsWaiting: 0,
  batches: {},
};

/** Puts the request path together: the same for a worker, a test in virtual time and the simulator. */
export function assembleGateway(parts: GatewayParts): Gateway {
  const { clock, random, timers, leases, facts, openTransport } = parts;
  const rates = parts.rates ?? new Rates({ clock, timers });
  const quotas = new Quotas({ leases, rates, clock, timers });
  const buffers = new BufferBudget();
  const { observations } = parts;
  const drifts = observations && new Drifts({ clock, buffers, observations });
  const world = new World({ clock, random, timers, leases, quotas, openTransport, drifts });
  const metrics = workerMetrics(parts.registry, parts.gauges ?? (() => NOTHING_TO_SHOW));
  const evidence = new EvidenceGatherer({ clock, timers, facts, world, worker: parts.worker ?? 0 });
  world.onSwapped.push(() => evidence.swapped());
  const watch = new EndpointWatch({ clock, random, facts, world });
  const path = new Path({
    clock,
    random,
    timers,
    world,
    metrics,
    facts,
    evidence,
    buffers,
    sequences: new Sequences(),
    answers: new Answers({ clock, random, world, metrics, buffers }),
    shadows: new ShadowCopies({
      clock,
      random,
      timers,
      world,
      metrics,
      facts,
      buffers,
      watch,
      comparer: new AnswerComparison(random),
      pairs: evidence,
    }),
    watch,
    preparing: parts.tokenizers && new Preparing(parts.tokenizers),
    pipelines: new Pipelines(),
    contexts: new Contexts({ clock, tokenizers: parts.tokenizers, off: parts.promptsAreLengths }),
    stateful: parts.stateful,
    version: parts.version,
  });
  parts.stateful?.start(path);
  return { world, path, buffers, metrics, evidence };
}
