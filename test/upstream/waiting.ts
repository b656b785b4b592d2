import { systemClock } from '../../src/kernel/clock.ts';
import { systemTimers } from '../../src/kernel/timers.ts';

/** Waiting in tests: for a condition, never for a time that is hoped to be long enough. */

const POLL_MS = 10;

/** Lets `ms` milliseconds pass. For scripted engines, whose slowness is the subject; a test waits for conditions. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => systemTimers.set(ms, resolve));
}

/** Resolves with the first truthy value that `look` gives; throws after `withinMs`, saying what was waited for. */
export async function eventually<T>(
  what: string,
  look: () => T | Promise<T>,
  withinMs = 5000,
): Promise<Exclude<T, undefined | null | false | 0 | ''>> {
  const endMs = systemClock.mono() + withinMs;
  for (;;) {
    const value = await look();
    if (value) return value as Exclude<T, undefined | null | false | 0 | ''>;
    if (systemClock.mono() > endMs) throw new Error(`${what}: not so within ${withinMs} ms`);
    await pause(POLL_MS);
  }
}

/** Settles as `promise` does, or throws after `withinMs`. */
export async function within<T>(what: string, withinMs: number, promise: Promise<T>): Promise<T> {
  let timer: unknown;
  const late = new Promise<never>((_, reject) => {
    timer = systemTimers.set(withinMs, () => reject(new Error(`${what}: not within ${withinMs} ms`)));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    systemTimers.clear(timer);
  }
}
