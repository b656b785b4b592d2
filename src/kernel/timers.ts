/** What a set timer is known by; opaque to callers. */
export type TimerHandle = unknown;

/** Where timers come from. Delays are milliseconds; a delay beyond 2^31-1 never fires. */
export interface Timers {
  set(delayMs: number, run: () => void): TimerHandle;
  clear(handle: TimerHandle): void;
}

const DELAY_MS_MAX = 2 ** 31 - 1;

export const systemTimers: Timers = {
  set: (delayMs, run) => (delayMs > DELAY_MS_MAX ? undefined : setTimeout(run, delayMs)),
  clear: (handle) => clearTimeout(handle as NodeJS.Timeout | undefined),
};

/** Resolves after `ms` milliseconds; nothing ends it sooner. */
export function pause(timers: Timers, ms: number): Promise<void> {
  return new Promise((resolve) => {
    timers.set(ms, resolve);
  });
}
