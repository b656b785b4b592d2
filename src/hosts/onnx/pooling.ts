import * as ort from 'onnxruntime-node';

/** The output of models that give one vector a text. */
export const POOLED = 'sentence_embedding';

/** Makes vectors of rows of token ids, by a model that gives one vector a token or one a text. */
export function encoder(session: ort.InferenceSession): (rows: number[][]) => Promise<Float32Array[]> {
  const output = session.outputNames.includes(POOLED) ? POOLED : session.outputNames[0]!;

  return async (rows) => {
    const length = Math.max(...rows.map((row) => row.length));
    const size = rows.length * length;
    const ids = new BigInt64Array(size);
    const mask = new BigInt64Array(size);
    for (const [at, row] of rows.entries()) {
      for (const [place, id] of row.entries()) {
        ids[at * length + place] = BigInt(id);
        mask[at * length + place] = 1n;
      }
    }
    const dims = [rows.length, length];
    const known: Record<string, BigInt64Array> = {
      input_ids: ids,
      attention_mask: mask,
      token_type_ids: new BigInt64Array(size),
    };
    const feeds = Object.fromEntries(
      session.inputNames.map((name) => {
        const data = known[name];
        if (!data) throw new Error(`the model wants an input '${name}', which no text has`);
        return [name, new ort.Tensor('int64', data, dims)];
      }),
    );
    const made = (await session.run(feeds, [output]))[output]!;
    if (made.type !== 'float32') throw new Error(`the model's '${output}' is ${made.type}, not float32`);
    return pool(made.data as Float32Array, made.dims, rows);
  };
}

/**
 * The mean of the vectors of a row's tokens, padding left out, scaled to length 1: what sentence-transformers does.
 * Two dimensions mean that the model has pooled already.
 */
function pool(
  data: Float32Array,
  dims: readonly number[],
  rows: readonly { length: number }[],
): Float32Array[] {
  const width = dims.at(-1)!;
  const length = dims.length === 3 ? dims[1]! : 1;
  return rows.map((row, at) => {
    const vector = new Float32Array(width);
    const tokens = dims.length === 3 ? row.length : 1;
    for (let place = 0; place < tokens; place++) {
      const start = (at * length + place) * width;
      for (let i = 0; i < width; i++) vector[i]! += data[start + i]!;
    }
    const norm = Math.hypot(...vector);
    // The mean needs no division of its own: the length is made 1 in any case.
    return norm === 0 ? vector : vector.map((value) => value / norm);
  });
}

/** The same of rows that came as tensors: the tokens of each are told by its mask, 1 and then 0. */
export function poolByMask(
  data: Float32Array,
  dims: readonly number[],
  mask: ArrayLike<bigint | number>,
): Float32Array {
  const [count, width] = [dims[0]!, dims.at(-1)!];
  const length = mask.length / count;
  const rows = Array.from({ length: count }, (_, at) => {
    let tokens = 0;
    while (tokens < length && Number(mask[at * length + tokens]) === 1) tokens++;
    return { length: tokens };
  });
  const vectors = new Float32Array(count * width);
  for (const [at, vector] of pool(data, dims, rows).entries()) vectors.set(vector, at * width);
  return vectors;
}
