import type { Tensor } from '../../protocols/oip/tensors.ts';
import { ELEMENT_BYTES } from '../../protocols/oip/tensors.ts';
import type { PrepareRules } from './rules.ts';

/** Tokens of texts as the tensors of one batch, and what comes back as rows of each text. */

/** The body of an inference request: JSON, and the tensors raw behind it. */
export function tensorBody(
  rows: readonly Int32Array[],
  { tensors }: PrepareRules,
  outputs: readonly string[] | undefined,
): { body: Buffer; jsonBytes: number } {
  const length = rows.reduce((longest, row) => Math.max(longest, row.length), 0);
  const shape = [rows.length, length];
  const size = rows.length * length * ELEMENT_BYTES[tensors.datatype];
  const inputs = tensors.inputs.map((name) => ({
    name,
    datatype: tensors.datatype,
    shape,
    parameters: { binary_data_size: size },
  }));
  const json = Buffer.from(
    JSON.stringify({
      inputs,
      parameters: { binary_data_output: true },
      ...(outputs && {
        outputs: outputs.map((name) => ({ name, parameters: { binary_data: true } })),
      }),
    }),
  );
  const wide = tensors.datatype === 'INT64';
  const raw = tensors.inputs.map((name) => {
    if (name === 'token_type_ids') return Buffer.alloc(size);
    // Of INT64 the low half: ids are below 2^31.
    const words = new Int32Array(size / 4);
    const step = wide ? 2 : 1;
    for (const [at, row] of rows.entries()) {
      const start = at * length;
      for (let place = 0; place < row.length; place++) {
        words[(start + place) * step] = name === 'input_ids' ? row[place]! : 1;
      }
    }
    return Buffer.from(words.buffer);
  });
  return { body: Buffer.concat([json, ...raw]), jsonBytes: json.length };
}

/**
 * One vector for each text of a batch: the output's own where it has one for each text, else those of its tokens pooled, padding
 * left out. A message where the output gives none.
 */
export function vectorsOf(
  output: Tensor,
  lengths: readonly number[],
  { tensors: { pooling, normalise } }: PrepareRules,
): Float32Array[] | string {
  const { name, datatype, shape, data } = output;
  const ranks = shape.length === 2 || shape.length === 3;
  if (datatype !== 'FP32' || !ranks || shape[0] !== lengths.length) {
    return `the output '${name}' is ${datatype} of [${shape}], and no vectors of ${lengths.length} texts`;
  }
  const width = shape.at(-1)!;
  const places = shape.length === 3 ? shape[1]! : 1;
  if (shape.length === 3 && lengths.some((length) => length > places)) {
    return `the output '${name}' has ${places} vectors for each text, fewer than tokens`;
  }
  const values = floatsOf(data);
  return lengths.map((length, at) => {
    const vector = new Float32Array(width);
    const tokens = shape.length === 2 || pooling === 'cls' ? 1 : length;
    for (let place = 0; place < tokens; place++) {
      const start = (at * places + place) * width;
      for (let i = 0; i < width; i++) vector[i]! += values[start + i]! / tokens;
    }
    return normalise ? normalised(vector) : vector;
  });
}

/** A view of the bytes, or a copy where they do not lie on a boundary. */
function floatsOf(data: Buffer): Float32Array {
  if (data.byteOffset % 4 === 0) return new Float32Array(data.buffer, data.byteOffset, data.length / 4);
  return new Float32Array(Uint8Array.from(data).buffer);
}

function normalised(vector: Float32Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  const norm = Math.sqrt(sum);
  if (norm === 0) return vector;
  for (let i = 0; i < vector.length; i++) vector[i]! /= norm;
  return vector;
}

/** Each text's row of an output, as raw elements; undefined where it has no row for each. */
export function rawRowsOf({ datatype, shape, data }: Tensor, count: number): Buffer[] | undefined {
  if (shape[0] !== count || data.length % count !== 0 || datatype === 'BYTES') return undefined;
  const bytes = data.length / count;
  return Array.from({ length: count }, (_, at) => data.subarray(at * bytes, (at + 1) * bytes));
}
