import type { Clock } from '../kernel/clock.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';

const SAMPLE_MS = 20;

/**
 * Measures how late the event loop runs: a timer every 20 ms, and what it comes late beyond that, in seconds.
 * Returns what stops it.
 */
export function watchLoopDelay(clock: Clock, timers: Timers, observe: (seconds: number) => void): () => void {
  let due = 0;
  let handle: TimerHandle;
  const sample = () => {
    observe(Math.max(0, clock.mono() - due) / 1000);
    arm();
  };
  const arm = () => {
    due = clock.mono() + SAMPLE_MS;
    handle = timers.set(SAMPLE_MS, sample);
  };
  arm();
  return () => timers.clear(handle);
}
