import { readFileSync } from 'node:fs';
import { hasNoEffectYet } from '../src/config/later.ts';
import { settingsSchema } from '../src/config/schema/index.ts';
import { bare, definition, marked, type Schema } from '../src/config/shape.ts';

/** docs/configuration.md: every key of the configuration file, from the schema that checks it. */

/** An example with every key in it; a test loads it. */
export const EVERY_KEY = new URL('every-key.yaml', import.meta.url);

/** One key: where it stands (`*` for a name or a list position) and what is said of it. */
export interface Row {
  pattern: string[];
  type: string;
  /** As it would be written; undefined where there is none. */
  fallback: string | undefined;
  required: boolean;
  /** One of several keys of which one stands. */
  choice: boolean;
  meaning: string;
}

/** Every key below a schema. Maps of names and lists count as one key, and what is in them as keys of their own. */
export function rowsOf(schema: Schema, pattern: string[] = [], choice = false): Row[] {
  const { type, shape, valueType, element, options } = definition(bare(schema));
  if (type === 'object' && shape) {
    return Object.entries(shape).flatMap(([key, value]) => [
      rowOf(value, [...pattern, key], choice),
      ...rowsOf(value, [...pattern, key]),
    ]);
  }
  if (type === 'record' && valueType) return rowsOf(valueType, [...pattern, '*']);
  if (type === 'array' && element) return rowsOf(element, [...pattern, '*']);
  if (type !== 'union' || !options) return [];
  const kinds = options.filter((option) => definition(bare(option)).type === 'object');
  return options.flatMap((option) => rowsOf(option, pattern, kinds.length > 1));
}

function rowOf(schema: Schema, pattern: string[], choice: boolean): Row {
  const meaning = marked(schema, 'description') ?? '';
  return {
    pattern,
    type: typeOf(schema),
    fallback: fallbackOf(schema),
    required: !isOptional(schema),
    choice,
    meaning: hasNoEffectYet(pattern) ? `${meaning} *No effect yet.*` : meaning,
  };
}

function wrappers(schema: Schema): Schema[] {
  const found = [schema];
  for (let inner = schema; ; ) {
    const def = definition(inner);
    const next = def.type === 'pipe' ? def.in : def.innerType;
    if (!next) return found;
    found.push((inner = next));
  }
}

const isOptional = (schema: Schema): boolean =>
  wrappers(schema).some((each) => ['optional', 'default', 'prefault'].includes(definition(each).type));

function fallbackOf(schema: Schema): string | undefined {
  for (const each of wrappers(schema)) {
    const { type, defaultValue } = definition(each);
    if (type !== 'default' && type !== 'prefault') continue;
    if (typeof defaultValue === 'object' && !Array.isArray(defaultValue)) return undefined; // its keys say it
    return typeof defaultValue === 'string' ? defaultValue : JSON.stringify(defaultValue);
  }
  return undefined;
}

const KINDS: Record<string, string> = { string: 'text', boolean: 'true or false', unknown: 'anything' };

function typeOf(schema: Schema): string {
  const title = marked(schema, 'title');
  if (title) return title;
  const inner = bare(schema);
  const { type, values, options, element, valueType } = definition(inner);
  if (type === 'literal') return (values ?? []).map((value) => `\`${String(value)}\``).join(', ');
  if (type === 'number') return numberOf(inner);
  if (type === 'array' && element) return `list of ${plural(typeOf(element))}`;
  if (type === 'record' && valueType) return 'map by name';
  if (type === 'object') return 'map';
  if (type === 'union' && options) return [...new Set(options.map(typeOf))].join(' or ');
  return KINDS[type] ?? type;
}

const plural = (type: string): string => (/^(map|text|name|URL)$/.test(type) ? `${type}s` : type);

/** Bounds as zod keeps them for a number. */
interface Bounds {
  minValue: number;
  maxValue: number;
  isInt: boolean;
  _zod: { def: { checks?: readonly { _zod: { def: { check: string; inclusive?: boolean } } }[] } };
}

function numberOf(schema: Schema): string {
  const { minValue, maxValue, isInt, _zod } = schema as unknown as Bounds;
  const kind = isInt ? 'whole number' : 'number';
  const above = _zod.def.checks?.some(({ _zod: { def } }) => def.check === 'greater_than' && !def.inclusive);
  if (above) return `${kind} above ${minValue}`;
  if (minValue <= Number.MIN_SAFE_INTEGER) return kind;
  return maxValue >= Number.MAX_SAFE_INTEGER
    ? `${kind}, ${minValue} or more`
    : `${kind}, ${minValue} to ${maxValue}`;
}

/** `['backends', '*', 'endpoints', '*']` -> `endpoints[]`, below the section and the name in it. */
function shown(pattern: readonly string[], from: number, lists: ReadonlySet<string>): string {
  let text = '';
  for (let index = from; index < pattern.length; index++) {
    const list = lists.has(pattern.slice(0, index).join('.'));
    if (pattern[index] === '*' && list) text += '[]';
    else text += (text === '' ? '' : '.') + (pattern[index] === '*' ? 'NAME' : pattern[index]);
  }
  return text;
}

/** A table of rows whose first `from` segments are said above it. */
function table(rows: readonly Row[], from: number): string {
  const lists = new Set(
    rows.filter(({ type }) => type.includes('list of')).map(({ pattern }) => pattern.join('.')),
  );
  const lines = rows.map(({ pattern, type, fallback, required, choice, meaning }) => {
    const standard =
      fallback !== undefined ? `\`${fallback}\`` : required ? (choice ? 'one of these' : 'required') : '';
    return `| \`${shown(pattern, from, lists)}\` | ${type} | ${standard} | ${meaning.replaceAll('|', '\\|')} |`;
  });
  return ['| key | type | default | meaning |', '| --- | --- | --- | --- |', ...lines].join('\n');
}

