import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import type { FileDisk } from '../files/disk.ts';
import type { FileStore } from '../files/store/index.ts';
import type { StoredBatch, StoredFile } from '../files/store/rows.ts';

/** Results that are held at one time, about. */
const PAGE_BYTES = 2 ** 20;

/** What else is to stand in a file, behind the results: texts of lines. */
export type More = AsyncIterable<string>;

/**
 * Writes the results of one kind to a file, in the order of the lines; it is on the disk when this resolves. Undefined, and no
 * file, where there are none.
 */
export async function writeResults(
  { store, disk, nowMs }: { store: FileStore; disk: FileDisk; nowMs: number },
  batch: StoredBatch,
  failed: boolean,
  more?: More,
): Promise<StoredFile | undefined> {
  const id = disk.newId();
  const handle = await open(disk.pathOf(id), 'wx', 0o600);
  let bytes = 0;
  try {
    bytes = await write(handle, results(store, batch.seq, failed), more);
    await handle.sync();
  } catch (error) {
    bytes = 0;
    throw error;
  } finally {
    await handle.close();
    if (bytes === 0) await disk.remove(id);
  }
  if (bytes === 0) return undefined;
  return {
    id,
    tenant: batch.tenant,
    purpose: 'batch_output',
    filename: `${batch.id}_${failed ? 'error' : 'output'}.jsonl`,
    bytes,
    createdMs: nowMs,
    expiresMs: batch.outputKeptMs === undefined ? undefined : nowMs + batch.outputKeptMs,
  };
}

/** Gives the bytes that were written. */
async function write(handle: FileHandle, ...sources: (More | undefined)[]): Promise<number> {
  let bytes = 0;
  let page: string[] = [];
  let held = 0;
  const flush = async () => {
    const piece = Buffer.from(page.join(''));
    page = [];
    held = 0;
    for (let at = 0; at < piece.length; ) {
      const { bytesWritten } = await handle.write(piece, at, piece.length - at, bytes);
      at += bytesWritten;
      bytes += bytesWritten;
    }
  };
  for (const source of sources) {
    if (!source) continue;
    for await (const text of source) {
      page.push(text, '\n');
      held += text.length + 1;
      if (held >= PAGE_BYTES) await flush();
    }
  }
  await flush();
  return bytes;
}

async function* results(store: FileStore, seq: number, failed: boolean): More {
  for (let after = -1; ; ) {
    const page = await store.call('results', { seq, failed, after, bytesMax: PAGE_BYTES });
    if (page.length === 0) return;
    after = page.at(-1)!.line;
    for (const { text } of page) yield text;
  }
}
