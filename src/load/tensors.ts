import type { Random } from '../kernel/random.ts';
import type { LoadRequest } from './contracts.ts';
import { promptMaker } from './requests.ts';
import type { Intended } from './schedule.ts';

/** An input as a model's metadata describes it. */
export interface InputShape {
  name: string;
  datatype: string;
  /** -1 where any size goes. */
  shape: number[];
}

/** The largest size that is given to a dimension which may have any. */
const SIZE_MAX = 65_536;

/** Reads the inputs of `GET /v2/models/NAME`. The result is a message where there are none that can be made. */
export function readInputs(metadata: unknown): InputShape[] | string {
  const inputs = (metadata as { inputs?: unknown } | null)?.inputs;
  if (!Array.isArray(inputs) || inputs.length === 0) return "the model's metadata describes no inputs";
  for (const { name, datatype, shape } of inputs as Partial<InputShape>[]) {
    if (typeof name !== 'string' || !Array.isArray(shape)) return "the model's metadata cannot be read";
    if (!/^(BOOL|U?INT\d+|FP32|FP64|BYTES)$/.test(datatype ?? '')) {
      return `input '${name}' is ${datatype}, which JSON cannot carry`;
    }
  }
  return inputs as InputShape[];
}

/**
 * Makes inference requests with random data, as JSON. The first dimension that may have any size is 1, a batch of one;
 * any other such is as long as the prompt would be, SIZE_MAX at most.
 */
export function oipRequests(
  base: string,
  model: string,
  inputs: readonly InputShape[],
  random: Random,
): (intended: Intended) => LoadRequest {
  const prompt = promptMaker(random);
  const path = `${base}/models/${encodeURIComponent(model)}/infer`;
  const element = (datatype: string, tokens: number): unknown => {
    if (datatype === 'BYTES') return prompt(tokens);
    if (datatype === 'BOOL') return random.next() < 0.5;
    return datatype.startsWith('FP') ? random.next() : Math.floor(random.next() * 100);
  };
  return ({ promptTokens }) => {
    const tensors = inputs.map(({ name, datatype, shape }) => {
      const free = Math.min(SIZE_MAX, promptTokens);
      const sizes = shape.map((size, index) => (size >= 0 ? size : index === 0 ? 1 : free));
      const elements = sizes.reduce((product, size) => product * size, 1);
      const data = Array.from({ length: elements }, () => element(datatype, promptTokens));
      return { name, datatype, shape: sizes, data };
    });
    return { path, body: JSON.stringify({ inputs: tensors }), streams: false };
  };
}