/** The part of the example that begins with a section's name, up to the next. */
function exampleOf(section: string): string {
  const text = readFileSync(EVERY_KEY, 'utf8');
  const part = text.split(/^(?=[a-z])/m).find((each) => each.startsWith(`${section}:`));
  if (part === undefined) throw new Error(`every-key.yaml has no ${section}`);
  return `\`\`\`yaml\n${part.trimEnd()}\n\`\`\``;
}

function sectionOf(name: string, schema: Schema): string {
  const effect = hasNoEffectYet([name, '*']) ? ' *No effect yet.*' : '';
  const head = `## ${name}\n\n${marked(schema, 'description') ?? ''}${effect}\n\n${exampleOf(name)}`;
  const { type, valueType } = definition(bare(schema));
  if (name === 'backends') return `${head}\n\n${backendTables(valueType!)}`;
  const rows = rowsOf(schema, [name]);
  if (rows.length === 0) return head;
  return type === 'record'
    ? `${head}\n\nBelow \`${name}.NAME\`:\n\n${table(rows, 2)}`
    : `${head}\n\n${table(rows, 1)}`;
}

/** Backends of one kind share their keys: one table for each kind. */
function backendTables(schema: Schema): string {
  const kinds = new Map<string, { engines: string[]; rows: Row[] }>();
  for (const option of definition(bare(schema)).options ?? []) {
    const all = rowsOf(option, ['backends', '*']);
    const rows = all.filter(({ pattern }) => pattern.at(-1) !== 'engine');
    const { values = [] } = definition(definition(bare(option)).shape!['engine']!);
    const engines = values.map((engine) => `\`${String(engine)}\``);
    const key = JSON.stringify(rows.map(({ pattern }) => pattern));
    const kind = kinds.get(key);
    if (kind) kind.engines.push(...engines);
    else kinds.set(key, { engines, rows });
  }
  return [...kinds.values()]
    .map(
      ({ engines, rows }) =>
        `Below \`backends.NAME\` with \`engine\` ${engines.join(', ')}:\n\n${table(rows, 2)}`,
    )
    .join('\n\n');
}

export function configurationPage(): string {
  const sections = Object.entries(definition(settingsSchema).shape ?? {});
  return `# Configuration

This page is made from \`src/config/schema\` by \`npm run docs\`; change it there. Editors complete and check the file with
[armature.schema.json](armature.schema.json), named in its first line:

\`\`\`yaml
# yaml-language-server: $schema=./node_modules/armature/docs/armature.schema.json
\`\`\`

\`armature.yaml\` is YAML 1.2; JSON is YAML too. \`armature check\` tells every fault at once, with file, line, column, what was
expected and what was probably meant; nothing that is wrong is passed over, and no key is unknown in silence. \`armature
up\` refuses a faulty file with exit code 2. SIGHUP reads the file again: a good one takes effect whole, of a faulty one
nothing does. A part that is started again while the file is faulty goes on with what was accepted last.
SIGHUP also reads certificates and keys again, which may have been renewed at the same path; where a listener's pair cannot
be used, the one before it stays.

**Values.** A duration is written \`450ms\`, \`2s\`, \`5min\` (or \`5m\`), \`24h\`, \`30d\`; a size \`512KiB\`, \`8MiB\`, \`2GiB\` (or \`KB\`,
\`MB\`, \`GB\` of thousands); a rate \`200/s\`, \`2000000/min\`, \`10/h\`, \`10/d\`; an address \`HOST:PORT\`; a hash \`sha256:\` and 64
hexadecimal digits. Names are letters, digits and \`. _ : / @ -\`. Paths of files are taken from the folder of the file they
stand in.

**References.** Any value may hold \`\${env:NAME}\` and \`\${file:PATH}\`; a file's last line break is dropped. What is missing is a
fault. A plain \`\${\` is written \`$\${\`. Inside \`{ }\` and \`[ ]\` such a text needs quotes. What came through a reference is never
shown; neither is any secret.

**Several files.** \`include\` names further files, by path or by pattern, relative to the file it stands in. Sections are
merged by key; a key that two files set is a fault that names both places.

**Live changes.** \`PUT /api/v1/config\` on the admin listener takes a part of a configuration, YAML or JSON:

\`\`\`yaml
routes: { chat: { deadline: 3s } }
\`\`\`

Maps are merged by key, everything else is replaced; lists are replaced whole. \`null\` takes back what was changed live at its
place and below. The result is checked whole, and one fault refuses all of it. What was changed so survives restarts and
shows who did it; the file stays what is meant: where it is edited at the same place later, the file is right, and the
live change is refused aloud. No secret can be given so, and only references that the files use already. \`gateway.listen\`,
\`admin.listen\`, their \`tls\` and \`coordination.url\` take effect with the next start, and the answer says so; \`store.url\` can be
changed in the file only. \`armature check\` tells what was changed live.

${sections.map(([name, schema]) => sectionOf(name, schema)).join('\n\n')}
`;
}

/** Keys without a meaning: a test holds that there are none. */
export function undescribed(): string[] {
  return rowsOf(settingsSchema)
    .filter(({ meaning }) => meaning === '')
    .map(({ pattern }) => pattern.join('.'));
}
