import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Small reads are served from a window of so many bytes. */
const WINDOW_BYTES = 64 * 1024;

/** Something that is read here and there, and never whole. */
export interface Bytes {
  readonly size: number;
  /** `count` bytes from `at` on; fewer where it ends. */
  read(at: number, count: number): Buffer;
}

export class FileBytes implements Bytes, Disposable {
  readonly path: string;
  readonly size: number;
  readonly #file: number;
  #window: Buffer = Buffer.alloc(0);
  #windowAt = 0;

  /** Throws where it cannot be opened. */
  constructor(path: string) {
    this.path = path;
    this.#file = openSync(path, 'r');
    this.size = fstatSync(this.#file).size;
  }

  read(at: number, count: number): Buffer {
    if (count > WINDOW_BYTES) return this.#load(at, count);
    if (at < this.#windowAt || at + count > this.#windowAt + this.#window.length) {
      this.#window = this.#load(at, WINDOW_BYTES);
      this.#windowAt = at;
    }
    return this.#window.subarray(at - this.#windowAt, at - this.#windowAt + count);
  }

  #load(at: number, count: number): Buffer {
    const bytes = Buffer.alloc(Math.max(0, Math.min(count, this.size - at)));
    return bytes.subarray(0, bytes.length === 0 ? 0 : readSync(this.#file, bytes, 0, bytes.length, at));
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

/** What is in memory already. */
export function bytesOf(buffer: Buffer): Bytes {
  return { size: buffer.length, read: (at, count) => buffer.subarray(at, at + count) };
}
