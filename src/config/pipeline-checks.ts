import { formatDuration } from '../kernel/units.ts';
import type { Findings } from './checks.ts';
import { formatPath, type Path } from './places.ts';
import type { PipelineSettings, Settings } from './schema/index.ts';
import { madeOf } from './schema/pipelines.ts';
import { checkMadeOf, checkRoutes, checkShape } from './stage-checks.ts';
import { membersOf } from './stage-order.ts';
import { checkTemplates, RESERVED } from './template-checks.ts';

type Stages = PipelineSettings['stages'];
type Stage = Stages[string];

/** Checks that every pipeline can run: its routes, the order of its stages, its templates, its budgets. */
export function checkPipelines(settings: Settings, findings: Findings): void {
  for (const [name, pipeline] of Object.entries(settings.pipelines)) {
    const path = ['pipelines', name, 'stages'];
    for (const [stageName, stage] of Object.entries(pipeline.stages)) {
      const where = [...path, stageName];
      checkNames(stageName, stage, pipeline.stages, where, findings);
      checkShape(stage, where, findings);
      checkRoutes(stage, settings, where, findings);
    }
    const circle = findCircle(pipeline.stages);
    if (circle) {
      const message = `the stages wait for one another in a circle: ${circle.join(' after ')}`;
      findings.fault('contradiction', [...path, circle[0]!, 'after'], message);
      continue;
    }
    checkEnd(name, pipeline.stages, path, findings);
    if (!findings.leftOut.has(formatPath(['pipelines', name, 'deadline'])))
      checkBudgets(pipeline, path, findings);
    for (const [stageName, stage] of Object.entries(pipeline.stages)) {
      checkMadeOf(stage, pipeline.stages, [...path, stageName], findings);
      checkTemplates(stageName, stage, pipeline.stages, [...path, stageName], findings);
    }
  }
}

function checkNames(name: string, stage: Stage, stages: Stages, path: Path, findings: Findings): void {
  if (RESERVED.includes(name)) {
    const message = `no stage may be called "${name}": templates mean something else by it`;
    findings.fault('contradiction', path, message, { at: 'key', hint: `not one of ${RESERVED.join(', ')}` });
  }
  const others = Object.keys(stages).filter((other) => other !== name);
  const known = (before: string, where: Path) => {
    if (before !== name) findings.known(before, others, 'stage', where); // itself: told as a circle
  };
  const { first, merge, rank } = stage;
  const made = madeOf(stage);
  for (const [index, before] of stage.after.entries()) {
    if (!made.includes(before)) known(before, [...path, 'after', index]);
  }
  for (const [index, before] of (first ?? []).entries()) known(before, [...path, 'first', index]);
  for (const [index, before] of (merge?.of ?? []).entries()) known(before, [...path, 'merge', 'of', index]);
  if (rank) {
    known(rank.query, [...path, 'rank', 'query']);
    known(rank.of, [...path, 'rank', 'of']);
  }
  for (const [input, tensor] of Object.entries(stage.tensors ?? {})) {
    if ('vectors' in tensor) known(tensor.vectors, [...path, 'tensors', input, 'vectors']);
  }
}

/** One circle of stages, its first stage again at the end; undefined where there is none. */
function findCircle(stages: Stages): string[] | undefined {
  const done = new Set<string>();
  const walk = (name: string, way: string[]): string[] | undefined => {
    const start = way.indexOf(name);
    if (start >= 0) return [...way.slice(start), name];
    if (done.has(name) || !Object.hasOwn(stages, name)) return undefined;
    for (const before of stages[name]!.after) {
      const circle = walk(before, [...way, name]);
      if (circle) return circle;
    }
    done.add(name);
    return undefined;
  };
  for (const name of Object.keys(stages)) {
    const circle = walk(name, []);
    if (circle) return circle;
  }
  return undefined;
}

/** The answer is that of the one stage that no other comes after. */
function checkEnd(pipeline: string, stages: Stages, path: Path, findings: Findings): void {
  const before = new Set(Object.values(stages).flatMap((stage) => stage.after));
  const last = Object.keys(stages).filter((name) => !before.has(name));
  if (last.length === 1) {
    tellEnd(last[0]!, stages, path, findings);
    return;
  }
  const message =
    last.length === 0
      ? `pipeline "${pipeline}" has no stage`
      : `pipeline "${pipeline}" has ${last.length} last stages: ${last.join(', ')}; the answer must be that of one`;
  findings.fault('contradiction', path, message, {
    at: 'key',
    expected: 'one stage that no other comes after',
    found: last.length === 0 ? 'none' : last.join(', '),
    hint: last.length === 0 ? undefined : 'name the others under `after` of the last one',
  });
}

/** Says aloud what callers may not expect of the last stage. */
function tellEnd(last: string, stages: Stages, path: Path, findings: Findings): void {
  const note = (message: string) =>
    findings.notices.push({ code: 'looks-wrong', path: [...path, last], message });
  if (!membersOf(last, stages).has('text')) {
    note('the last stage gives vectors and no text: the pipeline answers on /v1/embeddings alone');
  }
  if (stages[last]!.when !== undefined) {
    note('where the condition of the last stage does not hold, the answer is empty: see `first`');
  }
}

function checkBudgets({ deadline, stages }: PipelineSettings, path: Path, findings: Findings): void {
  const budgetOf = (name: string): number => {
    const budget = stages[name]?.budget;
    return typeof budget === 'number' ? budget : 0;
  };
  let oneTooLarge = false;
  for (const name of Object.keys(stages)) {
    if (budgetOf(name) <= deadline) continue;
    oneTooLarge = true;
    const message = `a budget of ${formatDuration(budgetOf(name))} is above the pipeline's deadline of ${formatDuration(deadline)}`;
    findings.fault('contradiction', [...path, name, 'budget'], message, {
      expected: `at most ${formatDuration(deadline)}`,
      found: formatDuration(budgetOf(name)),
    });
  }
  if (oneTooLarge) return;
  const chain = longest(stages, budgetOf);
  const sum = chain.reduce((total, name) => total + budgetOf(name), 0);
  if (sum <= deadline) return;
  const figures = chain.map((name) => `${name} ${formatDuration(budgetOf(name))}`).join(' + ');
  const message = `stages in a row have budgets of ${formatDuration(sum)} together (${figures}), above the deadline of ${formatDuration(deadline)}`;
  findings.fault('contradiction', path, message, {
    at: 'key',
    expected: `at most ${formatDuration(deadline)}`,
    found: formatDuration(sum),
  });
}

/** The stages in a row whose budgets are the most together, those without one left out. No circle may be in them. */
function longest(stages: Stages, budgetOf: (name: string) => number): string[] {
  const best = new Map<string, { sum: number; chain: string[] }>();
  const upTo = (name: string): { sum: number; chain: string[] } => {
    const known = best.get(name);
    if (known) return known;
    let before: { sum: number; chain: string[] } = { sum: 0, chain: [] };
    for (const other of stages[name]?.after ?? []) {
      const way = upTo(other);
      if (way.sum > before.sum) before = way;
    }
    const budget = budgetOf(name);
    const own = { sum: before.sum + budget, chain: budget > 0 ? [...before.chain, name] : before.chain };
    best.set(name, own);
    return own;
  };
  let most: { sum: number; chain: string[] } = { sum: 0, chain: [] };
  for (const name of Object.keys(stages)) {
    const way = upTo(name);
    if (way.sum > most.sum) most = way;
  }
  return most.chain;
}
