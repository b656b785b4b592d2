import type { Findings } from './checks.ts';
import { nearest } from './nearest.ts';
import type { Path } from './places.ts';
import type { PipelineSettings } from './schema/index.ts';
import { allBefore, membersOf, type StageMember, stageMembers } from './stage-order.ts';
import { expressionNames, type TemplateNames, templateNames } from './templates.ts';

type Stages = PipelineSettings['stages'];
type Stage = Stages[string];

/** Names that a template has besides stages: no stage may be called so. */
export const RESERVED = ['request', 'session', 'stages', 'item', 'loop', 'namespace'];

/** What can be read of the request and of its session. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  request: ['text', 'messages', 'body', 'model', 'tenant', 'stream'],
  session: ['id'],
};

/** A template may name the request, and stages that its own comes after, directly or through others. */
export function checkTemplates(
  name: string,
  stage: Stage,
  stages: Stages,
  path: Path,
  findings: Findings,
): void {
  const before = allBefore(name, stages);
  for (const { read, where, what, inEach, list } of templatesOf(stage, path)) {
    if ('cause' in read) {
      const hint =
        what === 'template'
          ? 'a template is Jinja: {{ request.text }} or {{ STAGE }}'
          : 'an expression is Jinja without braces: stages.intent.class == "weather"';
      findings.fault('bad-value', where, `the ${what} cannot be read: ${read.cause}`, {
        expected: `a Jinja ${what}`,
        hint,
      });
      continue;
    }
    const known = ['request', 'session', 'stages', ...(inEach ? ['item'] : [])];
    const check = new NameCheck(name, stages, before, known, what, where, findings);
    for (const used of read.names) check.name(used);
    for (const chain of read.members) check.member(chain);
    if (list !== undefined) check.list(list);
  }
}

interface Read {
  read: TemplateNames;
  where: Path;
  what: 'template' | 'expression';
  /** It is filled in for each item. */
  inEach: boolean;
  /** The expression, where it has to give a list. */
  list?: string;
}

function templatesOf(stage: Stage, path: Path): Read[] {
  const found: Read[] = [];
  const each = stage.each !== undefined;
  const template = (text: unknown, where: Path) => {
    if (typeof text === 'string')
      found.push({ read: templateNames(text), where, what: 'template', inEach: each });
  };
  const expression = (list: string | undefined, where: Path, inEach: boolean) => {
    if (list !== undefined)
      found.push({ read: expressionNames(list), where, what: 'expression', inEach, list });
  };
  if (stage.when !== undefined) {
    const where = [...path, 'when'];
    found.push({ read: expressionNames(stage.when), where, what: 'expression', inEach: false });
  }
  expression(stage.each, [...path, 'each'], false);
  expression(stage.inputs, [...path, 'inputs'], each);
  if (Array.isArray(stage.input))
    for (const [i, text] of stage.input.entries()) template(text, [...path, 'input', i]);
  else template(stage.input, [...path, 'input']);
  for (const [index, { content }] of (stage.messages ?? []).entries()) {
    const where = [...path, 'messages', index, 'content'];
    if (typeof content === 'string') template(content, where);
    else {
      for (const [part, value] of content.entries()) {
        template((value as { text?: unknown } | null)?.text, [...where, part, 'text']);
      }
    }
  }
  for (const [input, tensor] of Object.entries(stage.tensors ?? {})) {
    const where = [...path, 'tensors', input];
    if ('texts' in tensor) expression(tensor.texts, [...where, 'texts'], each);
    else if ('data' in tensor && Array.isArray(tensor.data)) {
      for (const [i, value] of tensor.data.entries()) template(value, [...where, 'data', i]);
    } else if ('data' in tensor) template(tensor.data, [...where, 'data']);
  }
  return found;
}

/** Checks the names in one template or expression. */
class NameCheck {
  readonly #stage: string;
  readonly #stages: Stages;
  readonly #before: ReadonlySet<string>;
  readonly #known: readonly string[];
  readonly #what: string;
  readonly #where: Path;
  readonly #findings: Findings;

