import type { LedgerEvent } from '../events/contracts.ts';
import type { RegistryStore } from './registry.ts';

/**
 * What control keeps: the ledger, keys, overlays, snapshots, documents and versions of models. Every call is asynchronous, so that a database on
 * another machine can stand behind it as well as a file. Whatever changes a key, an overlay or a snapshot takes the
 * event that tells of it and commits both in one transaction that is on the disk before the promise resolves.
 *
 * Every call rejects with a StoreError where the store cannot be read or written.
 */
export interface Store {
  readonly ledger: Ledger;
  readonly keys: Keys;
  readonly overlays: Overlays;
  readonly snapshots: Snapshots;
  readonly documents: Documents;
  readonly registry: RegistryStore;
  /** Called when events may have been stored, by whichever call; at times when none were. */
  onStored: (() => void) | undefined;
  close(): Promise<void>;
}

/** What is wrong with the store: the disk is full, its file may not be written, it is gone, held by another, damaged. */
export type StoreTrouble =
  | 'full'
  | 'read-only'
  | 'gone'
  | 'busy'
  | 'corrupt'
  | 'conflict'
  | 'closed'
  | 'failed';

export class StoreError extends Error {
  readonly trouble: StoreTrouble;

  constructor(trouble: StoreTrouble, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreError';
    this.trouble = trouble;
  }
}

/** An event and its place in the ledger: places only grow, in the order in which events were stored. */
export interface StoredEvent {
  position: number;
  event: LedgerEvent;
}

/** The most events that one call returns. */
export const EVENTS_PAGE_MAX = 1000;

export interface EventQuery {
  type?: string;
  subject?: string;
  /** `asc`: oldest first, as stored; `desc`: newest first. */
  order: 'asc' | 'desc';
  /** Only what follows this position in the order asked for. */
  after?: number;
  /** 1 to EVENTS_PAGE_MAX. */
  limit: number;
}

/** What retention may keep. */
export interface Keep {
  /** Events older than this are removed: milliseconds since the epoch. */
  since: number;
  /** Bytes of the whole store, free pages not counted. */
  bytesMax: number;
}

/** What a worker sent at one time: a process of the worker, by its boot, gives each batch a number. */
export interface Batch {
  boot: string;
  sequence: number;
  events: readonly LedgerEvent[];
}

export interface Ledger {
  /**
   * Stores what workers sent, each batch together with its number, all in one transaction. A batch that is already stored
   * changes nothing. Batches may come in any order. Resolves to whether each was new.
   */
  storeBatches(batches: readonly Batch[]): Promise<boolean[]>;
  /** Stores events in one transaction; one whose id is stored already is left as it is. */
  append(events: readonly LedgerEvent[]): Promise<void>;
  event(id: string): Promise<StoredEvent | undefined>;
  events(query: EventQuery): Promise<StoredEvent[]>;
  /** The newest position at or before an event, by the time its id carries where it is not stored; undefined for what is no id. */
  position(id: string): Promise<number | undefined>;
  /** The position of the newest event; 0 when there is none. */
  head(): Promise<number>;
  /** Requests with the caller's own x-request-id, newest first. */
  requests(requestId: string, limit: number): Promise<StoredEvent[]>;
  /** Groups of the requests that came in one second (since the epoch) and have no record of their own. */
  groups(second: number, limit: number): Promise<StoredEvent[]>;
  /**
   * One small step of retention: removes up to `limit` events, oldest first, and the snapshots from before `since` that
   * no kept event was decided on, save the last one. An event that published a kept snapshot stays. Resolves to how many
   * events were removed, and whether more may be due.
   */
  trim(keep: Keep, limit: number): Promise<{ removed: number; more: boolean }>;
  /** How much there is: bytes in use, and the time of the oldest event in milliseconds since the epoch. */
  extent(): Promise<{ bytes: number; events: number; oldestMs: number | undefined }>;
}

/** A key made by `armature keys create`. The key itself is never kept. */
export interface StoredKey {
  /** `key_...` */
  id: string;
  tenant: string;
  /** What its maker calls it; may be empty. */
  name: string;
  /** `sha256:` and 64 hexadecimal digits. */
  hash: string;
  /** ISO 8601, milliseconds, UTC. */
  createdAt: string;
  createdBy: string;
  revokedAt?: string;
}

