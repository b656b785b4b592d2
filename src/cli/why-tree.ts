import type { Why, WhyOrigin, WhyStep } from '../events/why.ts';

/** Draws the chain of causes as a tree that a person reads at 3 a.m. */

const COLOURS = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33' } as const;
type Colour = keyof typeof COLOURS;
type Paint = (colour: Colour, text: string) => string;

/** A request or an event, with the decisions that were taken within it, newest first. */
interface Node {
  id: string | undefined;
  step: WhyStep;
  decisions: WhyStep[];
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
  const decisions: WhyStep[] = [];
  for (const step of steps) {
    const { event, request } = step.figures as { event?: string; request?: string };
    if (isDecision(step)) {
      decisions.push(step);
      continue;
    }
    const node = { id: event ?? request, step, decisions: [] };
    nodes.push(node);
    if (node.id !== undefined) byId.set(node.id, node);
  }
  // Decisions name their request, save those of the one that was asked for, which comes first.
  for (const step of decisions) {
    const owner = byId.get(step.figures.request as string) ?? nodes[0];
    owner?.decisions.push(step);
  }
  return nodes;
}

const DECISIONS = new Set(['identify', 'parse', 'admit', 'wait', 'plan', 'attempt', 'rung', 'answer']);

function isDecision(step: WhyStep): boolean {
  return DECISIONS.has(step.what) && step.figures.event === undefined;
}

class Drawing {
  readonly #nodes: readonly Node[];
  readonly #paint: Paint;
  readonly #drawn = new Set<Node>();

  constructor(nodes: readonly Node[], paint: Paint) {
    this.#nodes = nodes;
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
    for (const decision of node.decisions) {
      lines.push(`${inner}${this.#line(decision, colourOf(decision))}`);
      if (decision.origin) lines.push(`${inner}${' '.repeat(23)}${this.#origin(decision.origin)}`);
    }
    causes.forEach((cause, at) => {
      const last = at === causes.length - 1;
      lines.push(...this.tree(cause, `${rest}${last ? '└─ ' : '├─ '}`, `${rest}${last ? '   ' : '│  '}`));
    });
    return lines;
  }

  #causesOf(node: Node): Node[] {
    const ids = new Set([node.step, ...node.decisions].flatMap((step) => step.causes));
    return this.#nodes.filter((other) => other !== node && other.id !== undefined && ids.has(other.id));
  }

  #line(step: WhyStep, colour: Colour): string {
    const at = this.#paint('dim', step.at.slice(11, 23));
    return `${at}  ${step.what.padEnd(8)}  ${this.#paint(colour, step.reason)}`;
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
  if (what === 'attempt') return 'red';
  return code.startsWith('breaker-') || what === 'rung' ? 'yellow' : 'green';
}

function dayOf(at: string): string {
  return `${at.slice(0, 10)} UTC`;
}
