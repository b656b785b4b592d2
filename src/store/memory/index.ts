import type { LedgerEvent } from '../../events/contracts.ts';
import {
  KEYS_MAX,
  OVERLAYS_MAX,
  type Snapshots,
  type Store,
  type StoredKey,
  type StoredOrigin,
  type StoredOverlay,
  type StoredSnapshot,
  StoreError,
} from '../contracts.ts';
import { documentsOver } from './documents.ts';
import { MemoryLedger } from './ledger.ts';
import { registryOver } from './registry.ts';

/** A store that lives as long as the process: for tests and the simulator. */
export function memoryStore(): Store {
  const snapshots = new Map<number, StoredSnapshot>();
  const ledger = new MemoryLedger(snapshots);
  const store: Store = {
    ledger,
    keys: keysOver(ledger),
    overlays: overlaysOver(ledger),
    snapshots: snapshotsOver(ledger, snapshots),
    documents: documentsOver(ledger),
    registry: registryOver(ledger),
    onStored: undefined,
    async close() {
      ledger.close();
    },
  };
  ledger.onAdded = () => store.onStored?.();
  return store;
}

function keysOver(ledger: MemoryLedger): Store['keys'] {
  const keys = new Map<string, StoredKey>();
  return {
    async create(key, event) {
      if (keys.size >= KEYS_MAX) throw new StoreError('conflict', `there are ${KEYS_MAX} keys already`);
      for (const other of keys.values()) {
        if (other.id === key.id || other.hash === key.hash) throw conflict(`key ${key.id}`);
      }
      ledger.add([event]);
      keys.set(key.id, structuredClone(key));
    },
    async revoke(id, event) {
      const key = keys.get(id);
      if (!key || key.revokedAt !== undefined) return false;
      ledger.add([event]);
      key.revokedAt = event.at;
      return true;
    },
    async get(id) {
      return structuredClone(keys.get(id));
    },
    async list() {
      return structuredClone([...keys.values()]);
    },
  };
}

function overlaysOver(ledger: MemoryLedger): Store['overlays'] {
  let overlays = new Map<string, StoredOverlay>();
  return {
    async change(put, remove, event) {
      const next = new Map(overlays);
      for (const path of remove) next.delete(path);
      for (const overlay of put) next.set(overlay.path, structuredClone(overlay));
      if (next.size > OVERLAYS_MAX) throw new StoreError('conflict', `more than ${OVERLAYS_MAX} overlays`);
      ledger.add([event]);
      overlays = next;
    },
    async list() {
      return structuredClone([...overlays.values()]).sort((a, b) => (a.path < b.path ? -1 : 1));
    },
  };
}

function snapshotsOver(ledger: MemoryLedger, snapshots: Map<number, StoredSnapshot>): Snapshots {
  return {
    async publish(snapshot: StoredSnapshot, event: LedgerEvent) {
      if (snapshots.has(snapshot.number)) throw conflict(`snapshot ${snapshot.number}`);
      ledger.add([event]);
      snapshots.set(snapshot.number, structuredClone(snapshot));
    },
    async explain(number: number, origins: Record<string, StoredOrigin>) {
      const snapshot = snapshots.get(number);
      if (snapshot) snapshot.origins = structuredClone(origins);
    },
    async get(number: number) {
      return structuredClone(snapshots.get(number));
    },
    async last() {
      return snapshots.size === 0 ? undefined : structuredClone(snapshots.get(Math.max(...snapshots.keys())));
    },
  };
}

function conflict(what: string): StoreError {
  return new StoreError('conflict', `${what} exists already`);
}
