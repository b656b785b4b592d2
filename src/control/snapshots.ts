import { createHash } from 'node:crypto';
import type { Settings } from '../config/schema/index.ts';
import type { LedgerService } from '../events/ledger.ts';
import type { Snapshot } from '../links/messages.ts';
import type { StoredOrigin } from '../store/contracts.ts';
import type { RememberedHost } from './hosts.ts';

/** Everything that a snapshot is made of. */
export interface Ingredients {
  settings: Settings;
  keys: Snapshot['keys'];
  endpoints: Snapshot['endpoints'];
  /** What certificates and keys hash to: workers read those that are renewed with the snapshot that follows. */
  certificates: Record<string, string>;
  /** The settings without secrets, and where each value comes from: what is kept of them. */
  shown: unknown;
  origins: Record<string, StoredOrigin>;
  /** The hosts behind the addresses, for the control that comes after this one. */
  hosts: RememberedHost[];
  /** Backends whose hosts are stopped, or about to be, as nobody asks for them; for the same. */
  idle: string[];
  /** How sessions are divided on routes under release; absent where none is. */
  releases?: Snapshot['releases'];
}

interface PublishedData {
  digest?: string;
  hosts?: RememberedHost[];
  idle?: string[];
}

/**
 * Numbers snapshots and keeps the newest. Numbers are kept in the store and only grow; what has not changed since the
 * last one, a restart between them or not, keeps its number.
 */
export class Snapshots {
  readonly #ledger: LedgerService;
  #current: Snapshot | undefined;
  #at = '';
  #last: { event: string; at: string } | undefined;
  #digest: string | undefined;
  #number: number;

  private constructor(ledger: LedgerService, number: number) {
    this.#ledger = ledger;
    this.#number = number;
  }

  /** Reads what the control before this one left: its number, the hosts that it knew, and those that were idle. */
  static async open(ledger: LedgerService): Promise<{
    snapshots: Snapshots;
    hosts: RememberedHost[];
    idle: string[];
  }> {
    const last = await ledger.store.snapshots.last();
    const snapshots = new Snapshots(ledger, last?.number ?? 0);
    if (!last) return { snapshots, hosts: [], idle: [] };
    const published = await ledger.store.ledger.event(last.event);
    const data: PublishedData = published?.event.data ?? {};
    snapshots.#digest = data.digest;
    snapshots.#last = { event: last.event, at: last.at };
    return { snapshots, hosts: data.hosts ?? [], idle: data.idle ?? [] };
  }

  /** The newest; throws before the first has been published. */
  get current(): Snapshot {
    if (!this.#current) throw new Error('no snapshot has been published yet');
    return this.#current;
  }

  /** When the newest was published, ISO 8601. */
  get at(): string {
    return this.#at;
  }

  /**
   * Makes these the settings that gateways decide on: stored first, then current. Gives false where nothing has changed.
   * Rejects with a StoreError where it cannot be stored; the one before stays current then.
   */
  async publish(made: Ingredients, causes: string[]): Promise<boolean> {
    const { settings, keys, endpoints, certificates, shown, origins, hosts, idle, releases } = made;
    const arms = releases && { releases };
    const digest = createHash('sha256')
      .update(
        JSON.stringify([settings, keys, endpoints, certificates, origins, ...(releases ? [releases] : [])]),
      )
      .digest('hex');
    if (digest === this.#digest) {
      if (this.#current) return false;
      const { event, at } = this.#last!;
      this.#current = { number: this.#number, event, settings, keys, endpoints, ...arms };
      this.#at = at;
      return true;
    }
    const number = this.#number + 1;
    const event = this.#ledger.event({
      type: 'snapshot-published',
      subject: `snapshot:${number}`,
      actor: 'armature',
      causes,
      data: { number, digest, keys: keys.length, endpoints, hosts, idle, ...arms },
    });
    await this.#ledger.store.snapshots.publish(
      { number, event: event.id, at: event.at, settings: shown, origins },
      event,
    );
    this.#number = number;
    this.#digest = digest;
    this.#at = event.at;
    this.#current = { number, event: event.id, settings, keys, endpoints, ...arms };
    return true;
  }
}
