import type { Exchange, Path } from '../gateway/contracts.ts';

/** How long a request waits for the store at most, milliseconds. */
const STORE_MS_MAX = 15_000;

/**
 * Refuses a request that the store keeps waiting for too long, or beyond its own deadline; gives back what ends the watch.
 * `deadlineMs`: of its route.
 */
export function waitForStore(path: Path, x: Exchange, deadlineMs = STORE_MS_MAX): () => void {
  const { timers } = path.deps;
  const asked = Number(x.caller.header('x-armature-deadline-ms'));
  const ms = Math.min(STORE_MS_MAX, deadlineMs, asked > 0 ? asked : STORE_MS_MAX);
  const timer = timers.set(ms, () =>
    path.refuse(x, {
      code: 'deadline_exceeded',
      message: `What is kept could not be read or written within ${ms} ms.`,
      phase: 'before-queue',
    }),
  );
  const stop = () => timers.clear(timer);
  x.scope.add(stop);
  return stop;
}
