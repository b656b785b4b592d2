import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type ConfigIo, systemIo } from './files.ts';
import { filesInMemory } from './files-in-memory.ts';
import type { ReadFile } from './read-files.ts';

interface Kept {
  /** The configuration file that the others were included from. */
  main: string;
  files: { file: string; text: string }[];
}

/** In `DATA/run`: one file for all texts, so that it is replaced whole. */
export const LAST_GOOD_FILE = 'last-good.json';

const pathIn = (data: string): string => join(data, 'run', LAST_GOOD_FILE);

/**
 * Keeps the texts of the configuration files that were accepted last, as they were written: no secret gets there that does
 * not stand in them. For their owner alone. Throws node's errors.
 */
export function keepLastGood(data: string, main: string, files: readonly ReadFile[]): void {
  const kept: Kept = { main, files: files.map(({ file, text }) => ({ file, text })) };
  const path = pathIn(data);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, JSON.stringify(kept), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/**
 * Reads configuration files as they were when they were accepted last, and what they refer to (certificates, secrets) as it
 * is now. Undefined where nothing was kept of this configuration file.
 */
export function lastGoodIo(data: string, main: string): ConfigIo | undefined {
  const kept = readKept(pathIn(data));
  if (kept?.main !== main) return undefined;
  const memory = filesInMemory(Object.fromEntries(kept.files.map(({ file, text }) => [file, text])));
  const there = new Set(kept.files.map(({ file }) => resolve(file)));
  return {
    ...systemIo,
    readFile: (path, bytesMax) => (there.has(resolve(path)) ? memory : systemIo).readFile(path, bytesMax),
    glob: memory.glob,
  };
}

function readKept(path: string): Kept | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Kept;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
