import { BrokenFile, type Inspection } from './contracts.ts';
import type { Bytes } from './file-bytes.ts';
import { type Field, fieldsOf, textOf } from './protobuf.ts';

/**
 * saved_model.pb of a SavedModel: a message of a version and of graphs, and of nothing else
 * (tensorflow/core/protobuf/saved_model.proto). Undefined where it is none.
 */
export function inspectSavedModel(file: Bytes): Inspection | undefined {
  let version = 0;
  const graphs: Field[] = [];
  try {
    for (const each of fieldsOf(file, 0, file.size)) {
      if (each.number === 1) version = each.value;
      else if (each.number === 2) graphs.push(each);
      else return undefined;
    }
  } catch {
    return undefined; // no message at all
  }
  if (version !== 1 || graphs.length === 0) return undefined;
  return {
    format: 'savedmodel',
    told: { graphs: graphs.length },
    // Of constants alone it has no files of variables, and is whole.
    ...(graphs.some((graph) => hasVariables(file, graph)) && { needs: VARIABLES }),
  };
}

const VARIABLES = ['variables/variables.index'];
const VARIABLE_OPS = new Set(['VarHandleOp', 'VariableV2', 'Variable']);

/** Whether a node of its graph is a variable: MetaGraphDef.graph_def (2), GraphDef.node (1), NodeDef.op (2). */
function hasVariables(file: Bytes, metaGraph: Field): boolean {
  try {
    for (const graph of inside(file, metaGraph, 2))
      for (const node of inside(file, graph, 1))
        for (const op of inside(file, node, 2)) if (VARIABLE_OPS.has(textOf(file, op, 50))) return true;
    return false;
  } catch (error) {
    throw new BrokenFile(`its graph cannot be read: ${(error as Error).message}`);
  }
}

function* inside(file: Bytes, { from, to }: Field, number: number): Generator<Field> {
  for (const field of fieldsOf(file, from, to)) if (field.number === number) yield field;
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
