import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

/** The kernel takes 108 bytes of a Unix socket's path on Linux, 104 on macOS. */
const PATH_BYTES_MAX = 100;

/**
 * Where a socket of a data directory lies: `DATA/run/NAME.sock`, or, where that path is longer than the kernel takes,
 * in a private folder under the temporary directory that is derived from the data directory.
 */
export function socketPath(dataDir: string, name: 'supervisor' | 'control'): string {
  const file = `${name}.sock`;
  const path = join(resolve(dataDir), 'run', file);
  if (Buffer.byteLength(path) <= PATH_BYTES_MAX) return path;
  const folder = `armature-${process.getuid?.() ?? 'user'}-${createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 16)}`;
  const short = join(tmpdir(), folder, file);
  return Buffer.byteLength(short) <= PATH_BYTES_MAX ? short : join('/tmp', folder, file);
}

/** Makes the folder of a socket, for this user alone; throws where somebody else's folder stands in its place. */
export function privateFolder(socket: string): void {
  const folder = dirname(socket);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || (process.getuid && found.uid !== process.getuid())) {
    throw new Error(`${folder} is not a folder of this user`);
  }
  if (found.mode & 0o077) chmodSync(folder, 0o700);
}
