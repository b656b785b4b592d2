import { Gauge, type Registry } from 'prom-client';
import { type Priority, priorities } from '../kernel/priorities.ts';
import { SpreadFamily, TallyFamily } from './tally.ts';

/** Every metric of a gateway worker. Control merges those of all workers (see merge.ts): sums, save where said. */

/** From half a millisecond to ten minutes: an embedding on one side, a long generation on the other. */
const ANSWER_SECONDS = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30,
  60, 120, 300, 600,
];
/** From 50 us: what one request costs in the worker itself. */
const OVERHEAD_SECONDS = [
  0.000_05, 0.000_075, 0.0001, 0.000_15, 0.0002, 0.0003, 0.0005, 0.000_75, 0.001, 0.002, 0.003, 0.005, 0.01,
  0.025, 0.05, 0.1, 0.25, 1,
];
const LOOP_DELAY_SECONDS = [
  0.0005, 0.001, 0.002, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5,
];

/** What `armature_breaker_state` shows. */
export const BREAKER_STATES = { closed: 0, 'half-open': 1, open: 2 } as const;

/** What the worker's gauges show, read anew at each collection, so that nothing on the path keeps them up to date. */
export interface GaugeReadings {
  /** Every endpoint of the snapshot, idle ones too, and those of an older one that still have requests. */
  endpoints: Iterable<{
    backend: string;
    endpoint: string;
    inflight: number;
    limit: number;
    breaker: keyof typeof BREAKER_STATES;
  }>;
  /** Waiting requests. */
  queued: Record<Priority, number>;
  routes: Iterable<{ route: string; ready: boolean }>;
  factsWaiting: number;
  /** Texts that wait to become tokens. */
  textsWaiting?: number;
  /** Batches that are not over, by status, whichever worker runs them. */
  batches: Readonly<Record<string, number>>;
}

export type WorkerMetrics = ReturnType<typeof workerMetrics>;

/**
 * Defines a worker's metrics in `registry`. Children (`of(...)`) are kept by the caller. Label values are names of the
 * configuration: a route that does not exist is counted under an empty route, so that callers cannot make series.
 * `read` is called at every collection.
 */
export function workerMetrics(registry: Registry, read: () => GaugeReadings) {
  defineGauges(registry, read);
  const tally: Tally = (name, help, ...labels) => new TallyFamily(registry, name, help, labels);
  const spread: Spreads = (name, help, bounds, ...labels) =>
    new SpreadFamily(registry, name, help, labels, bounds);
  const queueSeconds = spread(
    'armature_queue_seconds',
    'Time that requests waited for a place.',
    ANSWER_SECONDS,
    'priority',
  );
  for (const priority of priorities) queueSeconds.of(priority);
  return {
    /** route, tenant, outcome */
    requests: tally('armature_requests_total', 'Requests by how they ended.', 'route', 'tenant', 'outcome'),
    ...timeMetrics(spread),
    /** priority */
    queueSeconds,
    ...detourMetrics(tally),
    /** route, tenant, kind (`in`, `out`) */
    tokens: tally(
      'armature_tokens_total',
      'Tokens of prompts (in) and answers (out).',
      'route',
      'tenant',
      'kind',
    ),
    /** route, tenant */
    cost: tally(
      'armature_cost_total',
      'What the tokens cost, at the price of the backends that used them.',
      'route',
      'tenant',
    ),
    /** outcome (`answered`, `failed`, `again`) */
    batchLines: tally(
      'armature_batch_lines_total',
      'Lines of batches by what came of asking them: `again` where they are asked once more.',
      'outcome',
    ),
  };
}

type Tally = (name: string, help: string, ...labels: string[]) => TallyFamily;
type Spreads = (name: string, help: string, bounds: readonly number[], ...labels: string[]) => SpreadFamily;

/** What things take, seconds. */
function timeMetrics(spread: Spreads) {
  return {
    /** route */
    requestSeconds: spread(
      'armature_request_seconds',
      'From the request to the end of its answer.',
      ANSWER_SECONDS,
      'route',
    ),
    /** route */
    firstTokenSeconds: spread(
      'armature_first_token_seconds',
      'From the request to the first content of a streamed answer.',
      ANSWER_SECONDS,
      'route',
    ),
    /** pipeline, stage */
    stageSeconds: spread(
      'armature_stage_seconds',
      'Time that a stage of a pipeline took, from its start to its end.',
      ANSWER_SECONDS,
      'pipeline',
      'stage',
    ),
    overheadSeconds: spread(
      'armature_overhead_seconds',
      "A request's time in the worker less its waiting in the queue and for upstream.",
      OVERHEAD_SECONDS,
    ).of(),
    loopDelaySeconds: spread(
      'armature_event_loop_delay_seconds',
      "How late the worker's event loop runs, beyond the sampling interval.",
      LOOP_DELAY_SECONDS,
    ).of(),
  };
}

