import type { StageKind, StageSettings } from './contracts.ts';
import { chat, completions } from './text.ts';

const KINDS: Readonly<Record<string, StageKind>> = { chat, completions };

export function kindOf(_stage: StageSettings): StageKind {
  return KINDS['chat']!;
}
