import type { Tensor } from '../../../protocols/oip/tensors.ts';

/** An answer as comparisons read it. */
export type ReadAnswer =
  | { kind: 'texts'; choices: readonly Choice[] }
  | { kind: 'vectors'; vectors: readonly (readonly number[])[] }
  | { kind: 'tensors'; tensors: readonly Tensor[] };

export interface Choice {
  text: string;
  toolCalls: readonly ToolCall[];
}

export interface ToolCall {
  name: string;
  /** What its arguments say, read as JSON; their text where they are none. */
  given: unknown;
}

/** Both answers to one request, of one kind. */
export interface ReadPair<Kind extends ReadAnswer['kind'] = ReadAnswer['kind']> {
  caller: Extract<ReadAnswer, { kind: Kind }>;
  copy: Extract<ReadAnswer, { kind: Kind }>;
}

/** How much worse the copy's answer is, from -1 to 1; undefined where such answers cannot be compared so. */
export type Difference = number | undefined;
