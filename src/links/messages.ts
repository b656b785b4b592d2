import type {
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
}

/** What control has learned of endpoints by probes, keyed `BACKEND|ADDRESS`. It arrives beside snapshots and survives them. */
export interface Readings {
  health: Record<string, 'well' | 'unwell'>;
  /** The event that tells of each unwell one: a cause of what is decided while it is so. */
  causes?: Record<string, string>;
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
  | { type: 'reply'; ask: number; data: unknown }
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
};

/** What a model host works on, as JSON in its arguments. */
export interface HostGiven {
  backend: HostSettings<LocalBackendSettings> | HostSettings<SimBackendSettings>;
  /** Where its files come from; absent for a simulated one. */
  model?: ModelSettings;
}

/** Settings of a backend without those that are about the way to it. */
export type HostSettings<Backend> = Omit<Backend, 'limits' | 'timeouts' | 'hardware' | 'tier'>;

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
/** `wallMs`: when it happened, milliseconds since the epoch; control may hear of it much later. */
export type SupervisorToControl =
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
