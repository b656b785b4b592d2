import { expect, test } from 'vitest';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

function faultsOf(model: string): string[] {
  const text = `models:\n  m: ${model}\n`;
  const loaded = loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text }));
  return loaded.ok ? [] : loaded.faults.map(({ path, message }) => `${path}: ${message}`);
}

const FROM = 'from: ["file:/m"]';
const TOKENIZER = 'tokenizer: { from: ["file:/t"] }';

test.each([
  [`{ format: gguf, ${FROM} }`],
  [`{ format: gguf, task: chat, ${FROM} }`],
  [`{ format: onnx, ${FROM} }`],
  [`{ format: onnx, task: tensors, ${FROM} }`],
  [`{ format: onnx, task: embedding, ${TOKENIZER}, ${FROM} }`],
])('is served: %s', (model) => {
  expect(faultsOf(model)).toEqual([]);
});

test.each([
  [
    `{ format: gguf, task: embedding, ${FROM} }`,
    'models.m.task: a model of format gguf cannot be served as embedding',
  ],
  [
    `{ format: onnx, task: chat, ${TOKENIZER}, ${FROM} }`,
    'models.m.task: a model of format onnx cannot be served as chat',
  ],
  [
    `{ format: onnx, task: embedding, ${FROM} }`,
    'models.m.task: a model of format onnx without a tokenizer cannot be served as embedding',
  ],
  [`{ format: gguf, ${TOKENIZER}, ${FROM} }`, 'models.m.tokenizer: a gguf file holds its own tokenizer'],
])('is refused: %s', (model, fault) => {
  expect(faultsOf(model)).toEqual([fault]);
});
