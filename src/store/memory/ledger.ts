import type { LedgerEvent } from '../../events/contracts.ts';
import { assert } from '../../kernel/assert.ts';
import { idTime } from '../../kernel/ids.ts';
import {
  type Batch,
  EVENTS_PAGE_MAX,
  type EventQuery,
  type Keep,
  type Ledger,
  type StoredEvent,
  type StoredSnapshot,
  StoreError,
} from '../contracts.ts';
import { type Indexed, indexed } from '../indexed.ts';

interface Row extends StoredEvent {
  atMs: number;
  bytes: number;
  indexed: Indexed;
}

/** Whole numbers, kept as ranges: those that come in order take the room of one. */
class Ranges {
  #ranges: { first: number; last: number }[] = [];

  has(number: number): boolean {
    return this.#ranges.some(({ first, last }) => first <= number && number <= last);
  }

  add(number: number): void {
    const beside = this.#ranges.filter(({ first, last }) => last === number - 1 || first === number + 1);
    this.#ranges = this.#ranges.filter((range) => !beside.includes(range));
    this.#ranges.push({
      first: Math.min(number, ...beside.map((range) => range.first)),
      last: Math.max(number, ...beside.map((range) => range.last)),
    });
  }
}

/** Events in an array, found by walking it. */
export class MemoryLedger implements Ledger {
  onAdded: (() => void) | undefined;
  #rows: Row[] = [];
  #ids = new Set<string>();
  #batches = new Map<string, Ranges>();
  #position = 0;
  #closed = false;
  readonly #snapshots: Map<number, StoredSnapshot>;

  constructor(snapshots: Map<number, StoredSnapshot>) {
    this.#snapshots = snapshots;
  }

  close(): void {
    this.#closed = true;
  }

  /** At once, for what is stored together with its event. */
  add(events: readonly LedgerEvent[]): void {
    if (this.#closed) throw new StoreError('closed', 'the store is closed');
    for (const event of events) {
      if (this.#ids.has(event.id)) continue;
      const text = JSON.stringify(event);
      this.#ids.add(event.id);
      this.#rows.push({
        position: ++this.#position,
        event: JSON.parse(text) as LedgerEvent,
        atMs: Date.parse(event.at),
        bytes: text.length,
        indexed: indexed(event),
      });
    }
    this.onAdded?.();
  }

  async storeBatches(batches: readonly Batch[]): Promise<boolean[]> {
    return batches.map(({ boot, sequence, events }) => {
      const stored = this.#batches.get(boot) ?? new Ranges();
      if (stored.has(sequence)) return false;
      this.add(events);
      stored.add(sequence);
      this.#batches.set(boot, stored);
      return true;
    });
  }

  async append(events: readonly LedgerEvent[]): Promise<void> {
    this.add(events);
  }

  async event(id: string): Promise<StoredEvent | undefined> {
    return this.#rows.filter((row) => row.event.id === id).map(stored)[0];
  }

  async events({ type, subject, order, after, limit }: EventQuery): Promise<StoredEvent[]> {
    assert(limit >= 1 && limit <= EVENTS_PAGE_MAX, `a page has 1 to ${EVENTS_PAGE_MAX} events`);
    const rows = order === 'asc' ? this.#rows : this.#rows.toReversed();
    const follows = (row: Row) =>
      after === undefined || (order === 'asc' ? row.position > after : row.position < after);
    return rows
      .filter((row) => follows(row) && (type === undefined || row.event.type === type))
      .filter((row) => subject === undefined || row.event.subject === subject)
      .slice(0, limit)
      .map(stored);
  }

  async position(id: string): Promise<number | undefined> {
    const row = this.#rows.find((it) => it.event.id === id);
    if (row) return row.position;
    const madeMs = idTime(id);
    if (madeMs === undefined) return undefined;
    const before = this.#rows.filter((it) => it.atMs <= madeMs);
    return before.sort((x, y) => x.atMs - y.atMs || x.position - y.position).at(-1)?.position ?? 0;
  }

  async head(): Promise<number> {
    return this.#rows.at(-1)?.position ?? 0;
  }

  async requests(requestId: string, limit: number): Promise<StoredEvent[]> {
    const rows = this.#rows.filter((row) => row.indexed.requestId === requestId);
    return rows.toReversed().slice(0, limit).map(stored);
  }

  async groups(second: number, limit: number): Promise<StoredEvent[]> {
    return this.#rows
      .filter((row) => row.indexed.second === second)
      .slice(0, limit)
      .map(stored);
  }

  async trim(keep: Keep, limit: number): Promise<{ removed: number; more: boolean }> {
    const publishers = new Set([...this.#snapshots.values()].map((snapshot) => snapshot.event));
    const excess = () => this.#bytes() > keep.bytesMax;
    let removed = 0;
    for (const row of [...this.#rows]) {
      if (removed === limit || !(row.atMs < keep.since || excess())) break;
      if (publishers.has(row.event.id)) continue;
      this.#rows.splice(this.#rows.indexOf(row), 1);
      this.#ids.delete(row.event.id);
      removed++;
    }
    this.#trimSnapshots(keep.since);
    return { removed, more: removed === limit };
  }

  #trimSnapshots(sinceMs: number): void {
    const last = Math.max(...this.#snapshots.keys());
    const oldest = this.#rows.reduce((least, row) => Math.min(least, row.indexed.snapshot ?? least), last);
    for (const { number, at } of this.#snapshots.values()) {
      if (number < oldest && Date.parse(at) < sinceMs) this.#snapshots.delete(number);
    }
  }

  #bytes(): number {
    return this.#rows.reduce((sum, row) => sum + row.bytes, 0);
  }

  async extent(): Promise<{ bytes: number; events: number; oldestMs: number | undefined }> {
    return { bytes: this.#bytes(), events: this.#rows.length, oldestMs: this.#rows[0]?.atMs };
  }
}

function stored({ position, event }: Row): StoredEvent {
  return { position, event: structuredClone(event) };
}
