import type {
  CompareSettings,
  LocalBackendSettings,
  ModelSettings,
  Settings,
  SimBackendSettings,
} from '../config/schema/index.ts';
import type { Fact } from '../events/contracts.ts';

/** What travels between the processes, as JSON lines over Unix sockets in the data directory. */

/** The numbered, immutable set of settings that a gateway decides on. */
export interface Snapshot {
  number: number;
  /** The event that published it: a cause of every decision taken on it. */
  event: string;
  /** Settings with secrets resolved and overlays applied. */
  settings: Settings;
  /** Live keys: those made by `armature keys create` and those of the file. */
  keys: { id: string; tenant: string; hash: string }[];
  /** Where each backend is reached now. Local and simulated ones are empty until their host has said where it listens. */
  endpoints: Record<string, string[]>;
  /** Releases under way, by route; absent where there are none. */
  releases?: Record<string, ReleaseArms>;
}

/**
 * How sessions of a route under release are divided. The route's targets carry the same share as weights, for what has no
 * eye for arms.
 */
export interface ReleaseArms {
  /** `rel_...` */
  id: string;
  /** The backend that is released. */
  canary: string;
  /** Answers the baseline arm; absent: the targets that answer the rest. */
  baseline?: string;
  /** 0 to 1. Nothing goes to the canary at 0, save copies. */
  share: number;
  /** Milliseconds, by size class, and cost: what stable was seen to need, frozen before the canary began. Absent before that. */
  edges?: { times: Record<string, { p95: number; p99: number }>; cost?: number };
  /** How many of a hundred requests are copied to the canary, and how answers are compared. */
  shadow?: { percent: number; compare?: CompareSettings };
}

/**
 * What control has learned beside the configuration: it arrives beside snapshots and survives them. Each message may carry
 * some of it; what is absent is as it was told before.
 */
export interface Readings {
  /** By probes, keyed `BACKEND|ADDRESS`. */
  health?: Record<string, 'well' | 'unwell'>;
  /** The event that tells of each unwell one: a cause of what is decided while it is so. Comes with `health`. */
  causes?: Record<string, string>;
  /** How the host of each local or simulated backend stands, by the name of the backend. */
  hosts?: Record<string, HostReading>;
  /** What engines tell of their own load, keyed `BACKEND|ADDRESS`: those that were read since the message before. */
  gauges?: Record<string, GaugeReading>;
}

/** A reading that is older, in milliseconds, is not gone by: several scrapes have failed since. */
export const GAUGE_STALE_MS = 5000;

/** An engine's own load, whoever sent it. What it does not tell is absent, and not zero. */
export interface GaugeReading {
  /** Requests that wait inside the engine, and requests that it works on. */
  waiting?: number;
  running?: number;
  /** Share of its cache of keys and values in use, 0 to 1. */
  cacheUsed?: number;
  /** Milliseconds since it was read, when this was sent. Default: 0. */
  ageMs?: number;
}

/** The process behind a backend that is served by a host of ours. */
export interface HostReading {
  /**
   * `idle`: stopped for want of requests, and woken by the next one. `fetching`: it will start when its files are here.
   * `failing`: it keeps dying, and is started again after a while.
   */
  state: 'starting' | 'fetching' | 'failing' | 'running' | 'idle';
  /** Of one that neither runs nor is idle: milliseconds since its start began; below 0 while it waits to be started again. */
  startingMs?: number;
  /** Milliseconds from the start of the process until it serves, as measured before; absent where none was. */
  expectedMs?: number;
  /** The event that it stands so for. */
  cause?: string;
}

/** A part says who it is, first thing on every connection. */
export interface Hello {
  type: 'hello';
  role: 'control' | 'gateway' | 'host';
  /** Unique among the parts of one data directory: `control`, `gateway-0`, `host-BACKEND`. */
  part: string;
  pid: number;
  /** Drawn anew by each process. */
  boot: string;
}

/** What a worker saw of one answer of a route that is watched for drift. */
export interface Observation {
  route: string;
  backend: string;
  /** The name that the engine knows the model by. */
  model: string;
  /** Armature's id of the request, and the caller's own where it sent one. */
  request: string;
  requestId?: string;
  /** By feature; null where there should be a value and is none. An embedding is told by a few numbers. */
  values: Record<string, number | string | number[] | null>;
  /** Beginnings of texts, by the feature that is their language. They are not kept. */
  texts?: Record<string, string>;
  /** How sure the answer is, 0 to 1, and the class that it says, where it tells. */
  score?: number;
  class?: string;
}

