import { parse, tokenize } from '@huggingface/jinja';

/** A Jinja template's free names: what it takes from outside; or why it is no template. */
export type TemplateNames = { names: string[] } | { cause: string };

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
  try {
    const free = new Set<string>();
    collect(parse(tokenize(template)), new Set(), free);
    return { names: [...free].filter((name) => !BUILT_IN.has(name)) };
  } catch (error) {
    return { cause: String((error as Error).message).split('\n')[0]! };
  }
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
function collect(node: unknown, bound: Set<string>, free: Set<string>): void {
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
  if (type === 'Identifier') {
    if (!bound.has(String(members['value']))) free.add(String(members['value']));
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
