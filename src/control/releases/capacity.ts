import { pause, type Timers } from '../../kernel/timers.ts';
import { keyOf } from '../probing/prober.ts';
import type { ReleaseControl } from './contracts.ts';

/** How often it is looked whether a host has come. */
const LOOK_MS = 100;

/** Backends without an endpoint that could answer now: none is known, or probes say that each is unwell. */
export function lacking(backends: readonly string[], control: ReleaseControl): string[] {
  const { endpoints } = control.snapshots.current;
  const health = control.health.known;
  return backends.filter((backend) =>
    (endpoints[backend] ?? []).every((endpoint) => health[keyOf({ backend, endpoint })] === 'unwell'),
  );
}

/**
 * Capacity before weight: wakes idle hosts, and waits up to `withinMs` milliseconds until each of the backends has an endpoint
 * that could answer. Gives those that have none; at once when the signal ends it.
 */
export async function readied(
  backends: readonly string[],
  cause: { event: string; release: string },
  of: { control: ReleaseControl; timers: Timers; withinMs: number; signal: AbortSignal },
): Promise<string[]> {
  const { control, timers, withinMs, signal } = of;
  for (const backend of backends) control.idle.wake(backend, cause.event, cause.release);
  let left = lacking(backends, control);
  for (let waitedMs = 0; left.length > 0 && waitedMs < withinMs && !signal.aborted; waitedMs += LOOK_MS) {
    await pause(timers, LOOK_MS);
    left = lacking(backends, control);
  }
  return left;
}
