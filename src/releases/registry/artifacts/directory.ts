import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ArtifactStore, fileTrouble, type Progress } from './contracts.ts';

/**
 * Content in a directory. A file appears under its name when it is whole and on the disk, by a rename; what was not
 * finished lies beside it as `.part` and is replaced by the next try.
 */
export function directoryStore(root: string): ArtifactStore {
  return {
    name: `file:${root}`,
    async put(key, path, progress = {}) {
      const place = join(root, key);
      try {
        await mkdir(dirname(place), { recursive: true });
        await moveIn(path, place, progress);
        await flush(dirname(place));
      } catch (error) {
        throw fileTrouble(error, place);
      }
    },
    async open(key) {
      const place = join(root, key);
      try {
        const file = await open(place);
        return { bytes: (await file.stat()).size, content: createReadStream('', { fd: file }) };
      } catch (error) {
        throw fileTrouble(error, place);
      }
    },
    async has(key) {
      const place = join(root, key);
      try {
        return (await stat(place)).isFile();
      } catch (error) {
        const trouble = fileTrouble(error, place);
        if (trouble.trouble === 'missing') return false;
        throw trouble;
      }
    },
    async remove(key) {
      const place = join(root, key);
      try {
        for (const path of [place, partOf(place)]) await rm(path, { force: true });
      } catch (error) {
        throw fileTrouble(error, place);
      }
    },
  };
}

const partOf = (place: string): string => `${place}.part`;

/** A rename where both lie on one file system, else a copy that is renamed when it is whole. */
async function moveIn(path: string, place: string, { onBytes, signal }: Progress): Promise<void> {
  await flush(path);
  try {
    await rename(path, place);
    return;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
  }
  const part = partOf(place);
  try {
    await pipeline(createReadStream(path), counted(onBytes), createWriteStream(part), {
      ...(signal && { signal }),
    });
    await flush(part);
    await rename(part, place);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** Resolves once a file, or what a directory lists, is on the disk. */
async function flush(path: string): Promise<void> {
  const file = await open(path);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Passes everything on, and tells how much it was. */
export function counted(onBytes: Progress['onBytes']): Transform {
  let bytes = 0;
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      bytes += piece.length;
      onBytes?.(bytes);
      done(null, piece);
    },
  });
}