/** Of requests that did not go straight to one endpoint and back. */
function detourMetrics(tally: Tally) {
  return {
    /** route, reason */
    shed: tally(
      'armature_shed_total',
      'Requests refused or sent down the ladder for want of room, time or quota.',
      'route',
      'reason',
    ),
    /** route, rung */
    degraded: tally('armature_degraded_total', 'Answers that a rung below full gave.', 'route', 'rung'),
    /** route, outcome (`hit`, `stale`, `miss`, `bypass`, `stored`) */
    cache: tally(
      'armature_cache_total',
      'Requests by what the kept answers had for them, and answers kept.',
      'route',
      'outcome',
    ),
    /** route, how (`single-flight`, `batch`) */
    joined: tally('armature_joined_total', 'Requests that went upstream as one with others.', 'route', 'how'),
    /** route */
    preparedBatches: tally(
      'armature_prepared_batches_total',
      'Batches of texts that went upstream as tokens.',
      'route',
    ),
    /** route, kind (`text`, `padding`) */
    preparedTokens: tally(
      'armature_prepared_tokens_total',
      'Tokens that went upstream in such batches, of texts and of padding.',
      'route',
      'kind',
    ),
    /** route, outcome (`won`, `lost`, `failed`, `abandoned`, `withheld`) */
    hedges: tally(
      'armature_hedges_total',
      'Second attempts beside a slow first one, by how they ended.',
      'route',
      'outcome',
    ),
    /** route, backend, outcome (`ok`, `failed`, `dropped`, `fenced`) */
    shadows: tally(
      'armature_shadow_total',
      'Copies of requests sent to shadows, by what came of them.',
      'route',
      'backend',
      'outcome',
    ),
    /** route, backend, outcome (`alike`, `worse`, `better`, or why not) */
    compared: tally(
      'armature_shadow_compared_total',
      'Answers to copies by how they compare with those of callers, or by why they were not compared.',
      'route',
      'backend',
      'outcome',
    ),
    /** backend, reason */
    retries: tally('armature_retries_total', 'Attempts after the first of a request.', 'backend', 'reason'),
  };
}

type Aggregator = 'sum' | 'max';

type DefineGauge = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  aggregator: Aggregator,
  fill: (gauge: Gauge<Label>, readings: GaugeReadings) => void,
) => void;

function defineGauges(registry: Registry, read: () => GaugeReadings): void {
  const gauge: DefineGauge = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    aggregator: Aggregator,
    fill: (gauge: Gauge<Label>, readings: GaugeReadings) => void,
  ) =>
    new Gauge<Label>({
      name,
      help,
      labelNames,
      aggregator,
      registers: [registry],
      collect() {
        this.reset();
        fill(this, read());
      },
    });

  defineEndpointGauges(gauge);
  gauge('armature_queue_depth', 'Requests that wait for a place.', ['priority'], 'sum', (it, { queued }) => {
    for (const priority of priorities) it.set({ priority }, queued[priority]);
  });
  gauge(
    'armature_route_ready',
    'Whether an endpoint or rung can answer the route: 1 where one worker or more says so.',
    ['route'],
    'max',
    (it, { routes }) => {
      for (const { route, ready } of routes) it.set({ route }, ready ? 1 : 0);
    },
  );
  gauge(
    'armature_preprocessing_waiting',
    'Texts that wait to become tokens.',
    [],
    'sum',
    (it, { textsWaiting }) => it.set(textsWaiting ?? 0),
  );
  gauge('armature_facts_waiting', 'Records that wait to be stored.', [], 'sum', (it, { factsWaiting }) => {
    it.set(factsWaiting);
  });
  gauge(
    'armature_batches',
    'Batches that are not over; each worker tells of all of them.',
    ['status'],
    'max',
    (it, { batches }) => {
      for (const [status, count] of Object.entries(batches)) it.set({ status }, count);
    },
  );
}

function defineEndpointGauges(gauge: DefineGauge): void {
  const perEndpoint = ['backend', 'endpoint'] as ('backend' | 'endpoint')[];
  gauge(
    'armature_inflight',
    'Requests that an endpoint is serving.',
    perEndpoint,
    'sum',
    (it, { endpoints }) => {
      for (const { backend, endpoint, inflight } of endpoints) it.inc({ backend, endpoint }, inflight);
    },
  );
  gauge(
    'armature_limit',
    'Requests of usual size that may be at an endpoint at once.',
    perEndpoint,
    'sum',
    (it, { endpoints }) => {
      for (const { backend, endpoint, limit } of endpoints) it.inc({ backend, endpoint }, limit);
    },
  );
  gauge(
    'armature_breaker_state',
    'Breaker of an endpoint: 0 closed, 1 half-open, 2 open; the worst of all workers.',
    perEndpoint,
    'max',
    (it, { endpoints }) => {
      for (const { backend, endpoint, breaker } of endpoints)
        it.set({ backend, endpoint }, BREAKER_STATES[breaker]);
    },
  );
}
