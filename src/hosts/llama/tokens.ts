import type { LlamaContextSequence, LlamaGrammarEvaluationState, Token, TokenBias } from 'node-llama-cpp';
import type { Sampling } from './request.ts';

/** A token and its log-probability under the distribution that it was drawn from. */
export interface Likelihood {
  token: Token;
  logprob: number;
}

export interface DrawnToken {
  token: Token;
  /** Absent unless asked for. */
  logprob?: number;
  /** The likeliest tokens at this place, best first. */
  top?: Likelihood[];
}

export interface Draw {
  sampling: Sampling;
  /** Whole, 0 to 2^32-1. */
  seed: number;
  bias: TokenBias | undefined;
  grammar: LlamaGrammarEvaluationState | undefined;
  /** How many likeliest tokens to tell of; undefined: no log-probabilities. */
  topLogprobs: number | undefined;
}

/** Penalties look at so many tokens of the answer, the latest. */
const PENALTY_TOKENS_MAX = 1024;

/**
 * Draws token after token, each from what the sequence holds; `last` is the token to read first. The end-of-generation
 * token is given too, and nothing is drawn after it unless the caller goes on asking.
 */
export function drawTokens(
  sequence: LlamaContextSequence,
  last: Token,
  draw: Draw,
): AsyncGenerator<DrawnToken, void, void> {
  return draw.topLogprobs === undefined
    ? drawPlain(sequence, last, draw)
    : drawWithLogprobs(sequence, last, draw, draw.topLogprobs);
}

async function* drawPlain(
  sequence: LlamaContextSequence,
  last: Token,
  draw: Draw,
): AsyncGenerator<DrawnToken, void, void> {
  const drawn: Token[] = [];
  const options = {
    ...samplerOptions(draw, drawn),
    seed: draw.seed,
    yieldEogToken: true,
    ...(draw.grammar && { grammarEvaluationState: draw.grammar }),
  };
  for await (const token of sequence.evaluate([last], options)) {
    remember(drawn, token);
    yield { token };
  }
}

/** The library draws with log-probabilities one token at a time only, each with a sampler, and so a seed, of its own. */
async function* drawWithLogprobs(
  sequence: LlamaContextSequence,
  last: Token,
  draw: Draw,
  topCount: number,
): AsyncGenerator<DrawnToken, void, void> {
  const drawn: Token[] = [];
  const options = samplerOptions(draw, drawn);
  for (let at = 0; ; at++) {
    const generateNext = {
      token: true,
      totalLogitWeight: true,
      logits: { filter: { tokens: [], includeSelected: true, includeMax: true, includeTop: topCount } },
      options: { ...options, seed: (draw.seed + at) >>> 0 },
    };
    const [result] = await sequence.controlledEvaluate([[last, { generateNext }]]);
    const { token, logits, totalLogitWeight } = result?.next ?? {};
    if (token == null || !logits || totalLogitWeight === undefined)
      throw new Error('no token could be drawn');
    // Sorted by logit, so the first is the largest; the weights are told relative to it.
    const likelihoods = [...logits].map(([id, logit]) => ({ token: id, logit }));
    const normaliser = likelihoods[0]!.logit + Math.log(totalLogitWeight);
    const logprob = (logits.get(token) ?? Number.NEGATIVE_INFINITY) - normaliser;
    remember(drawn, token);
    yield {
      token,
      logprob,
      top: likelihoods
        .slice(0, topCount)
        .map(({ token: id, logit }) => ({ token: id, logprob: logit - normaliser })),
    };
    last = token;
  }
}

function remember(drawn: Token[], token: Token): void {
  drawn.push(token);
  if (drawn.length > PENALTY_TOKENS_MAX) drawn.shift();
}

/** Every setting is given: the library has defaults of its own for those that are not. `drawn` grows as the answer does. */
function samplerOptions({ sampling, bias }: Draw, drawn: Token[]) {
  const penalised =
    sampling.presencePenalty !== 0 || sampling.frequencyPenalty !== 0 || sampling.repetitionPenalty !== 1;
  return {
    temperature: sampling.temperature,
    topP: sampling.topP,
    topK: sampling.topK,
    minP: sampling.minP,
    ...(bias && { tokenBias: bias }),
    ...(penalised && {
      repeatPenalty: {
        punishTokens: () => drawn,
        penalty: sampling.repetitionPenalty,
        presencePenalty: sampling.presencePenalty,
        frequencyPenalty: sampling.frequencyPenalty,
        maxPunishTokens: PENALTY_TOKENS_MAX,
      },
    }),
  };
}
