import { type FileHandle, open } from 'node:fs/promises';
import type { Exchange, Path } from '../../gateway/contracts.ts';
import { noSuch } from '../answers.ts';
import type { StoredFile } from './store/rows.ts';

const PIECE_BYTES = 64 * 1024;

/** Sends a file's bytes, no faster than the caller takes them. Rejects where they cannot be read and nothing was sent. */
export async function sendContent(path: Path, x: Exchange, file: StoredFile, at: string): Promise<void> {
  const handle = await open(at).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined; // deleted a moment ago
    throw error;
  });
  if (!handle) {
    path.refuse(x, noSuch('File object', file.id, 'id'));
    return;
  }
  try {
    if (!x.over) await send(path, x, file, handle);
  } finally {
    await handle.close();
  }
}

async function send(path: Path, x: Exchange, file: StoredFile, handle: FileHandle): Promise<void> {
  const headers = [
    'content-type',
    'application/octet-stream',
    'content-length',
    String(file.bytes),
    'content-disposition',
    `attachment; filename*=UTF-8''${encodeName(file.filename)}`,
  ];
  x.status = 200;
  x.committed = true; // a drain that is over breaks it off, and does not answer it again
  path.addHeaders(x, headers);
  x.caller.open(200, headers);
  if (x.caller.method !== 'HEAD' && !(await copy(x, file, handle))) {
    if (x.over) return;
    // Fewer bytes than were promised: that must be seen to be so.
    x.outcome = 'failed';
    x.caller.destroy();
    path.finish(x);
    return;
  }
  if (x.over) return;
  x.outcome = 'ok';
  x.caller.end();
  path.finish(x);
}

/** False where the caller left, or the file has fewer bytes than it should. */
async function copy(x: Exchange, { bytes }: StoredFile, handle: FileHandle): Promise<boolean> {
  let wake = () => {};
  x.caller.onDrain = () => wake();
  x.scope.add(() => wake());
  for (let at = 0; at < bytes; ) {
    const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, bytes - at));
    const { bytesRead } = await handle.read(piece, 0, piece.length, at).catch(() => ({ bytesRead: 0 }));
    if (bytesRead === 0 || x.over) return false;
    at += bytesRead;
    if (x.caller.write(piece.subarray(0, bytesRead))) continue;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
    if (x.over) return false;
  }
  return true;
}

/** RFC 8187: everything but a few plain characters as percent escapes. A half of a pair has no escape. */
function encodeName(name: string): string {
  return encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
