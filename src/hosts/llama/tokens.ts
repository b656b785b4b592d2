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
 * token is given too, and nothing is drawn after it unless the caller goes on asking. Log-probabilities are those of the
 * distribution drawn from, after temperature and the rest; at temperature 0 the likeliest tokens are picked out of the
 * whole vocabulary, which costs tens of milliseconds a token.
 */
export async function* drawTokens(
  sequence: LlamaContextSequence,
  last: Token,
  draw: Draw,
): AsyncGenerator<DrawnToken, void, void> {
  const { topLogprobs } = draw;
  const drawn: Token[] = [];
  const options = {
    ...samplerOptions(draw, drawn),
    seed: draw.seed,
    yieldEogToken: true,
    ...(draw.grammar && { grammarEvaluationState: draw.grammar }),
  };
  if (topLogprobs === undefined) {
    for await (const token of sequence.evaluate([last], options)) {
      remember(drawn, token);
      yield { token };
    }
    return;
  }
  const tokens =
    topLogprobs > 0
      ? sequence.evaluateWithMetadata([last], { confidence: true, probabilities: true }, options)
      : sequence.evaluateWithMetadata([last], { confidence: true }, options);
  for await (const made of tokens) {
    remember(drawn, made.token);
    const top =
      'probabilities' in made ? likeliest(made.probabilities as Map<Token, number>, topLogprobs) : [];
    yield { token: made.token, logprob: Math.log(made.confidence), top };
  }
}

/** The map is sorted, the likeliest first. */
function likeliest(probabilities: Map<Token, number>, count: number): Likelihood[] {
  const top: Likelihood[] = [];
  for (const [token, probability] of probabilities) {
    if (top.length === count) break;
    top.push({ token, logprob: Math.log(probability) });
  }
  return top;
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
