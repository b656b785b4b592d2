import type { Piece, Summary } from './engine.ts';
import type { Likelihood } from './tokens.ts';

/** How generated text is written: OpenAI's objects of the two endpoints, whole and in pieces. */
export interface Form {
  idPrefix: string;
  /** `object` of a whole answer and of a piece. */
  object: string;
  chunkObject: string;
  /** The first piece of a stream, which carries no text; undefined where there is none. */
  opening: object | undefined;
  /** The choice of a piece with text. */
  piece(piece: Piece, logprobs: object | null): object;
  /** The choice of the last piece, which says why the answer ends. */
  closing: object;
  /** The choice of a whole answer. */
  whole(text: string, logprobs: object | null): object;
  /** Log-probabilities of some tokens; `at` is where their text begins in the answer. */
  logprobs(tokens: readonly ToldToken[], at: number): object;
}

/** A token in words. */
export interface ToldToken {
  text: string;
  logprob: number;
  top: { text: string; logprob: number }[];
}

export const CHAT: Form = {
  idPrefix: 'chatcmpl-',
  object: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  opening: { delta: { role: 'assistant', content: '' }, logprobs: null },
  piece: ({ text }, logprobs) => ({ delta: { content: text }, logprobs }),
  closing: { delta: {}, logprobs: null },
  whole: (text, logprobs) => ({ message: { role: 'assistant', content: text, refusal: null }, logprobs }),
  logprobs: (tokens) => ({
    content: tokens.map(({ text, logprob, top }) => ({
      ...entry(text, logprob),
      top_logprobs: top.map((other) => entry(other.text, other.logprob)),
    })),
    refusal: null,
  }),
};

export const COMPLETION: Form = {
  idPrefix: 'cmpl-',
  object: 'text_completion',
  chunkObject: 'text_completion',
  opening: undefined,
  piece: ({ text }, logprobs) => ({ text, logprobs }),
  closing: { text: '', logprobs: null },
  whole: (text, logprobs) => ({ text, logprobs }),
  logprobs: (tokens, at) => {
    let offset = at;
    return {
      tokens: tokens.map(({ text }) => text),
      token_logprobs: tokens.map(({ logprob }) => finite(logprob)),
      top_logprobs: tokens.map(({ text, logprob, top }) =>
        Object.fromEntries([...top, { text, logprob }].map((other) => [other.text, finite(other.logprob)])),
      ),
      text_offset: tokens.map(({ text }) => {
        const start = offset;
        offset += text.length;
        return start;
      }),
    };
  },
};

function entry(text: string, logprob: number) {
  // A token that is part of a character has no text of its own, and its bytes are not told by the library.
  const bytes = text.includes('\uFFFD') ? null : [...Buffer.from(text)];
  return { token: text, logprob: finite(logprob), bytes };
}

/** JSON has no infinity; OpenAI writes -9999 for what is next to impossible. */
function finite(logprob: number): number {
  return Number.isFinite(logprob) ? logprob : -9999;
}

/** Puts what a piece's tokens were into words. */
export function tellTokens(piece: Piece, textOf: (token: Likelihood['token']) => string): ToldToken[] {
  return piece.tokens.map(({ token, logprob, top = [] }) => ({
    text: textOf(token),
    logprob: logprob ?? Number.NEGATIVE_INFINITY,
    top: top.map((other) => ({ text: textOf(other.token), logprob: other.logprob })),
  }));
}

export function usageOf({ promptTokens, cachedTokens, answerTokens }: Summary): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: answerTokens,
    total_tokens: promptTokens + answerTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

/** What all answers and pieces of one request begin with. */
export interface Envelope {
  id: string;
  /** Whole seconds since the Unix epoch. */
  created: number;
  model: string;
}

export function chunk(
  form: Form,
  { id, created, model }: Envelope,
  choice: object | undefined,
  finish: string | null,
  usage: object | null | undefined,
): object {
  return {
    id,
    object: form.chunkObject,
    created,
    model,
    choices: choice === undefined ? [] : [{ index: 0, ...choice, finish_reason: finish }],
    ...(usage !== undefined && { usage }),
  };
}