/** The most keys that are kept, revoked ones included. */
export const KEYS_MAX = 100_000;

export interface Keys {
  /** Rejects with `conflict` where the id or the hash exists, or KEYS_MAX is reached. */
  create(key: StoredKey, event: LedgerEvent): Promise<void>;
  /** False where no such key is live; then nothing is stored. */
  revoke(id: string, event: LedgerEvent): Promise<boolean>;
  get(id: string): Promise<StoredKey | undefined>;
  /** Every key, oldest first, revoked ones included. */
  list(): Promise<StoredKey[]>;
}

/** A value changed while Armature runs; it stands over the value of the file. */
export interface StoredOverlay {
  /** The path of the value, such as `routes.chat.targets[0].weight`. */
  path: string;
  value: unknown;
  /** What the files said at this path when the overlay was put: an overlay contradicts a file that says something else since. Absent: nothing. */
  over?: unknown;
  actor: string;
  /** The release that put it, where one did. */
  release?: string;
  /** Of an abort or a rollback: it stands whatever the files say, until they say the same. */
  overFile?: true;
  /** ISO 8601, milliseconds, UTC. */
  at: string;
  /** The event that tells of it. */
  event: string;
}

/** The most overlays at one time. */
export const OVERLAYS_MAX = 10_000;

export interface Overlays {
  /** Puts some and removes others, by path, in one transaction. Rejects with `conflict` beyond OVERLAYS_MAX. */
  change(put: readonly StoredOverlay[], remove: readonly string[], event: LedgerEvent): Promise<void>;
  /** Sorted by path. */
  list(): Promise<StoredOverlay[]>;
}

/** Where a configuration value comes from. */
export interface StoredOrigin {
  file?: string;
  line?: number;
  column?: number;
  /** In a git work tree: the commit that last changed the line, its author and its date (ISO 8601). */
  commit?: string;
  author?: string;
  date?: string;
  /** Who changed it live, and the event that tells of it. */
  actor?: string;
  release?: string;
  event?: string;
}

/** What a snapshot was, for those who ask later why something was decided on it. */
export interface StoredSnapshot {
  number: number;
  /** The event that published it. */
  event: string;
  /** ISO 8601, milliseconds, UTC. */
  at: string;
  /** The settings with every secret masked: no secret ever reaches the store. */
  settings: unknown;
  /** By the path of the value, such as `routes.chat.queue.max`; values that nobody wrote are not listed. */
  origins: Record<string, StoredOrigin>;
}

export interface Snapshots {
  /** Rejects with `conflict` where the number exists. Equal settings and origins are kept once. */
  publish(snapshot: StoredSnapshot, event: LedgerEvent): Promise<void>;
  /** Replaces the origins of a snapshot by fuller ones (the commits of its lines, which take git a moment to tell). */
  explain(number: number, origins: Record<string, StoredOrigin>): Promise<void>;
  get(number: number): Promise<StoredSnapshot | undefined>;
  last(): Promise<StoredSnapshot | undefined>;
}

/**
 * What a plane keeps of one thing that goes on for long: a release, a certificate, an alarm's detector. Its body is JSON,
 * and only that plane knows what is in it.
 */
export interface StoredDocument {
  /** What it is one of, such as `release`. */
  kind: string;
  id: string;
  /** 1 when it is new, and one more with each change. */
  revision: number;
  body: unknown;
}

/** The most documents of one kind. */
export const DOCUMENTS_MAX = 100_000;
/** The longest body, in characters of its JSON. */
export const DOCUMENT_CHARS_MAX = 8 * 1024 * 1024;

export interface DocumentChange {
  kind: string;
  id: string;
  /** Absent: the document goes. */
  body?: unknown;
  /** The revision that the change was made on; 0 for a document that is not there yet. */
  on: number;
}

export interface Documents {
  get(kind: string, id: string): Promise<StoredDocument | undefined>;
  /** Of one kind, by id; only those that follow `after`. `limit` is 1 or more. */
  list(kind: string, limit: number, after?: string): Promise<StoredDocument[]>;
  /**
   * Makes all of the changes or none, with the events that tell of them, in one transaction. Rejects with `conflict` where a
   * document has another revision than its change was made on, or a bound is passed.
   */
  change(changes: readonly DocumentChange[], events: readonly LedgerEvent[]): Promise<void>;
}
