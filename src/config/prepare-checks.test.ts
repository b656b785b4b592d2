import { expect, it } from 'vitest';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

/** What is found in a configuration whose route `r` has this `prepare`, by path. */
function found(prepare: string, more: { target?: string; route?: string } = {}): [string[], string[]] {
  const text = `backends:
  chat: { engine: vllm, model: m, endpoints: ["http://a:8000/v1"] }
  tensors: { engine: triton, model: m, endpoints: ["http://a:8000"] }
  host: { engine: local, model: minilm, host: { prepared: true } }
models:
  minilm: { format: onnx, from: ["file:m.onnx"], tokenizer: { from: ["file:t.json"] } }
  bare: { format: onnx, from: ["file:m.onnx"] }
routes:
  r: { targets: [{ backend: ${more.target ?? 'host'} }], deadline: 1s, ${more.route ?? ''} ${prepare} }
`;
  const loaded = loadConfig(
    'armature.yaml',
    filesInMemory({ 'armature.yaml': text, 'm.onnx': '', 't.json': '' }),
  );
  const paths = (list: readonly { path: string }[]) => list.map(({ path }) => path);
  return loaded.ok ? [[], paths(loaded.config.notices)] : [paths(loaded.faults), []];
}

it('knows the tokenizer of a local target, and asks for one of others', () => {
  expect(found('prepare: {}')).toEqual([[], []]);
  expect(found('prepare: {}', { target: 'chat' })[0]).toEqual(['routes.r.prepare']);
  expect(found('prepare: { tokenizer: { model: minilm } }', { target: 'chat' })).toEqual([[], []]);
  expect(found('prepare: { tokenizer: { model: bare } }')[0]).toEqual(['routes.r.prepare.tokenizer.model']);
  expect(found('prepare: { tokenizer: { model: minilmm } }')[0]).toEqual([
    'routes.r.prepare.tokenizer.model',
  ]);
});

it('refuses what contradicts itself', () => {
  expect(found('prepare: { tokensMax: 512, batchTokensMax: 256 }')[0]).toEqual([
    'routes.r.prepare.batchTokensMax',
  ]);
  expect(found('prepare: {}', { route: 'batch: {},' })[0]).toEqual(['routes.r.batch']);
  const tensors = 'prepare: { tokenizer: { model: minilm }, to: tensors }';
  expect(found(tensors, { target: 'chat' })[0]).toEqual(['routes.r.targets[0].backend']);
  expect(found(tensors, { target: 'tensors' })).toEqual([[], []]);
});

it('says what looks wrong', () => {
  expect(found('')[1]).toEqual(['routes.r.targets[0].backend']);
  expect(found('prepare: { delay: 600ms }')[1]).toEqual(['routes.r.prepare.delay']);
});
