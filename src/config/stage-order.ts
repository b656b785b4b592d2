import type { PipelineSettings } from './schema/index.ts';

/** What the stages of a pipeline are to one another, and what each gives. */

type Stages = PipelineSettings['stages'];
type Stage = Stages[string];

/** What can be read of a stage that has ended. */
export const stageMembers = ['text', 'class', 'score', 'vectors', 'items', 'json'] as const;
export type StageMember = (typeof stageMembers)[number];

export type StageSort = NonNullable<Stage['kind']> | 'first' | 'merge' | 'rank';

/** What a stage does; of several, the first that is said. */
export function sortOf(stage: Stage): StageSort {
  if (stage.first) return 'first';
  if (stage.merge) return 'merge';
  if (stage.rank) return 'rank';
  return stage.kind ?? (stage.tensors ? 'tensors' : 'chat');
}

/** Whether it asks nobody. */
export function isPure(stage: Stage): boolean {
  return stage.first !== undefined || stage.merge !== undefined || stage.rank !== undefined;
}

/** The stages that a stage comes after, directly or through others. */
export function allBefore(name: string, stages: Stages): Set<string> {
  const found = new Set<string>();
  const waiting = [...(stages[name]?.after ?? [])];
  for (let before = waiting.pop(); before !== undefined; before = waiting.pop()) {
    if (found.has(before) || !Object.hasOwn(stages, before)) continue;
    found.add(before);
    waiting.push(...(stages[before]?.after ?? []));
  }
  return found;
}

/** What a stage may give, as far as its settings tell. */
export function membersOf(name: string, stages: Stages): Set<StageMember> {
  const found = new Set<StageMember>();
  for (const leaf of leavesOf(name, stages)) {
    for (const member of membersOfLeaf(stages[leaf]!)) found.add(member);
  }
  return found;
}

/** The stage itself; of a `first` those that it may choose, through others of its kind as well. */
function leavesOf(name: string, stages: Stages): string[] {
  const seen = new Set([name]);
  const leaves: string[] = [];
  for (const each of seen) {
    const { first } = stages[each]!;
    if (!first) leaves.push(each);
    for (const other of first ?? []) if (Object.hasOwn(stages, other)) seen.add(other);
  }
  return leaves;
}

function membersOfLeaf(stage: Stage): Set<StageMember> {
  const sort = sortOf(stage);
  if (sort === 'merge' || sort === 'rank') return new Set(['text', 'score', 'items']);
  const own = ownMembers(stage, sort);
  if (stage.each === undefined) return own;
  // The class and the score are each item's own.
  return new Set(['text', 'items', ...(own.has('vectors') ? (['vectors'] as const) : [])]);
}

function ownMembers(stage: Stage, sort: StageSort): Set<StageMember> {
  if (sort === 'tensors') {
    const found = new Set<StageMember>(['text', 'score', 'vectors', 'json']);
    if (stage.labels) found.add('class');
    // Without labels its output may be several texts.
    const texts = Object.values(stage.tensors ?? {}).some((tensor) => 'texts' in tensor);
    if (texts || !stage.labels) found.add('items');
    return found;
  }
  if (sort === 'embeddings') {
    const found = new Set<StageMember>(['vectors']);
    if (stage.classes) for (const member of ['text', 'class', 'score'] as const) found.add(member);
    if (stage.inputs !== undefined || Array.isArray(stage.input)) found.add('items');
    return found;
  }
  return new Set(['text', 'json', ...(stage.classes ? (['class'] as const) : [])]);
}
