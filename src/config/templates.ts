import { Environment, parse, tokenize } from '@huggingface/jinja';
import { nearest } from './nearest.ts';

/** What a template takes from outside. */
export interface TemplateReads {
  /** Its free names. */
  names: string[];
  /** Members of free names that it reads, such as `stages`, `intent`, `class`; as far as they stand written in it. */
  members: string[][];
}

/** The same; or why it is no template. */
export type TemplateNames = TemplateReads | { cause: string };

/** Names that a template has from Jinja itself. */
const BUILT_IN = new Set([
  'range',
  'dict',
  'namespace',
  'loop',
  'true',
  'false',
  'none',
  'True',
  'False',
  'None',
]);

/** Reads a template without running it. */
export function templateNames(template: string): TemplateNames {
  return readsOf(template, () => undefined);
}

/** Reads a single expression, such as `stages.intent.score > 0.5`. */
export function expressionNames(expression: string): TemplateNames {
  return readsOf(`{{ ${expression} }}`, ({ body }) =>
    body.length === 1 && !NO_EXPRESSION.has(body[0]!.type)
      ? undefined
      : 'expected one expression, without {{ }} around it',
  );
}

const NO_EXPRESSION = new Set(['Comment', 'For', 'If', 'Macro', 'Set']);

function readsOf(
  template: string,
  wrong: (program: { body: { type: string }[] }) => string | undefined,
): TemplateNames {
  try {
    const program = parse(tokenize(template));
    const cause = wrong(program) ?? unknownWord(program);
    if (cause !== undefined) return { cause };
    const free: Free = { names: new Set(), members: [] };
    collect(program, new Set(), free);
    const members = free.members.filter(([name]) => !BUILT_IN.has(name!));
    return { names: [...free.names].filter((name) => !BUILT_IN.has(name)), members };
  } catch (error) {
    // The parser runs over the end where a block is not closed.
    if (error instanceof TypeError) return { cause: 'it ends within a block: an {% end... %} is missing' };
    return { cause: String((error as Error).message).split('\n')[0]! };
  }
}

/** Filters that there are, for at least one type of value. */
export const FILTERS: readonly string[] = [
  'abs',
  'bool',
  'capitalize',
  'default',
  'dictsort',
  'first',
  'float',
  'get',
  'indent',
  'int',
  'items',
  'join',
  'keys',
  'last',
  'length',
  'list',
  'lower',
  'map',
  'rejectattr',
  'replace',
  'reverse',
  'safe',
  'selectattr',
  'sort',
  'string',
  'title',
  'tojson',
  'trim',
  'unique',
  'upper',
  'values',
];
const TESTS: readonly string[] = [...new Environment().tests.keys()];

/** A filter or a test that there is not; undefined where there is none. */
function unknownWord(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  const { type, filter, test } = node as { type?: unknown; filter?: Node; test?: Node };
  if ((type === 'FilterExpression' || type === 'FilterStatement') && filter) {
    const named = filter.type === 'CallExpression' ? (filter['callee'] as Node) : filter;
    const cause = unknown('filter', named, FILTERS);
    if (cause !== undefined) return cause;
  }
  if (type === 'TestExpression' && test) {
    const cause = unknown('test', test, TESTS);
    if (cause !== undefined) return cause;
  }
  const parts = node instanceof Map ? [...node.entries()] : Object.values(node);
  for (const part of parts) {
    const cause = unknownWord(part);
    if (cause !== undefined) return cause;
  }
  return undefined;
}

function unknown(what: string, { value }: Node, known: readonly string[]): string | undefined {
  const name = String(value);
  if (known.includes(name)) return undefined;
  const like = nearest(name, known);
  return `there is no ${what} "${name}"${like ? `, did you mean "${like}"?` : ''}`;
}

interface Free {
  names: Set<string>;
  members: string[][];
}

/** A node of the parser's tree, of any kind. */
type Node = { type: string } & Record<string, unknown>;

/** Members that hold a name which is no variable: filters, tests, members of an object, names of arguments. */
const NO_VARIABLE: Record<string, readonly string[]> = {
  FilterExpression: ['filter'],
  FilterStatement: ['filter'],
  TestExpression: ['test'],
  KeywordArgumentExpression: ['key'],
};

/** Adds the names that a node reads and that neither it nor a node around it has set. */
function collect(node: unknown, bound: Set<string>, free: Free): void {
  if (Array.isArray(node)) {
    for (const item of node) collect(item, bound, free);
    return;
  }
  if (node instanceof Map) {
    collect([...node.entries()], bound, free);
    return;
  }
  if (typeof node !== 'object' || node === null || !('type' in node)) return;
  const { type, ...members } = node as Node;
  const chain = chainOf(node as Node);
  if (chain) {
    if (bound.has(chain[0]!)) return;
    free.names.add(chain[0]!);
    if (!free.members.some((known) => known.join('\0') === chain.join('\0'))) free.members.push(chain);
    return;
  }
  // What is set stays set for the rest of the template: a name is called free only where it surely is.
  for (const name of boundBy(type, members)) bound.add(name);
  for (const [member, value] of Object.entries(members)) {
    if (member === 'operator') continue; // a word such as `and`
    if (type === 'MemberExpression' && member === 'property' && !members['computed']) continue;
    if (NO_VARIABLE[type]?.includes(member)) collect(argumentsOf(value), bound, free);
    else collect(value, bound, free);
  }
}

/** `a.b["c"]` as its parts; undefined where a part is not written out. */
function chainOf({ type, ...members }: Node): string[] | undefined {
  if (type === 'Identifier') return [String(members['value'])];
  if (type !== 'MemberExpression') return undefined;
  const property = members['property'] as Node;
  const known = members['computed'] ? property.type === 'StringLiteral' : property.type === 'Identifier';
  const before = known ? chainOf(members['object'] as Node) : undefined;
  return before && [...before, String(property['value'])];
}

/** Of `filter(a, b)` the arguments; of a plain name nothing. */
function argumentsOf(value: unknown): unknown {
  return (value as Node).type === 'CallExpression' ? (value as Node)['args'] : [];
}

function boundBy(type: string, members: Record<string, unknown>): string[] {
  if (type === 'For') return identifiers(members['loopvar']);
  if (type === 'Set') return identifiers(members['assignee']);
  if (type === 'Macro') return [...identifiers(members['name']), ...identifiers(members['args'])];
  return [];
}

function identifiers(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(identifiers);
  const { type, value, key } = node as Node;
  if (type === 'Identifier') return [String(value)];
  if (type === 'KeywordArgumentExpression') return identifiers(key);
  return type === 'TupleLiteral' ? identifiers(value) : [];
}
