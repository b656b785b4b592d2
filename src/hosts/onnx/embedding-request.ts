import { badRequest, unknownParameter } from '../fault.ts';

/** OpenAI's own bound. */
const INPUTS_MAX = 2048;

const KNOWN = ['model', 'input', 'encoding_format', 'dimensions', 'user'];

export interface EmbeddingRequest {
  /** Texts, or what the caller has made tokens of already. */
  inputs: (string | number[])[];
  base64: boolean;
}

/** Reads a request for vectors of `dimensions` numbers; ids of tokens are below `vocabulary`, where that is known. */
export function parseEmbedding(
  body: Record<string, unknown>,
  { dimensions, vocabulary }: { dimensions: number; vocabulary: number | undefined },
): EmbeddingRequest {
  const unknown = Object.keys(body).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) throw unknownParameter(unknown);
  const format = body.encoding_format ?? 'float';
  if (format !== 'float' && format !== 'base64') {
    throw badRequest("encoding_format: expected 'float' or 'base64'", 'encoding_format');
  }
  if (body.dimensions != null && body.dimensions !== dimensions) {
    throw badRequest(`dimensions: this model's vectors have ${dimensions}, and cannot be cut`, 'dimensions');
  }
  return { inputs: inputsOf(body.input, vocabulary), base64: format === 'base64' };
}

function inputsOf(input: unknown, vocabulary = 2 ** 31): (string | number[])[] {
  const inputs = Array.isArray(input) && !input.every((item) => typeof item === 'number') ? input : [input];
  if (inputs.length === 0 || inputs.length > INPUTS_MAX) {
    throw badRequest(`input: expected 1 to ${INPUTS_MAX} texts`, 'input');
  }
  for (const item of inputs) {
    const isText = typeof item === 'string';
    if (!isText && !(Array.isArray(item) && item.every((id) => Number.isSafeInteger(id)))) {
      throw badRequest('input: expected a text, the ids of its tokens, or a list of either', 'input');
    }
    if (item.length === 0) throw badRequest('input: must not be empty', 'input');
    if (!isText && item.some((id) => id < 0 || id >= vocabulary)) {
      throw badRequest(`input: the model's tokens are 0 to ${vocabulary - 1}`, 'input');
    }
  }
  return inputs as (string | number[])[];
}
