import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { cacheName, type FileSettings, parseSource } from './sources.ts';

/** Where the files of models lie: one folder for all data directories of this user. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.ARMATURE_MODELS) return resolve(env.ARMATURE_MODELS);
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'armature', 'models');
}

/** What stands beside a file in the cache, in `FILE.json`: written last, so that a file without it is not whole. */
interface Record {
  source: string;
  sha256: string;
  bytes: number;
}

/** A file that can be used. */
export interface Found {
  path: string;
  /** The source it came from. */
  source: string;
  /** What the configuration says of that source. */
  note: string | undefined;
  bytes: number;
  /** Undefined for a file outside the cache, which is hashed by `pull` only. */
  sha256: string | undefined;
}

/** One entry of `from`. */
export type Wanted = FileSettings['from'][number];

/** The paths of a source's file in the cache. */
export function cachePaths(folder: string, source: string) {
  const path = join(folder, cacheName(source));
  return {
    path,
    part: `${path}.part`,
    record: `${path}.json`,
    /** Where package managers work. */
    scratch: `${path}.fetching`,
    lock: join(folder, 'locks', cacheName(source)),
  };
}

/** The file of the first source that is here, whole and with the checksum asked for. */
export function find(folder: string, file: FileSettings): Found | undefined {
  for (const wanted of file.from) {
    const found = findSource(folder, wanted, wanted.sha256 ?? file.sha256);
    if (found) return found;
  }
  return undefined;
}

export function findSource(
  folder: string,
  { source, note }: Wanted,
  sha256: string | undefined,
): Found | undefined {
  const parsed = parseSource(source);
  if (parsed.kind === 'file') {
    const bytes = sizeOf(parsed.path);
    return bytes === undefined ? undefined : { path: parsed.path, source, note, bytes, sha256: undefined };
  }
  const { path, record } = cachePaths(folder, source);
  const known = readRecord(record);
  if (!known || sizeOf(path) !== known.bytes || (sha256 !== undefined && sha256 !== known.sha256))
    return undefined;
  return { path, source, note, bytes: known.bytes, sha256: known.sha256 };
}

/** Makes a downloaded file one that can be used. */
export function keep(folder: string, source: string, sha256: string): void {
  const { path, part, record } = cachePaths(folder, source);
  const bytes = sizeOf(part)!;
  rmSync(record, { force: true }); // It belongs to the file that is replaced now.
  renameSync(part, path);
  writeFileSync(`${record}.new`, `${JSON.stringify({ source, sha256, bytes } satisfies Record)}\n`);
  renameSync(`${record}.new`, record);
}

/** Removes what the cache holds of a source, and gives the bytes that were freed. */
export function remove(folder: string, source: string): number {
  if (parseSource(source).kind === 'file') return 0;
  const { path, part, record, scratch } = cachePaths(folder, source);
  const bytes = (sizeOf(path) ?? 0) + (sizeOf(part) ?? 0);
  for (const file of [record, path, part, scratch]) rmSync(file, { recursive: true, force: true });
  return bytes;
}

/** Bytes of a download that was begun. */
export function partBytes(folder: string, source: string): number | undefined {
  return sizeOf(cachePaths(folder, source).part);
}

export function makeFolder(folder: string): void {
  mkdirSync(join(folder, 'locks'), { recursive: true });
}

function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}

/** Undefined for a record that is missing or broken: the file is fetched again then. */
function readRecord(path: string): Record | undefined {
  if (sizeOf(path) === undefined) return undefined;
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
