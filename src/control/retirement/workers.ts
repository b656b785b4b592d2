import type { Settings } from '../../config/schema/index.ts';
import type { Snapshot } from '../../links/messages.ts';
import type { Subject } from '../../releases/retirement/contracts.ts';
import type { Gateways } from '../gateways.ts';
import { hearWorkers } from '../worker-states.ts';

/** What workers tell of what is retired. */
export interface Told {
  /** Requests at its endpoints, in the workers that tell. */
  inflight: number;
  /** In words, why that is not all there may be; undefined where every worker goes by the present snapshot and tells. */
  lacking: string | undefined;
  /** A worker is not connected: calls that it answers are not in the ledger before it is back. */
  away: boolean;
}

/** Asks every worker that there should be. */
export async function askWorkers(
  { kind, name }: Subject,
  control: {
    gateways: Pick<Gateways, 'peers' | 'ask'>;
    snapshots: { current: Pick<Snapshot, 'number'> };
    effective: { settings: Settings };
  },
): Promise<Told> {
  const { gateways, snapshots, effective } = control;
  const { states, away, silent } = await hearWorkers(gateways, effective.settings.gateway.workers);
  const behind = states.filter(({ snapshot }) => snapshot < snapshots.current.number);
  const ours = states.flatMap(({ endpoints }) =>
    endpoints.filter(({ backend }) => kind === 'backend' && backend === name),
  );
  return {
    inflight: ours.reduce((sum, { inflight }) => sum + inflight, 0),
    lacking: lackingOf(
      away,
      silent,
      behind.map(({ worker }) => worker),
    ),
    away: away.length > 0,
  };
}

function lackingOf(
  away: readonly number[],
  silent: readonly number[],
  behind: readonly number[],
): string | undefined {
  if (away.length > 0)
    return `${named(away)} not connected to control, and may still send requests there: it goes on once each is back or another process has taken its place (end one that hangs, or lower gateway.workers where it is gone for good)`;
  if (silent.length > 0) return `${named(silent)} too busy to tell what runs there`;
  return behind.length > 0 ? `${named(behind)} still to take over the configuration` : undefined;
}

/** `worker 1 is`, `workers 0, 1 are`. */
function named(workers: readonly number[]): string {
  return workers.length === 1 ? `worker ${workers[0]} is` : `workers ${workers.join(', ')} are`;
}
