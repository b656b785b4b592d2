import type { Settings } from '../../config/schema/index.ts';
import type { Snapshot } from '../../links/messages.ts';
import type { Gateways } from '../gateways.ts';

/** What parity needs of control. */
export interface ParityControl {
  readonly effective: {
    settings: Settings;
    /** SHA-256 of the files that the configuration names, by their path. */
    config: { certificates: Record<string, string> };
  };
  readonly snapshots: { current: Snapshot };
  readonly idle: { wake(backend: string, cause: string, release?: string): void };
  readonly gateways: Pick<Gateways, 'peers' | 'ask'>;
}

/** The kinds of the documents that certificates and sentinels are kept as. */
export const PARITY_KIND = 'parity';
export const SENTINEL_KIND = 'sentinel';
