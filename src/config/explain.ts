import type { core } from 'zod';
import { shownKey } from './masking.ts';
import { nearest, nearestUnit } from './nearest.ts';
import type { Path } from './places.ts';
import { UNRESOLVED } from './references.ts';
import { at, bare, chosen, definition, isMap, lookUp, marked, meant, type Schema } from './shape.ts';
import type { Draft, Sources } from './sources.ts';

type Issue = core.$ZodIssue;

/** What a schema fault is explained on. */
interface Context {
  schema: Schema;
  document: unknown;
  sources: Sources;
}

/** Turns what zod says into what a person is told: what was expected, what was found, and what was probably meant. */
export function explain(issue: Issue, context: Context, base: Path = []): Draft[] {
  const path = [...base, ...(issue.path as (string | number)[])];
  const { schema, value } = lookUp(context.schema, context.document, path);
  if (value === UNRESOLVED) return []; // told where the reference stands
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => unknownKey(key, path, schema, value));
  if (issue.code === 'invalid_key') {
    const expected = words(issue.issues[0]?.message);
    const name = String(path.at(-1));
    return [
      {
        code: 'bad-name',
        path,
        at: 'key',
        message: `${expected}, found ${JSON.stringify(name)}`,
        expected: bareWords(expected),
        found: JSON.stringify(name),
      },
    ];
  }
  if (value === undefined) return misspelt(path, context) ?? missing(issue, path, context);
  if (issue.code === 'invalid_union') return union(issue, path, schema, value, context);
  return [badValue(expectation(issue, schema), path, context, hintFor(issue, schema, value))];
}

function unknownKey(key: string, path: Path, schema: Schema | undefined, value: unknown): Draft {
  const known = schema ? keysOf(chosen(schema, value)) : [];
  const unused = known.filter((name) => !isMap(value) || !Object.hasOwn(value, name));
  const engine = at(value, 'engine');
  const where =
    path[0] === 'backends' && path.length === 2 && typeof engine === 'string'
      ? ` of a backend with engine ${engine}`
      : '';
  const shown = shownKey(key, path);
  const message = `unknown key ${JSON.stringify(shown)}${where}`;
  const draft: Draft = { code: 'unknown-key', path: [...path, key], at: 'key', message, found: shown };
  const like = nearest(key, unused) ?? nearest(key, known);
  if (key === '<<')
    return { ...draft, hint: 'YAML 1.2 has no merge keys; an alias stands for a whole value' };
  draft.expected = like ?? known.join(', ');
  return { ...draft, hint: like ? `did you mean "${like}"?` : `known here: ${known.join(', ')}` };
}

function keysOf(schema: Schema): string[] {
  return Object.keys(definition(schema).shape ?? {});
}

/** The key of a map that was probably meant by one that is missing. */
export function strayFor(key: string, map: unknown): string | undefined {
  return isMap(map) ? Object.keys(map).find((stray) => nearest(stray, [key]) === key) : undefined;
}

/** The key that says of which kind a map is, misspelt: no other key of the map can be judged without it. */
function misspelt(path: Path, { schema: whole, document }: Context): Draft[] | undefined {
  const key = String(path.at(-1));
  const above = path.slice(0, -1);
  const { schema, value } = lookUp(whole, document, above);
  if (!schema || definition(bare(schema)).discriminator !== key) return undefined;
  const stray = strayFor(key, value);
  if (stray === undefined) return undefined;
  const message = `unknown key ${JSON.stringify(stray)}`;
  const hint = `did you mean "${key}"?`;
  return [
    { code: 'unknown-key', path: [...above, stray], at: 'key', message, expected: key, found: stray, hint },
  ];
}

/** A key that must be there; told at the map that lacks it, unless it is there misspelt and told as unknown. */
function missing(issue: Issue, path: Path, { schema: whole, document }: Context): Draft[] {
  const key = String(path.at(-1));
  const { schema: holder, value } = lookUp(whole, document, path.slice(0, -1));
  const known = holder ? keysOf(chosen(holder, value)) : [];
  const strays = isMap(value) ? Object.keys(value).filter((name) => !known.includes(name)) : [];
  if (strays.some((stray) => nearest(stray, known) === key)) return [];
  const { schema } = lookUp(whole, document, path);
  const expected = bareWords(expectation(issue, schema));
  const message = `"${key}" is missing: expected ${expected}`;
  const hint = schema && marked(schema, 'description');
  return [{ code: 'missing-key', path, at: 'key', message, expected, found: 'nothing', hint }];
}

