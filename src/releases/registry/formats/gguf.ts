import { createHash } from 'node:crypto';
import { ggufHeader, isGgufHead } from '../../../protocols/gguf/header.ts';
import { BrokenFile, type Inspection } from './contracts.ts';
import type { Bytes } from './file-bytes.ts';

/** ggml's types of tensors: name, numbers in a block, bytes of a block (ggml.c of llama.cpp, `type_traits`). */
const TYPES: Record<number, [name: string, block: number, bytes: number]> = {
  0: ['fp32', 1, 4],
  1: ['fp16', 1, 2],
  2: ['q4_0', 32, 18],
  3: ['q4_1', 32, 20],
  6: ['q5_0', 32, 22],
  7: ['q5_1', 32, 24],
  8: ['q8_0', 32, 34],
  9: ['q8_1', 32, 36],
  10: ['q2_k', 256, 84],
  11: ['q3_k', 256, 110],
  12: ['q4_k', 256, 144],
  13: ['q5_k', 256, 176],
  14: ['q6_k', 256, 210],
  15: ['q8_k', 256, 292],
  16: ['iq2_xxs', 256, 66],
  17: ['iq2_xs', 256, 74],
  18: ['iq3_xxs', 256, 98],
  19: ['iq1_s', 256, 50],
  20: ['iq4_nl', 32, 18],
  21: ['iq3_s', 256, 110],
  22: ['iq2_s', 256, 82],
  23: ['iq4_xs', 256, 136],
  24: ['int8', 1, 1],
  25: ['int16', 1, 2],
  26: ['int32', 1, 4],
  27: ['int64', 1, 8],
  28: ['fp64', 1, 8],
  29: ['iq1_m', 256, 56],
  30: ['bf16', 1, 2],
  34: ['tq1_0', 256, 54],
  35: ['tq2_0', 256, 66],
  39: ['mxfp4', 32, 17],
};

/** `general.file_type`: what whole files are called (llama.h, `llama_ftype`). */
const FILE_TYPES: Record<number, string> = {
  0: 'fp32',
  1: 'fp16',
  2: 'q4_0',
  3: 'q4_1',
  7: 'q8_0',
  8: 'q5_0',
  9: 'q5_1',
  10: 'q2_k',
  11: 'q3_k_s',
  12: 'q3_k_m',
  13: 'q3_k_l',
  14: 'q4_k_s',
  15: 'q4_k_m',
  16: 'q5_k_s',
  17: 'q5_k_m',
  18: 'q6_k',
  19: 'iq2_xxs',
  20: 'iq2_xs',
  21: 'q2_k_s',
  22: 'iq3_xs',
  23: 'iq3_xxs',
  24: 'iq1_s',
  25: 'iq4_nl',
  26: 'iq3_s',
  27: 'iq3_m',
  28: 'iq2_s',
  29: 'iq2_m',
  30: 'iq4_xs',
  31: 'iq1_m',
  32: 'bf16',
  36: 'tq1_0',
  37: 'tq2_0',
  38: 'mxfp4',
};

const TOLD = ['general.architecture', 'general.name', 'general.size_label', 'general.license'];

/** Undefined where it is none. Throws a BrokenFile where its header cannot be read, or its data ends too early. */
export function inspectGguf(file: Bytes): Inspection | undefined {
  if (!isGgufHead(file.read(0, 4))) return undefined;
  const { values, tensors, dataAt } = headerOf(file);
  const numbers: Record<string, number> = {};
  let end = 0;
  for (const { name, elements, type, offset } of tensors) {
    const [kind, block, bytes] = TYPES[type] ?? [`ggml-${type}`, 1, 0];
    numbers[kind] = (numbers[kind] ?? 0) + elements;
    if (!Number.isSafeInteger(elements) || !Number.isSafeInteger(offset))
      throw new BrokenFile(`its tensor '${name}' has no size that can be`);
    end = Math.max(end, offset + (elements / block) * bytes);
  }
  if (dataAt + end > file.size)
    throw new BrokenFile(`it ends too early: ${file.size} bytes, where its header needs ${dataAt + end}`);
  const fileType = values.get('general.file_type');
  const called = typeof fileType === 'number' ? FILE_TYPES[fileType] : undefined;
  const precision = called !== undefined && holds(numbers, called) ? called : undefined;
  const template = values.get('tokenizer.chat_template');
  const tokenizer = tokenizerHash(values);
  const [part, of] = [values.get('split.no'), values.get('split.count')];
  return {
    format: 'gguf',
    numbers,
    ...(precision !== undefined && { precision }),
    told: toldIn(values),
    ...(tokenizer !== undefined && { tokenizer }),
    ...(typeof part === 'number' && typeof of === 'number' && of > 1 && { split: { part, of } }),
    ...(typeof template === 'string' && { template: createHash('sha256').update(template).digest('hex') }),
  };
}

/** A file that was quantised anew may still call itself what it was before: then what it is made of counts alone. */
function holds(numbers: Record<string, number>, called: string): boolean {
  return Object.keys(numbers).some(
    (kind) =>
      kind === called ||
      called.startsWith(`${kind}_`) ||
      (called.startsWith('iq') && kind.slice(0, 3) === called.slice(0, 3)),
  );
}

function headerOf(file: Bytes) {
  try {
    return ggufHeader((at, count) => file.read(at, count));
  } catch (error) {
    throw new BrokenFile((error as Error).message);
  }
}

/** Over the vocabulary, merges and special tokens, by key: the template, which may change alone, is not among them. */
function tokenizerHash(values: ReadonlyMap<string, unknown>): string | undefined {
  const keys = [...values.keys()]
    .filter((key) => key.startsWith('tokenizer.') && !key.startsWith('tokenizer.chat_template'))
    .sort();
  if (keys.length === 0) return undefined;
  const hash = createHash('sha256');
  for (const key of keys) hash.update(`${key}\n${JSON.stringify(values.get(key))}\n`);
  return hash.digest('hex');
}

function toldIn(values: ReadonlyMap<string, unknown>): Record<string, string | number> {
  const architecture = values.get('general.architecture');
  const told: Record<string, string | number> = {};
  for (const key of [...TOLD, `${architecture}.context_length`, `${architecture}.block_count`]) {
    const value = values.get(key);
    if (typeof value === 'number' || (typeof value === 'string' && value.length <= 200)) told[key] = value;
  }
  return told;
}
