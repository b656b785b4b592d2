import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ArtifactError, fileTrouble, type Progress } from './contracts.ts';
import { counted } from './directory.ts';

/** Files on their way in at one time. */
export const INCOMING_MAX = 1000;
/** One that nobody has gone on with for so long is removed. */
const ABANDONED_MS = 7 * 24 * 3600 * 1000;

/**
 * Content on its way in, piece by piece, each at the place that it has reached: whoever was interrupted asks how far it
 * came and goes on from there.
 */
export class Incoming {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  pathOf(sha256: string): string {
    return join(this.#folder, `${sha256}.part`);
  }

  /** How many bytes are there. */
  async bytes(sha256: string): Promise<number> {
    try {
      return (await stat(this.pathOf(sha256))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
      throw fileTrouble(error, this.pathOf(sha256));
    }
  }

  /**
   * Adds a piece and gives how many bytes there are. A piece that does not begin where the last one ended is `wrong`; one
   * that finds no room leaves what was there before.
   */
  async add(sha256: string, at: number, piece: Buffer, nowMs: number): Promise<number> {
    const path = this.pathOf(sha256);
    const there = await this.bytes(sha256);
    if (there !== at)
      throw new ArtifactError('wrong', `the next piece begins at ${there}, and this one at ${at}`);
    try {
      if (there === 0) await this.#begin(nowMs);
      const file = await open(path, 'a', 0o600);
      try {
        await file.appendFile(piece);
      } catch (error) {
        await file.truncate(there);
        throw error;
      } finally {
        await file.close();
      }
      return at + piece.length;
    } catch (error) {
      throw fileTrouble(error, path);
    }
  }

  async remove(sha256: string): Promise<void> {
    await rm(this.pathOf(sha256), { force: true });
  }

  async #begin(nowMs: number): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const names = await readdir(this.#folder);
    let left = names.length;
    for (const name of names) {
      const path = join(this.#folder, name);
      if (nowMs - (await stat(path)).mtimeMs < ABANDONED_MS) continue;
      await rm(path, { force: true });
      left--;
    }
    if (left >= INCOMING_MAX)
      throw new ArtifactError(
        'full',
        `${left} files are on their way in already; at most ${INCOMING_MAX} may be`,
      );
  }
}

/** SHA-256 of a file, hexadecimal. */
export async function hashOf(path: string, { onBytes, signal }: Progress = {}): Promise<string> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), counted(onBytes), hash, {
      signal,
    });
  } catch (error) {
    throw fileTrouble(error, path);
  }
  return hash.digest('hex');
}
