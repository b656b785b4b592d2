import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';

/** What a template's names stand for. */
export interface TemplateScope {
  /** A free name: plain data; undefined where nothing has that name. */
  get(name: string): unknown;
}

/** Chat templates are read so: a tag that stands alone on its line leaves nothing of the line behind. */
const WHITESPACE = { trim_blocks: true, lstrip_blocks: true };
/** Elements that a template's `range` has at most. */
const RANGE_MAX = 10_000;

type Program = ReturnType<typeof parse>;
/** A node of the parser's tree, of any kind. */
type Node = { type: string } & Record<string, unknown>;

/** A text, or what is to be inserted: a name and members of it. */
type Part = string | readonly string[];

/**
 * A template, parsed once. What is inserted is inserted as it is: never escaped, never trimmed, never read as a template. Most
 * templates only insert texts, and are filled in without the interpreter.
 */
export class Template {
  readonly #parts: readonly Part[] | undefined;
  readonly #program: Program;
  readonly #uses: readonly (readonly string[])[];

  /** Throws where the text is no template. */
  constructor(text: string) {
    this.#program = parse(tokenize(text, WHITESPACE));
    this.#parts = partsOf(this.#program);
    this.#uses = usesOf(this.#program);
  }

  /** Throws where it cannot be filled in. */
  render(scope: TemplateScope): string {
    if (this.#parts) {
      let text = '';
      let at = 0;
      for (; at < this.#parts.length; at++) {
        const part = this.#parts[at]!;
        const value = typeof part === 'string' ? part : plain(scope, part);
        if (value === undefined) break;
        text += value;
      }
      if (at === this.#parts.length) return text;
    }
    const environment = environmentOf(scope, this.#uses);
    return new Interpreter(environment).run(this.#program).toString();
  }
}

/** What every template may call besides what it is given. There is no clock, and nothing that leads out of the template. */
const GLOBALS = new Environment();
for (const [name, value] of [
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
  ['range', range],
] as const) {
  GLOBALS.set(name, value);
}

function range(from: number, to?: number, step = 1): number[] {
  const [start, end] = to === undefined ? [0, from] : [from, to];
  if (step === 0) throw new Error('range() must not have a step of zero');
  const length = Math.max(0, Math.ceil((end - start) / step));
  if (!(length <= RANGE_MAX)) throw new Error(`range() gives at most ${RANGE_MAX} numbers`);
  return Array.from({ length }, (_, i) => start + i * step);
}

/**
 * The names that a template or an expression uses, as the interpreter wants them. `uses`: see `usesOf`; what is not among them is
 * not there, so that nothing large is converted for nothing.
 */
export function environmentOf(scope: TemplateScope, uses: readonly (readonly string[])[]): Environment {
  const environment = new Environment(GLOBALS);
  const picked: Record<string, unknown> = {};
  for (const [root, member] of uses) {
    const value = scope.get(root!);
    if (member === undefined || !isObject(value)) {
      picked[root!] = value;
      continue;
    }
    const some = (picked[root!] ??= Object.create(null)) as Record<string, unknown>;
    some[member] = Object.hasOwn(value, member) ? value[member] : undefined;
  }
  for (const name in picked) if (picked[name] !== undefined) environment.set(name, picked[name]);
  return environment;
}

/**
 * The names that a program reads, each with the one member that is read of it, where it is always a member whose name stands in
 * the program. A name without a member comes first, as all of it is wanted then.
 */
export function usesOf(program: unknown): string[][] {
  const whole = new Set<string>();
  const members = new Map<string, Set<string>>();
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const each of node) walk(each);
      return;
    }
    if (node instanceof Map) {
      walk([...node.entries()]);
      return;
    }
    if (!isNode(node)) return;
    const way = wayOf(node);
    if (way && way.length > 1) {
      const found = members.get(way[0]!) ?? new Set();
      members.set(way[0]!, found.add(way[1]!));
      return;
    }
    if (node.type === 'Identifier') whole.add(String(node['value']));
    else for (const value of Object.values(node)) walk(value);
  };
  walk(program);
  const uses = [...whole].map((name) => [name]);
  for (const [name, found] of members) {
    if (!whole.has(name)) for (const member of found) uses.push([name, member]);
  }
  return uses;
}

/** The parts of a template that does nothing but insert; undefined for any other. */
function partsOf(program: unknown): Part[] | undefined {
  const parts: Part[] = [];
  for (const node of (program as { body: Node[] }).body) {
    if (node.type === 'Comment') continue;
    const part = node.type === 'StringLiteral' ? String(node['value']) : wayOf(node);
    if (part === undefined) return undefined;
    parts.push(part);
  }
  return parts;
}

/** `request.text` -> request, text; undefined for what is no name, or is reached by a computed member. */
function wayOf(node: Node): string[] | undefined {
  if (node.type === 'Identifier') return [String(node['value'])];
  if (node.type !== 'MemberExpression' || node['computed']) return undefined;
  const way = wayOf(node['object'] as Node);
  const property = node['property'] as Node;
  return way && property.type === 'Identifier' ? [...way, String(property['value'])] : undefined;
}

/** The text at the end of a way through plain data; undefined where there is something else, which Jinja has to judge. */
function plain(scope: TemplateScope, way: readonly string[]): string | undefined {
  let value = scope.get(way[0]!);
  for (let i = 1; i < way.length; i++) {
    if (!isObject(value) || !Object.hasOwn(value, way[i]!)) return undefined;
    value = value[way[i]!];
  }
  return typeof value === 'string' ? value : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}
