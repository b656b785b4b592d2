/** What a file is, by its content. */
export type FileFormat =
  | WeightsFormat
  /** What a pickle says is run by whoever loads it. */
  | 'pickle'
  /** Tables and settings beside the weights. */
  | 'json'
  | 'text'
  | 'sentencepiece'
  /** Weights of an ONNX model or a SavedModel that lie in files of their own, or nothing that is known. */
  | 'bytes';

export const WEIGHTS_FORMATS = ['safetensors', 'gguf', 'onnx', 'savedmodel', 'torchscript'] as const;
export type WeightsFormat = (typeof WEIGHTS_FORMATS)[number];

/** What was found in one file. */
export interface Inspection {
  format: FileFormat;
  /** How many numbers there are of each kind, such as `bf16` or `q4_k`; of weights alone. */
  numbers?: Record<string, number>;
  /** What the file itself calls its precision, where it does. */
  precision?: string;
  /** What its header tells, as far as it is short: architecture, producer, opset. */
  told?: Record<string, string | number | boolean>;
  /** Names of what goes in and comes out, where the file has them. */
  inputs?: string[];
  outputs?: string[];
  /** SHA-256 of the tokenizer and of the chat template that are in it, hexadecimal. */
  tokenizer?: string;
  template?: string;
  /** Paths, from its own folder, of files that hold its weights. */
  external?: string[];
  /** Paths, from its own folder, of files without which it is not whole, and which say themselves what they are. */
  needs?: string[];
  /** Which part it is of a model in several files, from 0 on. */
  split?: { part: number; of: number };
  /** Why nobody should load it, in words. */
  danger?: string;
}

/** A file that is broken, or not what it begins as; the words say what. */
export class BrokenFile extends Error {}

/** Names of inputs and outputs, or values of a header, that are kept of one file. */
export const TOLD_MAX = 64;