export type GatewayToControl =
  | (Hello & { worker: number; holdings: Record<string, number> })
  | { type: 'facts'; boot: string; sequence: number; facts: Fact[] }
  /**
   * `want` is how many units of the key the worker could use now, held ones included; `total` is the limit of all workers
   * together, as its snapshot says. Sent with a `want` of 0 when a limit is declared.
   */
  | { type: 'lease-ask'; key: string; want: number; total: number }
  | { type: 'lease-return'; key: string; units: number; want: number }
  /** The worker asks for no more of the key; what it holds and what is still granted comes back as it is not in use. */
  | { type: 'lease-forget'; key: string }
  /** Wants these amounts of these rates, all or none. Answered in the order in which they are asked. */
  | { type: 'quota-ask'; ask: number; keys: string[]; amounts: number[] }
  /** What was used of rates and not asked for; below 0 what was taken and not used. */
  | { type: 'quota-used'; used: Record<string, number> }
  /** What the worker thinks is there of each rate, for a control that does not know: the least that is said counts. */
  | { type: 'quota-known'; levels: Record<string, number> }
  | { type: 'reply'; ask: number; data: unknown }
  /** A request, `cause`, came for a backend whose host is idle. */
  | { type: 'wake'; backend: string; cause: string }
  /** What was seen of answers of routes that are watched for drift; so many before could not be told. */
  | { type: 'observations'; observations: Observation[]; lost: number }
  /** The last thing a worker says that ends in good order: what it has counted. */
  | { type: 'parting'; metrics: unknown };

export type ControlToGateway =
  | { type: 'snapshot'; snapshot: Snapshot }
  | { type: 'readings'; readings: Readings }
  | { type: 'facts-stored'; boot: string; sequence: number }
  | { type: 'lease-grant'; key: string; units: number }
  /**
   * So many units (beyond those recalled before) are to come back, as soon as they are not in use. `pressed`: other workers
   * are short of units, and those that nothing waits for here come back at once, until a recall says otherwise.
   */
  | { type: 'lease-recall'; key: string; units: number; pressed: boolean }
  /** What is there of each rate now, in the order of the keys; null for one that control does not know, which limits nothing. */
  | { type: 'quota-answer'; ask: number; granted: boolean; levels: (number | null)[] }
  /** More is there of a rate than a worker was told when it was refused. */
  | { type: 'quota-level'; key: string; level: number }
  /** `metrics`: the worker's registry as JSON, a list of telemetry's MetricJson; `state`: a WorkerState. */
  | { type: 'ask'; ask: number; what: 'metrics' | 'state' };

/** What `armature status` shows of one worker. */
export interface WorkerState {
  worker: number;
  pid: number;
  snapshot: number;
  draining: boolean;
  inflight: number;
  factsWaiting: number;
  routes: { route: string; ready: boolean; waiting: number }[];
  /** What tenants are held to: levels of rates as this worker knows them, and slots in use here. Absent where nothing is. */
  quotas?: { rates: Record<string, number>; slots: Record<string, number> };
  /** Use of the backends that hosts of ours serve. */
  hosts: {
    backend: string;
    /** Requests at its endpoints, also at those that no snapshot names any more, and requests that wait for it. */
    inflight: number;
    /** Milliseconds since it had one. */
    idleMs: number;
  }[];
  endpoints: {
    backend: string;
    endpoint: string;
    inflight: number;
    limit: number;
    state: 'well' | 'cooling' | 'open' | 'half-open' | 'unwell';
    /** Milliseconds until it may be tried again, where it may not now. */
    forMs?: number;
  }[];
}

export type HostToControl = Hello & {
  backend: string;
  /** Its address once it serves, such as `http://127.0.0.1:41234/v1`; empty while it loads. */
  address: string;
  /** What it is doing, in words, while it loads. */
  note: string;
  /** It waits for files that are not here yet: nobody knows for how long. */
  fetching?: true;
  /** Milliseconds since the process began, without those for which it fetched files. */
  upMs: number;
  /** How many those were when it came to serve, once it does. */
  tookMs?: number;
  /** It was told to leave, and lets what runs finish. */
  leaving?: true;
};

/** What a model host works on, as JSON in its arguments. */
export interface HostGiven {
  backend: HostSettings<LocalBackendSettings> | HostSettings<SimBackendSettings>;
  /** Where its files come from; absent for a simulated one. */
  model?: ModelSettings;
}

/** Settings of a backend without those that are about the way to it. */
export type HostSettings<Backend> = Omit<
  Backend,
  'limits' | 'timeouts' | 'hardware' | 'tier' | 'price' | 'effects'
>;

/** What the supervisor keeps running. */
export interface PartSpec {
  part: string;
  role: 'control' | 'gateway' | 'host';
  args: string[];
  /** Changes with what the part was started on beyond its arguments; one with another revision is started anew. */
  revision?: string;
  /** Where it is reached by callers or operators, such as `http://127.0.0.1:7070`. */
  address?: string;
  /** Milliseconds that it may take to leave after SIGTERM before it is killed. */
  graceMs?: number;
}

export type ControlToSupervisor = Hello | { type: 'want'; parts: PartSpec[] };
/** `parts` is said to each control once, before anything else: the parts that are kept running. */
export type SupervisorToControl = { type: 'parts'; parts: string[] } | PartNotice;

/** `wallMs`: when it happened, milliseconds since the epoch; control may hear of it much later. */
export type PartNotice =
  | { type: 'part-started'; part: string; pid: number; wallMs: number; adopted: boolean }
  | {
      type: 'part-left';
      part: string;
      pid: number;
      wallMs: number;
      exitCode: number | null;
      signal: string | null;
      /** Null for a part that was asked to leave. */
      restartInMs: number | null;
    };
