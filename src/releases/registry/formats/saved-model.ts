import type { Inspection } from './contracts.ts';
import type { Bytes } from './file-bytes.ts';
import { fieldsOf } from './protobuf.ts';

/**
 * saved_model.pb of a SavedModel: a message of a version and of graphs, and of nothing else
 * (tensorflow/core/protobuf/saved_model.proto). Undefined where it is none.
 */
export function inspectSavedModel(file: Bytes): Inspection | undefined {
  let [version, graphs] = [0, 0];
  try {
    for (const { number, value } of fieldsOf(file, 0, file.size)) {
      if (number === 1) version = value;
      else if (number === 2) graphs++;
      else return undefined;
    }
  } catch {
    return undefined; // no message at all
  }
  if (version !== 1 || graphs === 0) return undefined;
  return { format: 'savedmodel', told: { graphs } };
}

/** The vocabulary of SentencePiece: a message that begins with its pieces, each a text with a score (sentencepiece_model.proto). */
export function inspectSentencepiece(file: Bytes): Inspection | undefined {
  let pieces = 0;
  try {
    for (const { number, from, to } of fieldsOf(file, 0, file.size)) {
      if (number > 5 && number < 200) return undefined;
      if (number !== 1) continue;
      const fields = [...fieldsOf(file, from, to)].map((field) => field.number);
      if (fields[0] !== 1 || fields.some((field) => field > 3)) return undefined;
      pieces++;
    }
  } catch {
    return undefined; // no message at all
  }
  return pieces === 0 ? undefined : { format: 'sentencepiece', told: { pieces } };
}
