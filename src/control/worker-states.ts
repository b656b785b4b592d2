import { pause, type Timers } from '../kernel/timers.ts';
import type { WorkerState } from '../links/messages.ts';
import type { GatewayPeer, Gateways } from './gateways.ts';

/** How long a worker may take to tell its state. */
const STATE_MS = 1000;
/** How often it is looked whether a worker has taken a snapshot. */
const LOOK_MS = 100;

type Asked = Pick<Gateways, 'peers' | 'ask'>;

/** A connected worker, with its state where it gave one in time. */
export interface WorkerSaid {
  peer: GatewayPeer;
  state: WorkerState | undefined;
}

/** Asks every connected worker for its state, all at once. */
export function workerStates(gateways: Asked): Promise<WorkerSaid[]> {
  return Promise.all(
    gateways.peers.map(async (peer) => ({
      peer,
      state: (await gateways.ask(peer, 'state', STATE_MS)) as WorkerState | undefined,
    })),
  );
}

/**
 * Numbers of those of so many workers that are not among the connected. One that lives goes on by what it knew last, and what
 * it does is not known before it is back.
 */
export function awayOf(workers: number, connected: readonly { worker: number }[]): number[] {
  const here = new Set(connected.map(({ worker }) => worker));
  return Array.from({ length: workers }, (_, worker) => worker).filter((worker) => !here.has(worker));
}

/** What is known of all workers that there should be: the states of those that tell, and the numbers of the others. */
export interface Heard {
  states: WorkerState[];
  /** Not connected. */
  away: number[];
  /** Connected, and too busy to answer in time. */
  silent: number[];
}

/** Asks every connected worker where `workers` should be. */
export async function hearWorkers(gateways: Asked, workers: number): Promise<Heard> {
  const away = awayOf(workers, gateways.peers);
  const said = await workerStates(gateways);
  return {
    states: said.flatMap(({ state }) => state ?? []),
    away,
    silent: said.flatMap(({ peer, state }) => (state ? [] : [peer.worker])),
  };
}

/**
 * Waits until every connected worker decides on a snapshot of this number or a later one. Gives the workers that do not after
 * `withinMs` milliseconds and one look; one that connects later is sent the newest anyway.
 */
export async function workersBehind(
  number: number,
  gateways: Asked,
  timers: Timers,
  withinMs: number,
): Promise<number[]> {
  let late = false;
  const limit = timers.set(withinMs, () => {
    late = true;
  });
  try {
    for (;;) {
      const said = await workerStates(gateways);
      const behind = said.flatMap(({ peer, state }) =>
        state && state.snapshot >= number ? [] : [peer.worker],
      );
      if (behind.length === 0 || late) return behind;
      await pause(timers, LOOK_MS);
    }
  } finally {
    timers.clear(limit);
  }
}
