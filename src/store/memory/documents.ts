import { DOCUMENTS_MAX, type Documents, type StoredDocument, StoreError } from '../contracts.ts';
import type { MemoryLedger } from './ledger.ts';

export function documentsOver(ledger: MemoryLedger): Documents {
  let documents = new Map<string, StoredDocument>();
  const keyOf = (kind: string, id: string) => `${kind}\u0000${id}`;
  return {
    async get(kind, id) {
      return structuredClone(documents.get(keyOf(kind, id)));
    },
    async list(kind, limit, after = '') {
      return [...documents.values()]
        .filter((document) => document.kind === kind && document.id > after)
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, limit)
        .map((document) => structuredClone(document));
    },
    async change(changes, events) {
      const next = new Map(documents);
      for (const { kind, id, body, on } of changes) {
        const key = keyOf(kind, id);
        if ((next.get(key)?.revision ?? 0) !== on || (body === undefined && on === 0))
          throw new StoreError('conflict', `${kind} ${id} has changed since its revision ${on}`);
        if (body === undefined) next.delete(key);
        else next.set(key, { kind, id, revision: on + 1, body: structuredClone(body) });
        if (next.size > DOCUMENTS_MAX)
          throw new StoreError('conflict', `more than ${DOCUMENTS_MAX} documents`);
      }
      ledger.add(events);
      documents = next;
    },
  };
}
