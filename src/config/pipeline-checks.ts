import { formatDuration } from '../kernel/units.ts';
import type { Findings } from './checks.ts';
import { nearest } from './nearest.ts';
import { formatPath, type Path } from './places.ts';
import type { PipelineSettings, Settings } from './schema/index.ts';
import { templateNames } from './templates.ts';

type Stages = PipelineSettings['stages'];
type Stage = Stages[string];

/** Checks that every pipeline can run: its routes, the order of its stages, its templates, its budgets. */
export function checkPipelines({ pipelines }: Settings, findings: Findings): void {
  for (const [name, pipeline] of Object.entries(pipelines)) {
    const path = ['pipelines', name, 'stages'];
    for (const [stageName, stage] of Object.entries(pipeline.stages)) {
      checkStage(stageName, stage, pipeline.stages, [...path, stageName], findings);
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
      checkTemplates(stageName, stage, pipeline.stages, [...path, stageName], findings);
    }
  }
}

function checkStage(name: string, stage: Stage, stages: Stages, path: Path, findings: Findings): void {
  const others = Object.keys(stages).filter((other) => other !== name);
  for (const [index, before] of stage.after.entries()) {
    if (before === name) continue; // told as a circle
    findings.known(before, others, 'stage', [...path, 'after', index]);
  }
  const faulty = ['input', 'messages'].some((key) => findings.leftOut.has(formatPath([...path, key])));
  if (!faulty && (stage.input === undefined) === (stage.messages === undefined)) {
    const message =
      stage.input === undefined
        ? 'a stage needs input or messages'
        : 'a stage has either input or messages, not both';
    findings.fault('contradiction', path, message, { at: 'key', expected: 'input or messages' });
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
  if (last.length === 1) return;
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

/** A template may name the request, and stages that its own comes after, directly or through others. */
function checkTemplates(name: string, stage: Stage, stages: Stages, path: Path, findings: Findings): void {
  const earlier = allBefore(name, stages);
  for (const { template, where } of templatesOf(stage, path)) {
    const read = templateNames(template);
    if ('cause' in read) {
      const hint = 'a template is Jinja: {{ request.text }} or {{ STAGE }}';
      findings.fault('bad-value', where, `the template cannot be read: ${read.cause}`, {
        expected: 'a Jinja template',
        hint,
      });
      continue;
    }
    for (const used of read.names) {
      if (used === 'request' || earlier.has(used)) continue;
      if (Object.hasOwn(stages, used)) {
        const message =
          used === name
            ? `the template of stage "${name}" names the stage itself`
            : `the template names stage "${used}", which stage "${name}" does not come after`;
        const hint = used === name ? undefined : `add ${used} to \`after\` of ${name}`;
        findings.fault('unknown-name', where, message, {
          expected: ['request', ...earlier].join(', '),
          found: used,
          hint,
        });
        continue;
      }
      const like = nearest(used, ['request', ...Object.keys(stages)]);
      const hint = like ? `did you mean "${like}"?` : `known here: ${['request', ...earlier].join(', ')}`;
      findings.fault(
        'unknown-name',
        where,
        `the template names "${used}", which is no stage of this pipeline`,
        {
          expected: like ?? ['request', ...earlier].join(', '),
          found: used,
          hint,
        },
      );
    }
  }
}

function allBefore(name: string, stages: Stages): Set<string> {
  const found = new Set<string>();
  const waiting = [...(stages[name]?.after ?? [])];
  for (let before = waiting.pop(); before !== undefined; before = waiting.pop()) {
    if (found.has(before) || !Object.hasOwn(stages, before)) continue;
    found.add(before);
    waiting.push(...(stages[before]?.after ?? []));
  }
  return found;
}

function templatesOf(stage: Stage, path: Path): { template: string; where: Path }[] {
  const found: { template: string; where: Path }[] = [];
  if (stage.input !== undefined) found.push({ template: stage.input, where: [...path, 'input'] });
  for (const [index, { content }] of (stage.messages ?? []).entries()) {
    const where = [...path, 'messages', index, 'content'];
    if (typeof content === 'string') {
      found.push({ template: content, where });
      continue;
    }
    for (const [part, { text }] of (content as { text?: unknown }[]).entries()) {
      if (typeof text === 'string') found.push({ template: text, where: [...where, part, 'text'] });
    }
  }
  return found;
}
