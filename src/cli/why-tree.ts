import type { Why, WhyOrigin, WhyStep } from '../events/why.ts';

/** Draws the chain of causes as a tree that a person reads at 3 a.m. */

const COLOURS = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33' } as const;
type Colour = keyof typeof COLOURS;
type Paint = (colour: Colour, text: string) => string;

/** A request or an event, with what it is made of (decisions, changed values), newest first. */
interface Node {
  id: string | undefined;
  step: WhyStep;
  parts: WhyStep[];
}

export function drawWhy(why: Why, colour: boolean): string {
  const paint: Paint = (name, text) => (colour ? `\u001b[${COLOURS[name]}m${text}\u001b[0m` : text);
  const nodes = nodesOf(why.steps);
  const drawing = new Drawing(nodes, paint);
  const [root] = nodes;
  const lines = [`${paint('bold', why.subject)}${root ? `  ${paint('dim', dayOf(root.step.at))}` : ''}`];
  // What nothing above follows from begins a tree of its own.
  for (const node of nodes) if (!drawing.drawn(node)) lines.push(...drawing.tree(node, '', ''));
  return lines.join('\n');
}

function nodesOf(steps: readonly WhyStep[]): Node[] {
  const nodes: Node[] = [];
  const byId = new Map<string, Node>();
  const parts: WhyStep[] = [];
  for (const step of steps) {
    const { event, request } = step.figures as { event?: string; request?: string };
    if (isPart(step)) {
      parts.push(step);
      continue;
    }
    const node = { id: event ?? request, step, parts: [] };
    nodes.push(node);
    if (node.id !== undefined) byId.set(node.id, node);
  }
  // Decisions name their request, save those of the one that was asked for, which comes first.
  for (const step of parts) {
    const { request, change, reasonOf } = step.figures as Record<string, string | undefined>;
    const owner = byId.get(change ?? reasonOf ?? request ?? '') ?? nodes[0];
    owner?.parts.push(step);
  }
  return nodes;
}

const DECISIONS = new Set([
  'identify',
  'parse',
  'admit',
  'wait',
  'plan',
  'attempt',
  'rung',
  'stage',
  'answer',
]);

/** What became of a stage that gave no answer. */
const STOOD_IN = new Set(['stage-skipped', 'stage-stood-in', 'stage-rerouted']);

/** Whether a step is a decision of a request, a value of a change or a reason: a part of something that has a step of its own. */
function isPart({ what, figures }: WhyStep): boolean {
  if (figures.reasonOf !== undefined) return true;
  if (figures.event !== undefined) return false; // whatever else it tells, such as which `change` drift has found
  return figures.change !== undefined || DECISIONS.has(what);
}

class Drawing {
  readonly #nodes: readonly Node[];
  readonly #paint: Paint;
  readonly #drawn = new Set<Node>();
  /** Of the column that says what a line is about. */
  readonly #width: number;

  constructor(nodes: readonly Node[], paint: Paint) {
    this.#nodes = nodes;
    this.#width = Math.max(
      0,
      ...nodes.flatMap(({ step, parts }) => [step, ...parts].map(({ what }) => what.length)),
    );
    this.#paint = paint;
  }

  drawn(node: Node): boolean {
    return this.#drawn.has(node);
  }

  /** `first` goes before the node's own line, `rest` before everything below it. */
  tree(node: Node, first: string, rest: string): string[] {
    const again = this.#drawn.has(node);
    this.#drawn.add(node);
    const id = node.id === undefined ? '' : `  ${this.#paint('dim', node.id)}`;
    const head = first + this.#line(node.step, 'bold');
    if (again) return [`${head}${id}  ${this.#paint('dim', '(told above)')}`];
    const causes = this.#causesOf(node);
    const inner = `${rest}${causes.length > 0 ? '│' : ' '}  `;
    const lines = [`${head}${id}`];
    if (node.step.origin) lines.push(`${inner}${this.#origin(node.step.origin)}`);
    for (const part of node.parts) {
      lines.push(`${inner}${this.#line(part, colourOf(part))}`);
      if (part.origin) lines.push(`${inner}${' '.repeat(16 + this.#width)}${this.#origin(part.origin)}`);
    }
    causes.forEach((cause, at) => {
      const last = at === causes.length - 1;
      lines.push(...this.tree(cause, `${rest}${last ? '└─ ' : '├─ '}`, `${rest}${last ? '   ' : '│  '}`));
    });
    return lines;
  }

  #causesOf(node: Node): Node[] {
    const ids = new Set([node.step, ...node.parts].flatMap((step) => step.causes));
    return this.#nodes.filter((other) => other !== node && other.id !== undefined && ids.has(other.id));
  }

  #line(step: WhyStep, colour: Colour): string {
    const at = this.#paint('dim', step.at.slice(11, 23));
    return `${at}  ${step.what.padEnd(this.#width)}  ${this.#paint(colour, step.reason)}`;
  }

  #origin({ path, file, line, commit, author, date, actor, release }: WhyOrigin): string {
    const place = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}`;
    const who = release ?? actor;
    const git = commit === undefined ? '' : `commit ${commit.slice(0, 12)}`;
    const told = [
      place,
      who === undefined ? '' : `set by ${who}`,
      git,
      author ?? '',
      date?.slice(0, 10) ?? '',
    ];
    return this.#paint('dim', `${path}: ${told.filter((part) => part !== '').join(', ')}`);
  }
}

function colourOf({ what, code }: WhyStep): Colour {
  if (what === 'attempt' || code === 'stage-failed') return 'red';
  const isDetour = code.startsWith('breaker-') || what === 'rung' || STOOD_IN.has(code);
  return isDetour ? 'yellow' : 'green';
}

function dayOf(at: string): string {
  return `${at.slice(0, 10)} UTC`;
}
