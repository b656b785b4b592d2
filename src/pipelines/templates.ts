import { Environment, parse, tokenize } from '@huggingface/jinja';
import { isObject } from '../protocols/json-object.ts';
import { BoundedInterpreter } from './interpreter.ts';

/** What a template's names stand for. */
export interface TemplateScope {
  /** A free name: plain data; undefined where nothing has that name. */
  get(name: string): unknown;
}

/** A text that has members besides: `item` is its text, `item.id` its id. */
export class TextWithMembers {
  readonly text: string;
  readonly members: Readonly<Record<string, unknown>>;

  constructor(text: string, members: Readonly<Record<string, unknown>>) {
    this.text = text;
    this.members = members;
  }
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
  readonly #uses: Readonly<Record<string, Wanted>>;

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
    return new BoundedInterpreter(environment).run(this.#program).toString();
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

/** What is read of a name: all of it, or members of it by name. */
export type Wanted = true | { [member: string]: Wanted };

/** How far a way into a name is followed: `stages.intent.class`. */
const WAY_MAX = 3;

/**
 * The names that a template or an expression uses, as the interpreter wants them. What is not wanted is not there, so that
 * nothing large is converted for nothing.
 */
export function environmentOf(scope: TemplateScope, uses: Readonly<Record<string, Wanted>>): Environment {
  const environment = new Environment(GLOBALS);
  for (const name in uses) {
    const wanted = uses[name]!;
    const value = scope.get(name);
    if (value instanceof TextWithMembers) setText(environment, name, value, wanted);
    else if (value !== undefined) environment.set(name, picked(value, wanted));
  }
  return environment;
}

/** The interpreter looks for members of a text among what texts can do: those of its own come before. */
function setText(
  environment: Environment,
  name: string,
  { text, members }: TextWithMembers,
  wanted: Wanted,
): void {
  const { builtins } = environment.set(name, text);
  const own = picked(members, wanted) as Record<string, unknown>;
  for (const member of Object.keys(own)) {
    (builtins as Map<string, unknown>).set(member, new Environment().set(member, own[member]));
  }
}

function picked(value: unknown, wanted: Wanted): unknown {
  if (wanted === true || !isObject(value)) return value;
  const some = Object.create(null) as Record<string, unknown>;
  for (const member in wanted) {
    if (Object.hasOwn(value, member)) some[member] = picked(value[member], wanted[member]!);
  }
  return some;
}

/** The names that a program reads, and what of them, as far as that stands written in the program. */
export function usesOf(program: unknown): Record<string, Wanted> {
  const uses = Object.create(null) as Record<string, Wanted>;
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
    if (way) want(uses, way.slice(0, WAY_MAX));
    else for (const value of Object.values(node)) walk(value);
  };
  walk(program);
  return uses;
}

function want(uses: Record<string, Wanted>, way: readonly string[]): void {
  let at = uses;
  for (const [depth, name] of way.entries()) {
    const known = at[name];
    if (known === true) return;
    if (depth === way.length - 1) {
      at[name] = true;
      return;
    }
    at = at[name] = known ?? (Object.create(null) as Record<string, Wanted>);
  }
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

/** `request.text`, `stages["intent"].text` -> the names in a row; undefined for what is no name, or is reached by a member that is computed. */
function wayOf(node: Node): string[] | undefined {
  if (node.type === 'Identifier') return [String(node['value'])];
  if (node.type !== 'MemberExpression') return undefined;
  const property = node['property'] as Node;
  if (property.type !== (node['computed'] ? 'StringLiteral' : 'Identifier')) return undefined;
  const way = wayOf(node['object'] as Node);
  return way && [...way, String(property['value'])];
}

/** The text at the end of a way through plain data; undefined where there is something else, which Jinja has to judge. */
function plain(scope: TemplateScope, way: readonly string[]): string | undefined {
  let value = scope.get(way[0]!);
  if (value instanceof TextWithMembers) value = way.length === 1 ? value.text : value.members;
  for (let i = 1; i < way.length; i++) {
    if (!isObject(value) || !Object.hasOwn(value, way[i]!)) return undefined;
    value = value[way[i]!];
  }
  return typeof value === 'string' ? value : undefined;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value;
}
