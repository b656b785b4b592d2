import type { Node, Source } from './sources.ts';

/** The rules of the house that a machine can hold. Each gives a line for every place that breaks it. */

export const FILE_LINES_MAX = 400;
export const FUNCTION_LINES_MAX = 70;

/** What may be longer, each with its reason: `path`, or `path#function`. */
export const LONG: Record<string, string> = {};

const BAGS = /(^|[-/.])(utils?|helpers?|common|managers?|shared|misc)([-/.]|$)/;

export function badName(path: string): string | undefined {
  const named = path
    .split('/')
    .at(-1)!
    .replace(/\.((test|config|build|schema|d)\.)?[a-z]+$/, '');
  if (BAGS.test(path)) return `${path}: say what it holds, not that it helps`;
  if (named === 'tokenizer_config') return undefined; // makers of tokenizers call it so
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(named)) return `${path}: file names are kebab-case`;
  return undefined;
}

/** Where time and chance are read or a timer is set; only the kernel may. */
export function ambient({ path, text, nodes, lineAt }: Source): string[] {
  if (!path.startsWith('src/') || path.startsWith('src/kernel/') || path.endsWith('.test.ts')) return [];
  const found = nodes.filter((node) => {
    if (node.type === 'MemberExpression') {
      return /^(Date\.now|Math\.random|performance\.now|process\.(hrtime|uptime))$/.test(
        text.slice(node.start, node.end),
      );
    }
    if (node.type === 'CallExpression') {
      return /^(globalThis\.)?(setTimeout|setInterval)\(/.test(text.slice(node.start, node.end));
    }
    if (node.type === 'NewExpression') return /^new Date\(\s*\)$/.test(text.slice(node.start, node.end));
    return (
      node.type === 'ImportDeclaration' &&
      /['"](node:)?timers(\/promises)?['"]/.test(text.slice(node.start, node.end))
    );
  });
  return found.map(
    ({ start, end }) =>
      `${path}:${lineAt(start)}: ${text.slice(start, end).split('\n')[0]}: take a Clock, Random or Timers`,
  );
}

/** Errors that vanish: a catch whose block neither does anything nor says why nothing is to be done. */
export function emptyCatches({ path, nodes, comments, lineAt }: Source): string[] {
  return nodes
    .filter((node): node is Node & { body: Node & { body: Node[] } } => node.type === 'CatchClause')
    .filter(({ body }) => body.body.length === 0)
    .filter(({ body }) => !comments.some(({ start, end }) => start > body.start && end < body.end))
    .map(({ start }) => `${path}:${lineAt(start)}: a caught error vanishes here`);
}

export function unfinished({ path, comments }: Source): string[] {
  return comments
    .filter(({ text }) => /\b(TODO|FIXME|XXX|HACK)\b/.test(text))
    .map(({ line, text }) => `${path}:${line}: ${text.trim()}`);
}

export function longFile({ path, text }: Source): string[] {
  const lines = text.split('\n').length - 1;
  if (lines <= FILE_LINES_MAX || Object.hasOwn(LONG, path)) return [];
  return [`${path}: ${lines} lines; at most ${FILE_LINES_MAX}`];
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

/** Functions of tests are lists of cases and may be long. */
export function longFunctions({ path, text, nodes, lineAt }: Source): string[] {
  if (path.endsWith('.test.ts')) return [];
  return nodes
    .filter(({ type }) => FUNCTIONS.has(type))
    .map((node) => ({
      name: nameOf(node, nodes, text),
      lines: lineAt(node.end) - lineAt(node.start) + 1,
      ...node,
    }))
    .filter(({ lines, name }) => lines > FUNCTION_LINES_MAX && !Object.hasOwn(LONG, `${path}#${name}`))
    .map(
      ({ name, lines, start }) =>
        `${path}:${lineAt(start)}: ${name} has ${lines} lines; at most ${FUNCTION_LINES_MAX}`,
    );
}

/** Its own name, or that of the variable, property or method that holds it. */
function nameOf(node: Node, nodes: Node[], text: string): string {
  const own = (node as Node & { id?: Node | null }).id;
  if (own) return text.slice(own.start, own.end);
  const holder = nodes.find(
    (other): other is Node & { key?: Node; id?: Node } =>
      (other as Node & { value?: unknown; init?: unknown }).value === node ||
      (other as { init?: unknown }).init === node,
  );
  const name = holder?.key ?? holder?.id;
  return name ? text.slice(name.start, name.end) : 'a function';
}
