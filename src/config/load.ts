import { dirname, resolve } from 'node:path';
import type { Fault, Notice } from './faults.ts';
import { type ConfigIo, systemIo } from './files.ts';
import { laterNotices } from './later.ts';
import { formatPath, type Path, type Places } from './places.ts';
import { readFiles } from './read-files.ts';
import { type Settings, settingsSchema } from './schema/index.ts';
import { bare, definition, mapLeaves, marked } from './shape.ts';
import { findSecrets, type Secrets, type Sources } from './sources.ts';
import { validate } from './validate.ts';

/** Read where no file is named. */
export const CONFIG_FILE = 'armature.yaml';

/** Where a value comes from. Values that come from nowhere are defaults. */
export type Origin =
  | { kind: 'file'; file: string; line: number; column: number }
  /** Changed live: who did it, and when (ISO 8601). */
  | { kind: 'overlay'; actor: string; at: string };

export interface LoadedConfig {
  settings: Settings;
  /** By path, such as `routes.chat.deadline` or `routes.chat.targets[0].weight`; also of maps and lists. */
  origins: Record<string, Origin>;
  /** Every configuration file that was read; SHA-256 of its bytes, hexadecimal. */
  files: { file: string; sha256: string }[];
  /** Paths whose values are never shown, and what is shown in their place. */
  secrets: Secrets;
  notices: Notice[];
  /** The configuration as written, files merged, references resolved: what overlays are put over. */
  document: Record<string, unknown>;
  sources: Sources;
}

export type Loaded = { ok: true; config: LoadedConfig } | { ok: false; faults: Fault[] };

/** Loads and checks a configuration file with all that it includes. Tells all faults at once; never throws for a file. */
export function loadConfig(file: string, io: ConfigIo = systemIo): Loaded {
  const read = readFiles(file, io);
  const { sources, files } = read;
  const document = finishValues(read.document, sources.places, file);
  const validated = validate(document, sources, read.incomplete);
  const faults = [...read.faults, ...validated.faults];
  if (!validated.settings || faults.length > 0) return { ok: false, faults: inOrder(faults, files) };
  const notices = [...validated.notices, ...laterNotices(document, sources)];
  if (Object.keys(document).length === 0) {
    const message = 'the file sets nothing: Armature runs on defaults, without routes';
    notices.unshift({ code: 'empty', file, line: 1, column: 1, path: '', message });
  }
  const secrets = findSecrets(settingsSchema, document, sources.places);
  const config = {
    settings: validated.settings,
    origins: originsOf(sources.places),
    files,
    secrets,
    notices,
    document,
    sources,
  };
  return { ok: true, config };
}

/** Where a value comes from: its own place, or that of the nearest that holds it; undefined for a default. */
export function originOf(origins: Record<string, Origin>, path: string): Origin | undefined {
  for (let rest = path; rest !== ''; rest = rest.replace(/(\.[^.[]*|\[\d+\])$|^[^.[]*$/, '')) {
    if (Object.hasOwn(origins, rest)) return origins[rest];
  }
  return undefined;
}

function originsOf(places: Places): Record<string, Origin> {
  const origins: Record<string, Origin> = {};
  for (const { path, place } of places.entries()) {
    if (path.length === 0) continue;
    const { file, line, column } = place.key ?? place.value;
    origins[formatPath(path)] = { kind: 'file', file, line, column };
  }
  return origins;
}

/**
 * Makes of a document as written one that means the same wherever it is read: paths of files are taken from the
 * folder of the file they stand in; what a reference gave for a number or a boolean becomes one.
 */
export function finishValues(
  document: Record<string, unknown>,
  places: Places,
  main: string,
): Record<string, unknown> {
  const finish = (value: unknown, schema: Parameters<typeof marked>[0] | undefined, path: Path): unknown => {
    if (typeof value !== 'string' || !schema) return value;
    const place = places.get(path);
    const folder = dirname(place?.value.file ?? main);
    if (marked(schema, 'file')) return resolve(folder, value);
    if (value.startsWith('file:') && path[0] === 'models')
      return `file:${resolve(folder, value.slice('file:'.length))}`;
    return place?.written === undefined ? value : converted(value, definition(bare(schema)).type);
  };
  return mapLeaves(settingsSchema, document, finish) as Record<string, unknown>;
}

function converted(text: string, type: string): unknown {
  if (type === 'number' && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** In the order in which the files were read, from top to bottom. */
function inOrder(faults: Fault[], files: { file: string }[]): Fault[] {
  const order = new Map(files.map(({ file }, index) => [file, index]));
  const rank = (fault: Fault): number => order.get(fault.file) ?? -1;
  return faults.sort((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
}
