import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { type ContentView, REQUEST_BYTES_MAX } from '../api/contracts.ts';
import { askedWrongly } from './command.ts';
import { followSteps, type ShowStep } from './registry-steps.ts';
import type { Running } from './running.ts';

export interface LocalFile {
  /** As the version has it. */
  path: string;
  /** Where it is here. */
  place: string;
}

/** A file by its name, a folder by what is in it. Throws where two would have one path. */
export function filesIn(places: readonly string[]): LocalFile[] {
  const files = places.flatMap((place) => {
    const stat = statSync(place, { throwIfNoEntry: false });
    if (!stat) throw askedWrongly(`${place} is not there`);
    if (stat.isDirectory()) return inFolder(place);
    // What a device or a pipe gives has no end that could be known.
    if (!stat.isFile()) throw askedWrongly(`${place} is neither a file nor a folder`);
    return [{ path: basename(place), place }];
  });
  const paths = new Map<string, string>();
  for (const { path, place } of files) {
    const other = paths.get(path);
    if (other !== undefined) throw askedWrongly(`${other} and ${place} would both be ${path} of the version`);
    paths.set(path, place);
  }
  if (files.length === 0) throw askedWrongly(`there is no file in ${places.join(', ')}`);
  return files;
}

function inFolder(folder: string): LocalFile[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => {
      const place = join(entry.parentPath, entry.name);
      // A link to a folder is not followed, and a version that lacks what is in it would be another one.
      if (!statSync(place, { throwIfNoEntry: false })?.isFile())
        throw askedWrongly(`${place} leads to no file: take it away, or give what it leads to by --file`);
      return { path: relative(folder, place).split(sep).join('/'), place };
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Brings a file there, as far as it is not there yet; gives what it hashes to. */
export async function contentOf(
  running: Running,
  { path, place }: LocalFile,
  show: ShowStep,
): Promise<{ path: string; sha256: string }> {
  const total = statSync(place).size;
  const sha256 = await hashOf(place, (bytes) => show({ what: `${path}, hashing`, bytes, total }));
  const address = `/api/v1/artifacts/${sha256}`;
  let state = await running.call<ContentView>(address);
  if (state.kept) return { path, sha256 };
  const file = await open(place);
  try {
    while (!state.kept && state.bytes < total) {
      const piece = Buffer.alloc(Math.min(REQUEST_BYTES_MAX, total - state.bytes));
      const { bytesRead } = await file.read(piece, 0, piece.length, state.bytes);
      if (bytesRead === 0) throw askedWrongly(`${place} became shorter while it was read`);
      const body = piece.subarray(0, bytesRead);
      state = await running.call<ContentView>(`${address}?at=${state.bytes}`, { method: 'PUT', body });
      show({ what: `${path}, sending`, bytes: state.bytes, total });
    }
  } finally {
    await file.close();
  }
  if (total === 0) await running.call(`${address}?at=0`, { method: 'PUT', body: Buffer.alloc(0) });
  await followSteps(running.lines(address, { method: 'POST' }), show, path);
  return { path, sha256 };
}

async function hashOf(place: string, onBytes: (bytes: number) => void): Promise<string> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of createReadStream(place, { highWaterMark: 1024 * 1024 })) {
    hash.update(piece as Buffer);
    bytes += (piece as Buffer).length;
    onBytes(bytes);
  }
  return hash.digest('hex');
}
