import type { Template } from '@huggingface/jinja';

/**
 * Templates are written for Python, whose texts know other white space than JavaScript's, and whose `strip` takes the characters
 * that it is to strip. Calls of these methods, and the filter `trim`, are made calls of functions that do as Python does.
 */

/** What `str.isspace` holds for. Source: Python's documentation, and Unicode's White_Space and bidirectional classes. */
const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const LEADING = new RegExp(`^[${SPACE}]+`);
const TRAILING = new RegExp(`[${SPACE}]+$`);

/** Names that no template has, by method. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  strip: ' strip',
  lstrip: ' lstrip',
  rstrip: ' rstrip',
};

/** To be given to the template beside what it is rendered with. */
export const TEXT_FUNCTIONS: Readonly<Record<string, unknown>> = {
  ' strip': (text: unknown, characters?: unknown) => stripped(text, characters, true, true),
  ' lstrip': (text: unknown, characters?: unknown) => stripped(text, characters, true, false),
  ' rstrip': (text: unknown, characters?: unknown) => stripped(text, characters, false, true),
};

function stripped(text: unknown, characters: unknown, left: boolean, right: boolean): string {
  if (typeof text !== 'string') throw new Error('only a text can be stripped');
  if (typeof characters !== 'string') {
    const begun = left ? text.replace(LEADING, '') : text;
    return right ? endStripped(begun) : begun;
  }
  const all = [...text];
  const set = new Set(characters);
  let from = 0;
  let to = all.length;
  while (left && from < to && set.has(all[from]!)) from++;
  while (right && to > from && set.has(all[to - 1]!)) to--;
  return all.slice(from, to).join('');
}

/** From the end: the expression alone would look at every run of spaces in the text, again from each of them. */
function endStripped(text: string): string {
  let end = text.length;
  while (end > 0 && TRAILING.test(text[end - 1]!)) end--;
  return text.slice(0, end);
}

interface Node {
  type: string;
  [member: string]: unknown;
}

/** Rewrites a template that has been read. */
export function likePython(template: Template): void {
  template.parsed = rewritten(template.parsed) as typeof template.parsed;
}

function rewritten(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rewritten);
  if (value instanceof Map) return new Map([...value].map(([key, of]) => [rewritten(key), rewritten(of)]));
  if (typeof value !== 'object' || value === null) return value;
  const node = value as Node;
  for (const key of Object.keys(node)) node[key] = rewritten(node[key]);
  return methodCall(node) ?? trimFilter(node) ?? node;
}

/** `text.lstrip('x')` */
function methodCall(node: Node): Node | undefined {
  const callee = node.callee as Node | undefined;
  if (node.type !== 'CallExpression' || callee?.type !== 'MemberExpression' || callee.computed)
    return undefined;
  const name = FUNCTIONS[(callee.property as { value: string }).value];
  return name === undefined ? undefined : call(name, [callee.object, ...(node.args as unknown[])]);
}

/** `text | trim` */
function trimFilter(node: Node): Node | undefined {
  const filter = node.filter as Node | undefined;
  if (node.type !== 'FilterExpression' || filter === undefined) return undefined;
  if (filter.type === 'Identifier' && filter.value === 'trim') return call(FUNCTIONS.strip!, [node.operand]);
  if (filter.type === 'CallExpression' && (filter.callee as { value?: unknown }).value === 'trim') {
    return call(FUNCTIONS.strip!, [node.operand, ...(filter.args as unknown[])]);
  }
  return undefined;
}

function call(name: string, args: unknown[]): Node {
  return { type: 'CallExpression', callee: { type: 'Identifier', value: name }, args };
}
