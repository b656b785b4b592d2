import { describe, expect, it, test } from 'vitest';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

function loaded(text: string) {
  const files = { 'armature.yaml': text, 't.json': '{"model": {}}', 'm.gguf': 'GGUF', 't.jinja': '' };
  return loadConfig('armature.yaml', filesInMemory(files));
}

function faultsOf(text: string): string[] {
  const found = loaded(text);
  return found.ok ? [] : found.faults.map(({ path, message }) => `${path}: ${message}`);
}

const backend = (context: string, engine = 'engine: vllm, endpoints: ["http://a/v1"]') =>
  `models: { m: { format: gguf, from: ["file:/m"] } }\nbackends: { b: { ${engine}, model: m, context: ${context} } }\n`;
const LOCAL = 'engine: local';

test.each([
  [backend('{ window: 4096 }')],
  [backend('{ window: 4096, tokenizer: { file: t.json }, template: t.jinja, reserve: 4095 }')],
  [backend('{ tokenizer: { model: m } }')],
  [backend('{ tokenizer: engine }')],
  [backend('{ window: 1024 }', LOCAL)],
  [backend('{ tokenizer: engine }', LOCAL)],
  [backend('{ accepts: [] }')],
])('is taken: %s', (text) => {
  expect(faultsOf(text)).toEqual([]);
});

test.each([
  [
    backend('{ tokenizer: engine }', 'engine: ollama, endpoints: ["http://a/v1"]'),
    'backends.b.context.tokenizer: no way is known to ask ollama for the tokens of a chat',
  ],
  [
    backend('{ tokenizer: { model: m } }', LOCAL),
    'backends.b.context.tokenizer: the host of a local model counts by the model file itself',
  ],
  [
    backend('{ window: 100, reserve: 100 }'),
    'backends.b.context.reserve: a window of 100 tokens has no room for a prompt beside 100 kept for the answer',
  ],
  [backend('{ tokenizer: { model: n } }'), 'backends.b.context.tokenizer.model: there is no model "n"'],
])('is refused: %s', (text, fault) => {
  expect(faultsOf(text)).toEqual([fault]);
});

describe('summaries', () => {
  const routes = (a: string, b: string) =>
    `${backend('{ window: 100 }')}routes:\n  a: { targets: [{ backend: b }], context: ${a} }\n  b: { targets: [{ backend: b }], context: ${b} }\n`;

  it('are made by another route, which has none made itself', () => {
    const made = '{ middle: { summarise: b } }';
    expect(faultsOf(routes(made, '{}'))).toEqual([]);
    expect(faultsOf(routes('{}', made))).toEqual([
      'routes.b.context.middle.summarise: a route cannot make summaries for itself',
    ]);
    expect(faultsOf(routes(made, '{ middle: { summarise: a } }'))).toHaveLength(2);
    expect(faultsOf(routes('{ middle: { summarise: c } }', '{}'))).toEqual([
      'routes.a.context.middle.summarise: there is no route "c"',
    ]);
  });
});

it('says that a tokenizer.json tells no window', () => {
  const found = loaded(backend('{ tokenizer: { file: t.json } }'));
  expect(found.ok && found.config.notices.map(({ message }) => message)).toEqual([
    'a tokenizer.json tells no window: without one, conversations are sent whole',
  ]);
});

it('takes tokenizers of any size, and none that is not there', () => {
  const large = backend('{ window: 100, tokenizer: { file: m.gguf } }');
  const files = { 'armature.yaml': large, 'm.gguf': `GGUF${'\0'.repeat(3_000_000)}` };
  expect(loadConfig('armature.yaml', filesInMemory(files)).ok).toBe(true);
  expect(faultsOf(backend('{ window: 100, tokenizer: { file: gone.json } }'))).toEqual([
    expect.stringMatching(/^backends\.b\.context\.tokenizer\.file: the file .*gone\.json does not exist$/),
  ]);
});

it.each([
  ['', 'is empty'],
  ['version https://git-lfs.github.com/spec/v1', 'is neither a tokenizer.json nor a GGUF file'],
  ['{"a": 1}', 'is no tokenizer.json: it has no "model"'],
  ['{"model": {"vocab": {"a": 1', 'is no whole tokenizer.json: its end is missing'],
])('takes no tokenizer that is %j', (content, cause) => {
  const text = backend('{ window: 100, tokenizer: { file: other.json } }');
  const found = loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text, 'other.json': content }));
  expect(found.ok ? [] : found.faults.map(({ message }) => message)).toEqual([
    expect.stringContaining(cause),
  ]);
});

it('takes no chat template that cannot be read', () => {
  const text = backend('{ window: 100, template: broken.jinja }');
  const broken = (content: string) => {
    const found = loadConfig(
      'armature.yaml',
      filesInMemory({ 'armature.yaml': text, 'broken.jinja': content }),
    );
    return found.ok ? [] : found.faults.map(({ message }) => message);
  };
  expect(broken('{% for m in messages %}{{ m.content }}{% endfor %}')).toEqual([]);
  expect(broken('{% for m in messages %}{{ m.content }}')).toEqual([
    expect.stringMatching(/is no chat template: it ends within a block$/),
  ]);
  expect(broken('{{ messages[0] ')).toEqual([expect.stringMatching(/is no chat template: /)]);
});
