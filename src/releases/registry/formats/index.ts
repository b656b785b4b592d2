import { createHash } from 'node:crypto';
import type { Inspection } from './contracts.ts';
import { FileBytes } from './file-bytes.ts';
import { inspectGguf } from './gguf.ts';
import { inspectOnnx } from './onnx.ts';
import { beginsAsPickle, readPickle } from './pickle.ts';
import { inspectSafetensors } from './safetensors.ts';
import { inspectSavedModel, inspectSentencepiece } from './saved-model.ts';
import { dangerOf, inspectArchive, isZipHead } from './torch-archive.ts';

export type { Inspection, WeightsFormat } from './contracts.ts';
export { BrokenFile, WEIGHTS_FORMATS } from './contracts.ts';

/** Tables and settings beside weights are small; what is larger is not looked at as text. */
const TEXT_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Tells what a file is by its content, whatever its name. Only headers of weights are read, texts whole. Rejects with a
 * BrokenFile where it begins as something that it is not.
 */
export async function inspect(path: string): Promise<Inspection> {
  using file = new FileBytes(path);
  if (isZipHead(file.read(0, 4))) return (await inspectArchive(path)) ?? { format: 'bytes' };
  // Safetensors first: the length of a header may read like the head of a pickle, and never goes on like one.
  const weights = inspectGguf(file) ?? inspectSafetensors(file);
  if (weights) return weights;
  const pickle = inspectPickle(file);
  if (pickle) return pickle;
  // Texts before messages: a short one may read like either.
  return (
    inspectText(file) ??
    inspectOnnx(file) ??
    inspectSavedModel(file) ??
    inspectSentencepiece(file) ?? { format: 'bytes' }
  );
}

/** Those without a head are told by what they do: a program that runs to its end and looks up names. */
function inspectPickle(file: FileBytes): Inspection | undefined {
  const begins = beginsAsPickle(file);
  const pickle = readPickle(file);
  if (!begins && !(pickle && (pickle.globals.length > 0 || pickle.hidden))) return undefined;
  return { format: 'pickle', danger: dangerOf(pickle?.globals ?? []) };
}

function inspectText(file: FileBytes): Inspection | undefined {
  if (file.size > TEXT_BYTES_MAX) return undefined;
  const bytes = file.read(0, file.size);
  const text = decoded(bytes);
  if (text === undefined) return undefined;
  const value = parsed(text);
  if (typeof value !== 'object' || value === null) return { format: 'text' };
  const { model, chat_template: template, weight_map: shards } = value as Record<string, unknown>;
  const isTokenizer = typeof model === 'object' && model !== null && 'vocab' in model;
  const hash = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');
  return {
    format: 'json',
    ...(isTokenizer && { tokenizer: hash(bytes) }),
    ...(typeof template === 'string' && { template: hash(template) }),
    ...(typeof shards === 'object' && shards !== null && { needs: shardsIn(shards) }),
  };
}

/** Files that an index of weights in several files names, such as `model.safetensors.index.json`. */
function shardsIn(weightMap: object): string[] {
  return [...new Set(Object.values(weightMap).filter((file) => typeof file === 'string'))];
}

/** Texts have no control characters but white space; messages begin with some. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROL = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/;

function decoded(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return CONTROL.test(text) ? undefined : text;
  } catch {
    return undefined; // no text
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // text of another kind
  }
}
