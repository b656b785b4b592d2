import { dirname, resolve } from 'node:path';
import { type Fault, inOrder, type Notice } from './faults.ts';
import { type ConfigIo, readText, systemIo } from './files.ts';
import { laterNotices } from './later.ts';
import { templateFault, tokenizerFault } from './model-files.ts';
import { formatPath, type Places } from './places.ts';
import { type ReadFile, readFiles } from './read-files.ts';
import { UNRESOLVED } from './references.ts';
import { type Settings, settingsSchema } from './schema/index.ts';
import { findSecrets, type Secrets } from './secrets.ts';
import { bare, definition, mapLeaves, marked } from './shape.ts';
import type { Sources } from './sources.ts';
import { validate } from './validate.ts';

/** Read where no file is named. */
export const CONFIG_FILE = 'armature.yaml';

const CERTIFICATE_BYTES_MAX = 1024 * 1024;

/** Where a value comes from. Values that come from nowhere are defaults. */
export type Origin =
  | { kind: 'file'; file: string; line: number; column: number }
  /** Changed live: who did it, and when (ISO 8601). */
  | { kind: 'overlay'; actor: string; at: string };

export interface LoadedConfig {
  settings: Settings;
  /** By path, such as `routes.chat.deadline` or `routes.chat.targets[0].weight`; also of maps and lists. */
  origins: Record<string, Origin>;
  /** Every configuration file that was read. */
  files: ReadFile[];
  /** Certificates and keys that the configuration names, by their path; SHA-256 of their bytes, hexadecimal. */
  certificates: Record<string, string>;
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
  const made = assembleConfig(read, io);
  const faults = [...read.faults, ...(made.ok ? [] : made.faults)];
  if (!made.ok || faults.length > 0) {
    const order = read.files.map((each) => each.file);
    return { ok: false, faults: inOrder(faults, order) };
  }
  if (Object.keys(made.config.document).length === 0) {
    const message = 'the file sets nothing: Armature runs on defaults, without routes';
    made.config.notices.unshift({ code: 'empty', file, line: 1, column: 1, path: '', message });
  }
  return made;
}

/** Checks a document and makes a configuration of it. `incomplete`: files are missing, and names may stand in them. */
export function assembleConfig(
  read: Pick<LoadedConfig, 'document' | 'sources' | 'files'> & { incomplete: boolean },
  io: ConfigIo,
): Loaded {
  const { sources, files } = read;
  const document = finishValues(read.document, sources);
  const validated = validate(document, sources, read.incomplete);
  const named = certificatesOf(document, sources, io);
  const faults = [...validated.faults, ...named.faults];
  if (!validated.settings || faults.length > 0) return { ok: false, faults };
  const config: LoadedConfig = {
    settings: validated.settings,
    origins: originsOf(sources.places),
    files,
    certificates: named.certificates,
    secrets: findSecrets(settingsSchema, document, sources.places),
    notices: [...validated.notices, ...laterNotices(document, sources)],
    document,
    sources,
  };
  return { ok: true, config };
}

function originsOf(places: Places): Record<string, Origin> {
  const origins: Record<string, Origin> = {};
  for (const { path, place } of places.entries()) {
    if (path.length === 0) continue;
    const { file, line, column } = place.key ?? place.value;
    origins[formatPath(path)] = place.live
      ? { kind: 'overlay', ...place.live }
      : { kind: 'file', file, line, column };
  }
  return origins;
}

/**
 * Makes of a document as written one that means the same wherever it is read: paths of files are taken from the
 * folder of the file they stand in; what a reference gave for a number or a boolean becomes one.
 */
function finishValues(document: Record<string, unknown>, { main, places }: Sources): Record<string, unknown> {
  return mapLeaves(settingsSchema, document, (value, schema, path) => {
    if (typeof value !== 'string' || !schema || value === UNRESOLVED) return value;
    const place = places.get(path);
    const folder = dirname(place && !place.live ? place.value.file : main);
    if (marked(schema, 'file')) return resolve(folder, value);
    if (path[0] === 'models' && value.startsWith('file:'))
      return `file:${resolve(folder, value.slice('file:'.length))}`;
    return place?.written === undefined ? value : converted(value, definition(bare(schema)).type);
  }) as Record<string, unknown>;
}

/** Certificates, keys and files of models must be there, and be what they are named as, before anything starts. */
function certificatesOf(
  document: Record<string, unknown>,
  sources: Sources,
  io: ConfigIo,
): { certificates: LoadedConfig['certificates']; faults: Fault[] } {
  const faults: Fault[] = [];
  const certificates: LoadedConfig['certificates'] = {};
  mapLeaves(settingsSchema, document, (value, schema, path) => {
    if (typeof value !== 'string' || !schema || !marked(schema, 'file') || value === UNRESOLVED) return value;
    let cause: string | undefined;
    if (marked(schema, 'large')) cause = tokenizerFault(io, value);
    else {
      const got = readText(io, value, CERTIFICATE_BYTES_MAX);
      if ('cause' in got) cause = got.cause;
      else {
        certificates[value] = got.sha256;
        if (marked(schema, 'jinja')) cause = templateFault(got.text);
      }
    }
    if (cause !== undefined) {
      const message = `the file ${value} ${cause}`;
      faults.push(sources.fault({ code: 'unreadable', path, at: 'value', message }));
    }
    return value;
  });
  return { certificates, faults };
}

function converted(text: string, type: string): unknown {
  if (type === 'number' && /^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
