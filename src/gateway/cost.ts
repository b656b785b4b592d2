import type { Call } from './call.ts';

/** What a request takes of an engine, in tokens; a call for tensors counts as one token of answer. */
export interface Cost {
  /** Of the prompt: reckoned from the bytes before it is sent. */
  tokensIn: number;
  /** Of the answer, all its choices together: the most it may have, or what answers of the route usually have. */
  tokensOut: number;
}

/** Bytes of a JSON body for one token of the prompt; English text has 4 to 5, other languages fewer. */
const BYTES_PER_TOKEN = 4;
/** Tokens of an answer of which nothing is known yet. */
const OUTPUT_TOKENS_UNKNOWN = 256;
/** As many choices as OpenAI allows: what is only asked for, and refused by the engine, is not to count without end. */
const CHOICES_MAX = 128;

/**
 * Reckons a request's cost before it is sent. `usualOut`: what answers of the route have had lately for each choice,
 * undefined where none has come yet. An answer is expected to be as long as usual, and no longer than the caller allows.
 */
export function reckonCost(call: Call, bodyBytes: number, usualOut: number | undefined): Cost {
  if (call.protocol === 'oip') return { tokensIn: 0, tokensOut: 1 };
  const tokensIn = Math.ceil(bodyBytes / BYTES_PER_TOKEN);
  if (call.kind === 'embeddings') return { tokensIn, tokensOut: 0 };
  const usual = usualOut ?? OUTPUT_TOKENS_UNKNOWN;
  const { outputTokensMax, choices } = call.request;
  return { tokensIn, tokensOut: Math.min(usual, outputTokensMax ?? usual) * Math.min(choices, CHOICES_MAX) };
}

/** What its time at an engine is compared with: like calls, and streams with streams. */
export function serviceKind({ protocol, kind, stream }: Call): string {
  if (protocol === 'oip') return 'tensors';
  return stream ? STREAMED[kind] : kind;
}

const STREAMED = {
  chat: 'chat-stream',
  completions: 'completions-stream',
  embeddings: 'embeddings',
} as const;

/**
 * Tokens that the time to what its deadline is about hangs on: of a stream and of embeddings the prompt's, of other answers
 * the most that they may have, or usually do; choices are made side by side.
 */
export function serviceSize(call: Call, cost: Cost): number {
  if (call.protocol === 'oip') return 1;
  if (call.stream || call.kind === 'embeddings') return cost.tokensIn;
  return call.request.outputTokensMax ?? cost.tokensOut / Math.min(call.request.choices, CHOICES_MAX);
}

/** Tokens in flight that a request counts for, 1 at least. */
export function weightOf({ tokensIn, tokensOut }: Cost): number {
  return Math.max(1, tokensIn + tokensOut);
}