  constructor(
    stage: string,
    stages: Stages,
    before: ReadonlySet<string>,
    known: readonly string[],
    what: string,
    where: Path,
    findings: Findings,
  ) {
    this.#stage = stage;
    this.#stages = stages;
    this.#before = before;
    this.#known = known;
    this.#what = what;
    this.#where = where;
    this.#findings = findings;
  }

  name(used: string): void {
    if (this.#known.includes(used)) return;
    if (used === 'item') {
      this.#unknown(`the ${this.#what} names "item", which there is only with \`each\``, used, undefined);
      return;
    }
    this.#stageName(used);
  }

  /** `stages.intent.class`, `request.text`, `intent.class`, and the like. */
  member([root, ...rest]: readonly string[]): void {
    const [first, second] = rest;
    if (root === 'stages') {
      if (first !== undefined && this.#stageName(first)) this.#stageMember(first, second);
    } else if (MEMBERS[root!] && first !== undefined) {
      const names = MEMBERS[root!]!;
      if (names.includes(first)) return;
      const like = nearest(first, names);
      const hint = like ? `did you mean "${root}.${like}"?` : `there are: ${names.join(', ')}`;
      this.#unknown(`there is no ${root}.${first}`, first, hint, like ?? names.join(', '));
    } else if (this.#before.has(root!)) {
      if (first !== undefined && (stageMembers as readonly string[]).includes(first)) {
        const hint = `write stages.${root}.${first}`;
        this.#unknown(`"${root}" is the text of the stage, and has no "${first}"`, first, hint);
      } else this.#stageMember(root!, 'text');
    }
  }

  /** The expression has to give a list, which a whole stage does that has one, and its text does not. */
  list(expression: string): void {
    const text = expression.trim();
    if (this.#before.has(text)) {
      const hint = `write stages.${text}.items, or ${text}.split("\\n") for its lines`;
      this.#unknown(`"${text}" is the text of the stage, and a list is expected`, text, hint);
    }
    const whole = /^stages\.(\w+)$/.exec(text)?.[1];
    if (whole !== undefined && this.#before.has(whole)) this.#stageMember(whole, 'items');
  }

  /** Whether it is a stage that has ended before this one begins; where not, that is told. */
  #stageName(used: string): boolean {
    if (this.#before.has(used)) return true;
    if (Object.hasOwn(this.#stages, used)) {
      const own = used === this.#stage;
      const message = own
        ? `the ${this.#what} of stage "${used}" names the stage itself`
        : `the ${this.#what} names stage "${used}", which stage "${this.#stage}" does not come after`;
      this.#unknown(message, used, own ? undefined : `add ${used} to \`after\` of ${this.#stage}`);
      return false;
    }
    const like = nearest(used, ['request', 'session', ...Object.keys(this.#stages)]);
    const known = ['request', ...this.#before].join(', ');
    const hint = like ? `did you mean "${like}"?` : `known here: ${known}`;
    this.#unknown(
      `the ${this.#what} names "${used}", which is no stage of this pipeline`,
      used,
      hint,
      like ?? known,
    );
    return false;
  }

  #stageMember(name: string, member: string | undefined): void {
    if (member === undefined) return;
    const has = membersOf(name, this.#stages);
    if (has.has(member as StageMember)) return;
    const some = [...has].join(', ');
    if ((stageMembers as readonly string[]).includes(member)) {
      const hint = HINTS[member] ?? `it has: ${some}`;
      this.#unknown(`stage "${name}" gives no ${member}: it has ${some}`, member, hint, some);
      return;
    }
    const like = nearest(member, stageMembers);
    const hint = like ? `did you mean "stages.${name}.${like}"?` : `it has: ${some}`;
    this.#unknown(`there is no stages.${name}.${member}`, member, hint, like ?? some);
  }

  #unknown(message: string, found: string, hint: string | undefined, expected?: string): void {
    this.#findings.fault('unknown-name', this.#where, message, {
      expected: expected ?? [...this.#known, ...this.#before].join(', '),
      found,
      ...(hint === undefined ? {} : { hint }),
    });
  }
}

const HINTS: Readonly<Record<string, string>> = {
  class: 'give the stage `classes`, or `labels` where it is of tensors',
  vectors: 'vectors come of a stage of kind embeddings',
  items: 'items come of stages with each, inputs, texts, merge or rank',
};
