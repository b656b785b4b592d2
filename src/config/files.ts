import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { closeSync, globSync, openSync, readSync } from 'node:fs';

/** What loading a configuration needs from outside. */
export interface ConfigIo {
  env: Readonly<Record<string, string | undefined>>;
  /** References such as `${env:NAME}` that may be used; all of them where absent. */
  allowed?: ReadonlySet<string>;
  /** The first `bytesMax` bytes of a file; throws node's errors. */
  readFile(path: string, bytesMax: number): Uint8Array;
  /** Files that match, relative to the folder, in the order of their names. */
  glob(pattern: string, folder: string): string[];
}

export const systemIo: ConfigIo = {
  env: process.env,
  readFile: readUpTo,
  glob: (pattern, folder) => globSync(pattern, { cwd: folder }).sort(),
};

/** Reads by pieces, so that a device or a pipe that never ends does no harm. */
function readUpTo(path: string, bytesMax: number): Uint8Array {
  const handle = openSync(path, 'r');
  try {
    const pieces: Buffer[] = [];
    let left = bytesMax;
    while (left > 0) {
      const piece = Buffer.allocUnsafe(Math.min(left, 64 * 1024));
      const count = readSync(handle, piece);
      if (count === 0) break;
      pieces.push(piece.subarray(0, count));
      left -= count;
    }
    return Buffer.concat(pieces);
  } finally {
    closeSync(handle);
  }
}

/** A file as text, or the words for why it is none. */
export type FileText = { text: string; sha256: string } | { cause: string; missing: boolean };

/** Reads a file as UTF-8 text of at most `bytesMax` bytes. */
export function readText(io: ConfigIo, path: string, bytesMax: number): FileText {
  let bytes: Uint8Array;
  try {
    bytes = io.readFile(path, bytesMax + 1);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return { cause: causeOf(error as Error), missing };
  }
  if (bytes.length > bytesMax) return { cause: `is larger than ${bytesMax} bytes`, missing: false };
  if (bytes.includes(0)) return { cause: 'is not text: it holds zero bytes', missing: false };
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return { text, sha256: createHash('sha256').update(bytes).digest('hex') };
  } catch {
    return { cause: 'is not text in UTF-8', missing: false };
  }
}

/** Why a file cannot be read, in words; undefined where it can. */
export function unreadable(io: ConfigIo, path: string): string | undefined {
  try {
    io.readFile(path, 1);
    return undefined;
  } catch (error) {
    return causeOf(error as Error);
  }
}

function causeOf(error: NodeJS.ErrnoException): string {
  return CAUSES[error.code ?? ''] ?? error.message;
}

const CAUSES: Record<string, string> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist: a part of its path is no folder',
  EISDIR: 'is a folder',
  EACCES: 'may not be read by this user',
  EPERM: 'may not be read by this user',
  ELOOP: 'is a link to itself',
  ENAMETOOLONG: 'has too long a name',
};