function badValue(
  expected: string,
  path: Path,
  { schema, document, sources }: Context,
  hint?: string,
): Draft {
  const found = sources.shown(schema, document, path);
  return {
    code: 'bad-value',
    path,
    at: 'value',
    message: `${expected}, found ${found}`,
    expected: bareWords(expected),
    found,
    hint,
  };
}

function union(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  path: Path,
  schema: Schema | undefined,
  value: unknown,
  context: Context,
): Draft[] {
  if (issue.errors.length === 0) return [wrongKind(issue, path, value, context)];
  const options = (schema && definition(bare(schema)).options) ?? [];
  const option = meant(options, undefined, value);
  if (option) return issue.errors[options.indexOf(option)]!.flatMap((inner) => explain(inner, context, path));
  const own = issue.message.startsWith('expected') ? issue.message : undefined;
  // Of several readings the one whose type fits says best what is wrong.
  const fitting = issue.errors.filter(
    (inner) => !inner.some(({ code, path }) => code === 'invalid_type' && path.length === 0),
  );
  if (!own && fitting.length === 1) return fitting[0]!.flatMap((inner) => explain(inner, context, path));
  const keys = options.flatMap((each) => keysOf(bare(each)));
  const literals = options.flatMap((each) => definition(bare(each)).values ?? []).map(String);
  const like = isMap(value)
    ? Object.keys(value)
        .map((key) => nearest(key, keys))
        .find((key) => key !== undefined)
    : nearest(String(value), literals);
  const expected = own ?? 'expected another kind of value';
  const draft = badValue(expected, path, context, like && `did you mean "${like}"?`);
  if (isMap(value) && Object.keys(value).length > 0) {
    const keys = Object.keys(value).map((key) => shownKey(key, path));
    draft.found = `a map with ${keys.join(', ')}`;
    draft.message = `${expected}, found ${draft.found}`;
  }
  return [draft];
}

/** The member that says which of several kinds is meant has a value that none of them has. */
function wrongKind(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  path: Path,
  value: unknown,
  context: Context,
): Draft {
  const { options } = issue as { options?: unknown[] };
  const like = typeof value === 'string' ? nearest(value, (options ?? []).map(String)) : undefined;
  return badValue(issue.message, path, context, like && `did you mean "${like}"?`);
}

function hintFor(issue: Issue, schema: Schema | undefined, value: unknown): string | undefined {
  if (value === null) return 'a key without a value stands for nothing: give it one, or leave the key out';
  if (issue.code === 'invalid_value') {
    const like = nearest(String(value), issue.values.map(String));
    return like && `did you mean "${like}"?`;
  }
  const unit = schema && nearestUnit(marked(schema, 'title'), value);
  if (unit && unit !== value) return `did you mean ${unit}?`;
  if (issue.code === 'invalid_type' && issue.expected === 'array')
    return 'a list is written [a, b], or with one "- " on each line';
  const keys = issue.code === 'invalid_type' && schema ? keysOf(bare(schema)) : [];
  return keys.length > 0 ? `known here: ${keys.join(', ')}` : undefined;
}

const TYPES: Record<string, string> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

/** `expected ...`, from the schema's own words where it has some. */
export function expectation(issue: Issue, schema?: Schema): string {
  const said = issue.message;
  if (said.startsWith('expected')) return said;
  if (issue.code === 'invalid_type') return `expected ${TYPES[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `expected ${list(issue.values.map(String))}`;
  if (issue.code === 'too_small')
    return bound('at least', Number(issue.minimum), issue.origin, issue.inclusive);
  if (issue.code === 'too_big') return bound('at most', Number(issue.maximum), issue.origin, issue.inclusive);
  const type = schema && definition(bare(schema)).type;
  return `expected ${(type && TYPES[type]) ?? 'another value'}`;
}

function bound(words: string, figure: number, origin: string, inclusive = true): string {
  if (origin === 'array') return `expected ${words} ${figure} items`;
  if (origin === 'string')
    return figure === 1 ? 'expected a text that is not empty' : `expected ${words} ${figure} characters`;
  if (!inclusive) return `expected a number ${words === 'at least' ? 'above' : 'below'} ${figure}`;
  return `expected a number of ${words} ${figure}`;
}

function list(items: string[]): string {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`;
}

const words = (message: string | undefined): string =>
  message?.startsWith('expected') ? message : 'expected another name';
const bareWords = (expected: string): string => expected.replace(/^expected /, '');
