import type { Leases } from '../contracts.ts';

interface Held {
  total: number;
  used: number;
  /** A take has failed since the last time that units came free. */
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
    take(key) {
      const held = keys.get(key);
      if (!held) return false;
      held.short = held.used >= held.total;
      if (!held.short) held.used++;
      return !held.short;
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
