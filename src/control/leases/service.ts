import { isAlive } from '../../kernel/alive.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { ControlToGateway, GatewayToControl } from '../../links/messages.ts';
import { LeaseBook } from './book.ts';

/** How long a new book waits for workers that may hold units of an earlier one; they reconnect within a quarter second. */
const LEARN_MS = 2000;
/** How long the units of a worker that lost its connection but not its life are kept for it. */
const KEEP_MS = 10_000;
const CHECK_MS_MIN = 10;
const CHECK_MS_MAX = 250;

type LeaseRequest = Extract<GatewayToControl, { type: 'lease-ask' | 'lease-return' | 'lease-forget' }>;

/** What the service needs of a connected worker. */
export interface LeasePeer {
  boot: string;
  worker: number;
  pid: number;
  send(message: ControlToGateway): boolean;
}

export interface LeaseService {
  /** A worker has said hello; `holdings` are in the hello. */
  joined(peer: LeasePeer, holdings: Record<string, number>): void;
  heard(peer: LeasePeer, message: LeaseRequest): void;
  /** Its connection has ended. */
  left(peer: LeasePeer): void;
  close(): void;
}

/**
 * The lease book behind control's links with its workers. Units are granted once the workers of the configuration have all
 * said what they hold, or after two seconds. A worker's units come back when its process has ended: a lost connection
 * alone frees nothing, for the requests that use them may still run. Throws on numbers that make no sense; the link then
 * ends.
 */
export function leaseService(options: {
  timers: Timers;
  /** How many workers the configuration asks for. */
  workers: () => number;
  alive?: (pid: number) => boolean;
}): LeaseService {
  const { timers, workers, alive = isAlive } = options;
  const peers = new Map<string, LeasePeer>();
  const leaving = new Map<string, TimerHandle>();
  const book = new LeaseBook((boot, message) => void peers.get(boot)?.send(message));
  const seen = new Set<number>();
  const learning = timers.set(LEARN_MS, () => book.open());

  function check(peer: LeasePeer, waitedMs: number, waitMs: number): void {
    const wait = timers.set(waitMs, () => {
      leaving.delete(peer.boot);
      if (waitedMs >= KEEP_MS || !alive(peer.pid)) book.gone(peer.boot);
      else check(peer, waitedMs + waitMs, Math.min(waitMs * 2, CHECK_MS_MAX));
    });
    leaving.set(peer.boot, wait);
  }

  return {
    joined(peer, holdings) {
      for (const units of Object.values(holdings)) whole(units);
      timers.clear(leaving.get(peer.boot));
      leaving.delete(peer.boot);
      peers.set(peer.boot, peer);
      book.learn(peer.boot, holdings);
      seen.add(peer.worker);
      if (seen.size >= workers()) book.open();
    },
    heard(peer, message) {
      if (message.type === 'lease-ask') {
        book.ask(peer.boot, message.key, whole(message.want), whole(message.total));
      } else if (message.type === 'lease-return') {
        book.returned(peer.boot, message.key, whole(message.units), whole(message.want));
      } else {
        book.forgot(peer.boot, message.key);
      }
    },
    left(peer) {
      if (peers.get(peer.boot) !== peer) return;
      peers.delete(peer.boot);
      check(peer, 0, CHECK_MS_MIN);
    },
    close() {
      timers.clear(learning);
      for (const wait of leaving.values()) timers.clear(wait);
    },
  };
}

function whole(units: number): number {
  if (!Number.isSafeInteger(units) || units < 0) throw new Error(`${units} is no number of units`);
  return units;
}
