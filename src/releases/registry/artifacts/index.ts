import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';
import { ArtifactError, type ArtifactStore, fileTrouble, keyOf, type Progress } from './contracts.ts';
import { counted } from './directory.ts';
import { hashOf, Incoming } from './incoming.ts';

/** Weights hardly become smaller: a low level is as good as a high one, at a fraction of the time. */
const ZSTD = { [constants.ZSTD_c_compressionLevel]: 3 };

/**
 * Content of versions: on its way in, kept live, or archived, compressed, in a store of its own. Whatever is moved is
 * hashed on its way, and nothing is removed before what takes its place was read back whole.
 */
export class Artifacts {
  readonly incoming: Incoming;
  readonly #live: ArtifactStore;
  readonly #archive: ArtifactStore;
  readonly #scratch: string;

  /** `folder` is where files are held that are on their way. */
  constructor(options: { live: ArtifactStore; archive: ArtifactStore; folder: string }) {
    this.#live = options.live;
    this.#archive = options.archive;
    this.#scratch = join(options.folder, 'moving');
    this.incoming = new Incoming(join(options.folder, 'incoming'));
  }

  get names(): { live: string; archive: string } {
    return { live: this.#live.name, archive: this.#archive.name };
  }

  /** Keeps what has come in; it must be what it was called. */
  async keep(sha256: string, progress?: Progress): Promise<void> {
    const path = this.incoming.pathOf(sha256);
    await this.#live.put(keyOf(sha256), path, progress);
    await this.incoming.remove(sha256);
  }

  /** Whether the live copy is there; whether it is as it was, `verify` tells. */
  hasLive(sha256: string): Promise<boolean> {
    return this.#live.has(keyOf(sha256));
  }

  /** Reads content through; rejects with `missing`, or `damaged` where it is not what it was. */
  async verify(sha256: string, place: 'live' | 'archive', progress: Progress = {}): Promise<void> {
    const nothing = new Writable({ write: (_piece, _encoding, done) => done() });
    await this.#through(sha256, place, nothing, progress);
  }

  /** Compresses live content into the archive, and reads it back. The live copy stays: `keepOnly`. */
  async archive(sha256: string, progress: Progress = {}): Promise<void> {
    await this.#carry(
      sha256,
      'live',
      async (path) => {
        await this.#archive.put(archived(sha256), path, { signal: progress.signal });
        await this.verify(sha256, 'archive', { signal: progress.signal });
      },
      progress,
    );
  }

  /** Brings archived content back. The archived copy stays: `keepOnly`. */
  async restore(sha256: string, progress: Progress = {}): Promise<void> {
    await this.#carry(
      sha256,
      'archive',
      (path) => this.#live.put(keyOf(sha256), path, { signal: progress.signal }),
      progress,
    );
  }

  /** Removes every copy of content save the one at `place`, and what a move of it that broke off has left. */
  async keepOnly(sha256: string, place: 'live' | 'archive' | undefined): Promise<void> {
    if (place !== 'live') await this.#live.remove(keyOf(sha256));
    if (place !== 'archive') await this.#archive.remove(archived(sha256));
    for (const from of ['live', 'archive'] as const) await rm(this.#moving(sha256, from), { force: true });
  }

  /** Writes content into a file of this machine, in the form that it has at the other place, and has that put there. */
  async #carry(
    sha256: string,
    from: 'live' | 'archive',
    put: (path: string) => Promise<void>,
    progress: Progress,
  ): Promise<void> {
    const path = this.#moving(sha256, from);
    try {
      await mkdir(this.#scratch, { recursive: true, mode: 0o700 });
      await this.#through(sha256, from, createWriteStream(path, { mode: 0o600 }), progress, from === 'live');
      await put(path);
    } catch (error) {
      throw fileTrouble(error, path);
    } finally {
      await rm(path, { force: true });
    }
  }

  #moving(sha256: string, from: 'live' | 'archive'): string {
    return join(this.#scratch, `${from}-${sha256}`);
  }

  /** Passes content on, decompressed where it was archived, compressed where that is asked for; `onBytes` counts what it was itself. */
  async #through(
    sha256: string,
    place: 'live' | 'archive',
    to: Writable,
    { onBytes, signal }: Progress,
    compress = false,
  ): Promise<void> {
    const store = place === 'live' ? this.#live : this.#archive;
    const key = place === 'live' ? keyOf(sha256) : archived(sha256);
    const { content } = await store.open(key);
    const hash = createHash('sha256');
    const looked = counted(onBytes);
    looked.on('data', (piece: Buffer) => hash.update(piece));
    const decompressed = place === 'archive' ? createZstdDecompress() : new PassThrough();
    const compressed = compress ? createZstdCompress({ params: ZSTD }) : new PassThrough();
    try {
      await pipeline(content, decompressed, looked, compressed, to, { ...(signal && { signal }) });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code?.startsWith('ZSTD'))
        throw new ArtifactError('damaged', `${store.name}/${key} cannot be decompressed`, { cause: error });
      throw fileTrouble(error, `${store.name}/${key}`);
    }
    const found = hash.digest('hex');
    if (found !== sha256)
      throw new ArtifactError('damaged', `${store.name}/${key} is not what it was: it hashes to ${found}`);
  }
}

const archived = (sha256: string): string => `${keyOf(sha256)}.zst`;

export { ArtifactError, type ArtifactStore, type Progress } from './contracts.ts';
export { directoryStore } from './directory.ts';
export { s3Store } from './s3.ts';
export { hashOf };
