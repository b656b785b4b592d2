import type { Leases } from '../contracts.ts';

interface Held {
  total: number;
  used: number;
  /** Somebody waits for a unit. */
  short: boolean;
}

/** Leases of a worker that shares with nobody: it holds every limit whole. For tests and simulations of one worker. */
export function soleLeases(): Leases {
  const keys = new Map<string, Held>();
  const leases: Leases = {
    onFree: undefined,
    declare(key, total) {
      const held = keys.get(key);
      if (!held) {
        keys.set(key, { total, used: 0, short: false });
        return;
      }
      held.total = total;
      free(key, held);
    },
    forget: (key) => void keys.delete(key),
    take(key, waiting) {
      const held = keys.get(key);
      if (!held) return false;
      const free = held.used < held.total;
      if (free) held.used++;
      held.short = !free || waiting > 1;
      return free;
    },
    want(key, waiting) {
      const held = keys.get(key);
      if (held) held.short = waiting > 0;
    },
    give(key) {
      const held = keys.get(key);
      if (!held) return;
      held.used--;
      free(key, held);
    },
    used: (key) => keys.get(key)?.used ?? 0,
    held: (key) => keys.get(key)?.total ?? 0,
  };

  function free(key: string, held: Held): void {
    if (!held.short || held.used >= held.total) return;
    held.short = false;
    leases.onFree?.(key);
  }
  return leases;
}
