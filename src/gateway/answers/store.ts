import { LRUCache } from 'lru-cache';

/** A whole answer as an engine gave it, in the form of a document. */
export interface KeptAnswer {
  tenant: string;
  route: string;
  /** Who gave it. */
  backend: string;
  /** Monotonic milliseconds. */
  keptAt: number;
  /** Names and values of the headers that belong to the body. */
  headers: readonly string[];
  body: string | Buffer;
}

/** What an entry takes beside its body: its key, its objects, its place in the list. */
const ENTRY_BYTES = 768;

/** Bytes in memory. A text beyond ASCII may take two for each character. */
function bytesOf({ body }: KeptAnswer): number {
  if (typeof body !== 'string') return body.length + ENTRY_BYTES;
  return ENTRY_BYTES + (Buffer.byteLength(body) === body.length ? body.length : 2 * body.length);
}

/** Kept answers of one worker, the least recently used of them given up where room is wanted. */
export class AnswerStore {
  #bytesMax = 0;
  #entries: LRUCache<string, KeptAnswer> | undefined;

  /** A change of the bound begins anew. */
  set bytesMax(bytes: number) {
    if (bytes === this.#bytesMax) return;
    this.#bytesMax = bytes;
    this.#entries =
      bytes < 1
        ? undefined
        : new LRUCache({
            maxSize: bytes,
            maxEntrySize: bytes,
            sizeCalculation: bytesOf,
          });
  }

  get size(): number {
    return this.#entries?.size ?? 0;
  }

  get bytes(): number {
    return this.#entries?.calculatedSize ?? 0;
  }

  /** False where it does not fit at all. */
  put(key: string, answer: KeptAnswer): boolean {
    if (!this.#entries || bytesOf(answer) > this.#bytesMax) return false;
    this.#entries.set(key, answer);
    return true;
  }

  /** The answer, if it is no older than `ageMsMax`. */
  get(key: string, now: number, ageMsMax: number): KeptAnswer | undefined {
    const found = this.#entries?.get(key);
    return found && now - found.keptAt <= ageMsMax ? found : undefined;
  }

  /** Gives up what `mayStay` does not let stay. */
  sweep(mayStay: (answer: KeptAnswer) => boolean): void {
    if (!this.#entries) return;
    for (const [key, answer] of [...this.#entries.entries()]) if (!mayStay(answer)) this.#entries.delete(key);
  }
}
