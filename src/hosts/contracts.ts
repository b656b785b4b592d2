import type { BackendSettings } from '../config/schema/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import type { HostSettings } from '../links/messages.ts';

/** What a model host is given to serve one backend with. */
export interface HostOrder<Backend extends BackendSettings = BackendSettings> {
  /** Its name under `backends`. */
  backend: string;
  settings: HostSettings<Backend>;
  clock: Clock;
  random: Random;
  timers: Timers;
  /** Tells control, in words, what the host is doing while it loads; `armature status` shows it. */
  note(text: string): void;
  /** Takes what a person who keeps it running should know; standard error where it is absent. */
  warn?: ((text: string, error?: unknown) => void) | undefined;
}

/** A host that answers on loopback. */
export interface HostServer {
  /** Where it is reached, always with `/v1`: `http://127.0.0.1:41234/v1`. What it serves of OIP lies beside it, under `/v2`. */
  readonly address: string;
  /**
   * Takes no further connections, lets running requests finish for `withinMs` milliseconds, ends the rest, and
   * resolves once nothing is left.
   */
  close(withinMs: number): Promise<void>;
}

/**
 * Starts a host: resolves once it can answer, and rejects when it never will. The port is one that the system chooses.
 * `serveSim` of hosts/sim/index.ts, `serveLlama` of hosts/llama/index.ts and `serveOnnx` of hosts/onnx/index.ts are such.
 */
export type Serve<Backend extends BackendSettings = BackendSettings> = (
  order: HostOrder<Backend>,
) => Promise<HostServer>;
