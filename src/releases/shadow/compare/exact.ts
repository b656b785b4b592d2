import { isDeepStrictEqual } from 'node:util';
import type { Difference, ReadAnswer, ReadPair } from './contracts.ts';

/** 0 where both answers say the same, 1 where they do not. `ignoresSpace`: any run of white space is as good as one space. */
export function exact({ caller, copy }: ReadPair, ignoresSpace: boolean): Difference {
  return isDeepStrictEqual(said(caller, ignoresSpace), said(copy, ignoresSpace)) ? 0 : 1;
}

function said(answer: ReadAnswer, ignoresSpace: boolean): unknown {
  if (answer.kind === 'vectors') return answer.vectors;
  if (answer.kind === 'tensors')
    return answer.tensors.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return answer.choices.map(({ text, toolCalls }) => ({
    text: ignoresSpace ? text.replace(/\s+/g, ' ').trim() : text,
    toolCalls,
  }));
}
