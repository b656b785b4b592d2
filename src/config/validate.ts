import type { core } from 'zod';
import { crossCheck, type Sound } from './checks.ts';
import { explain, strayFor } from './explain.ts';
import type { Fault, Notice } from './faults.ts';
import { nearest } from './nearest.ts';
import { formatPath, type Path } from './places.ts';
import { OIP_ENGINES, OPENAI_ENGINES, type Settings, settingsSchema } from './schema/index.ts';
import { at, isMap } from './shape.ts';
import type { Draft, Sources } from './sources.ts';

export type Validated =
  | { settings: Settings; notices: Notice[]; faults: [] }
  | { settings: undefined; faults: Fault[] };

/** Rounds of leaving out what is wrong; each leaves out something. */
const ROUNDS_MAX = 100;

/**
 * Checks a whole configuration: the schema of every part, then what parts say about one another. Where the schema
 * finds faults, what is wrong is left out and the rest is cross-checked, so that all faults are told at once.
 * `incomplete`: files are missing, so that names that are not found may stand in them.
 */
export function validate(document: Record<string, unknown>, sources: Sources, incomplete = false): Validated {
  const parsed = settingsSchema.safeParse(document);
  const drafts = parsed.success ? [] : explainAll(document, parsed.error.issues, sources);
  const sound = parsed.success
    ? { settings: parsed.data, leftOut: new Set<string>() }
    : withoutFaults(document, parsed.error.issues);
  const found = sound && !incomplete ? crossCheck(sound, document) : undefined;
  if (found) drafts.push(...found.faults);
  const faults = drafts.map((draft) => sources.fault(draft));
  if (!parsed.success || !found || faults.length > 0) return { settings: undefined, faults };
  const notices = found.notices.map(({ code, path, message }) => {
    const { file, line, column } = sources.locate(path, 'value');
    return { code, file, line, column, path: formatPath(path), message };
  });
  return { settings: parsed.data, notices, faults: [] };
}

/** Explains what zod found, and what it would have found in backends had it known their engine. */
function explainAll(document: Record<string, unknown>, issues: core.$ZodIssue[], sources: Sources): Draft[] {
  const drafts = issues.flatMap((issue) => explain(issue, { schema: settingsSchema, document, sources }));
  const corrected = structuredClone(document);
  const names = new Set<string>();
  for (const { code, path } of issues) {
    const [section, name, key] = path as Path;
    const backend = at(corrected['backends'], name ?? '');
    if (code !== 'invalid_union' || section !== 'backends' || path.length !== 3 || key !== 'engine') continue;
    if (isMap(backend) && correctEngine(backend)) names.add(String(name));
  }
  if (names.size === 0) return drafts;
  const again = settingsSchema.safeParse(corrected).error?.issues ?? [];
  const inside = again.filter(({ path }) => path[0] === 'backends' && names.has(String(path[1])));
  return [
    ...drafts,
    ...inside.flatMap((issue) => explain(issue, { schema: settingsSchema, document: corrected, sources })),
  ];
}

const ENGINES = [...OPENAI_ENGINES, ...OIP_ENGINES, 'local', 'sim'];

/** Gives a backend the engine that was probably meant; false where nothing tells which. */
function correctEngine(backend: Record<string, unknown>): boolean {
  const stray = backend['engine'] === undefined ? strayFor('engine', backend) : 'engine';
  const said = stray === undefined ? undefined : backend[stray];
  if (stray !== undefined) delete backend[stray];
  const engine = typeof said === 'string' ? nearest(said, ENGINES) : undefined;
  if (engine !== undefined) backend['engine'] = engine;
  return engine !== undefined;
}

/** What remains when everything faulty is left out; undefined where nothing can be made of it. */
function withoutFaults(document: Record<string, unknown>, issues: core.$ZodIssue[]): Sound | undefined {
  const rest = structuredClone(document);
  const leftOut = new Set<string>();
  let faulty = issues;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    for (const issue of faulty) {
      const path = issue.path as Path;
      const wrong = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
      for (const one of wrong) {
        const gone = leaveOut(rest, one);
        if (gone) leftOut.add(formatPath(gone));
      }
    }
    const parsed = settingsSchema.safeParse(rest);
    if (parsed.success) return { settings: parsed.data, leftOut };
    faulty = parsed.error.issues;
  }
  return undefined;
}

/**
 * Takes a value out of its map; where it is missing already, the map that lacks it. Of a list nothing is taken, so
 * that positions stay: the whole list goes. Gives the path of what was taken.
 */
function leaveOut(document: Record<string, unknown>, path: Path): Path | undefined {
  const holderOf = (length: number): unknown => path.slice(0, length - 1).reduce<unknown>(at, document);
  if (holderOf(path.length) === undefined) return undefined; // went with what held it
  for (let length = path.length; length > 0; length--) {
    const key = path[length - 1]!;
    const holder = holderOf(length);
    if (typeof key === 'string' && isMap(holder) && Object.hasOwn(holder, key)) {
      delete holder[key];
      return path.slice(0, length);
    }
  }
  return undefined;
}
