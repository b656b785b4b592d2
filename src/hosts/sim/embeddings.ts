import { seededRandom } from '../../kernel/random.ts';
import { embeddingsList } from '../../protocols/openai/embeddings.ts';
import { badRequest } from '../fault.ts';
import { type Exchange, jsonObject } from '../listener.ts';
import { checkModel, type Served } from './chat.ts';
import { Cut, run } from './generate.ts';
import { digest, tokensOfText } from './text.ts';

const DIMENSIONS = 256;
const INPUTS_MAX = 2048;

interface Input {
  tokens: number;
  digest: number;
}

/** `POST /v1/embeddings`: a unit vector drawn from the input's digest; the time is that of reading the input. */
export async function answerEmbeddings(served: Served, exchange: Exchange): Promise<void> {
  const body = jsonObject(exchange.body);
  checkModel(served, body);
  const inputs = readInputs(served, body.input);
  const dimensions = body.dimensions ?? DIMENSIONS;
  if (
    !Number.isSafeInteger(dimensions) ||
    (dimensions as number) < 1 ||
    (dimensions as number) > DIMENSIONS
  ) {
    throw badRequest(`dimensions must be a whole number of 1 to ${DIMENSIONS}`, 'dimensions');
  }
  const format = body.encoding_format ?? 'float';
  if (format !== 'float' && format !== 'base64') {
    throw badRequest('encoding_format must be float or base64', 'encoding_format');
  }
  try {
    await Promise.all(
      inputs.map(({ tokens }) =>
        run(served.accelerator, { promptTokens: tokens, outputTokens: 0 }, exchange.gone, () => {}),
      ),
    );
  } catch (error) {
    if (!(error instanceof Cut)) throw error;
    exchange.cut('{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.0');
    return;
  }
  const tokens = inputs.reduce((sum, input) => sum + input.tokens, 0);
  const vectors = inputs.map((input) => vector(input.digest, dimensions as number));
  exchange.answer(200, embeddingsList(vectors, { model: served.model, tokens, base64: format === 'base64' }));
}

/** A text, a list of texts, a list of token numbers, or a list of such lists. */
function readInputs(served: Served, input: unknown): Input[] {
  const isTokens = (value: unknown): value is number[] =>
    Array.isArray(value) && value.length > 0 && value.every((one) => Number.isSafeInteger(one));
  const list = typeof input === 'string' || isTokens(input) ? [input] : input;
  if (!Array.isArray(list) || list.length === 0 || list.length > INPUTS_MAX) {
    throw badRequest(`input must be a text, or a list of 1 to ${INPUTS_MAX} texts`, 'input');
  }
  return list.map((one: unknown) => {
    if (typeof one !== 'string' && !isTokens(one))
      throw badRequest('each input must be a text or tokens', 'input');
    const tokens = typeof one === 'string' ? Math.max(1, tokensOfText(one)) : one.length;
    if (tokens > served.contextTokensMax) {
      throw badRequest(
        `This model's maximum context length is ${served.contextTokensMax} tokens. However, you requested ${tokens} tokens.`,
        'input',
        'context_length_exceeded',
      );
    }
    return { tokens, digest: digest(typeof one === 'string' ? one : one.join(' ')) };
  });
}

function vector(seed: number, dimensions: number): Float32Array {
  const random = seededRandom(seed);
  const values = Float32Array.from({ length: dimensions }, () => random.next() - 0.5);
  const norm = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  return values.map((value) => value / norm);
}
