import { sortOf } from '../../config/stage-order.ts';
import type { StageKind, StageSettings } from './contracts.ts';
import { embeddings } from './embeddings.ts';
import { tensors } from './tensors.ts';
import { chat, completions } from './text.ts';

const KINDS = { chat, completions, embeddings, tensors };

/** What a stage asks its route; undefined where it asks nobody. */
export function kindOf(stage: StageSettings): StageKind | undefined {
  const sort = sortOf(stage);
  return sort === 'first' || sort === 'merge' || sort === 'rank' ? undefined : KINDS[sort];
}
