import { expect, test } from 'vitest';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

function loaded(drift: string) {
  const text = `backends:
  words: { engine: vllm, model: s, endpoints: ["http://a/v1"] }
  tensors: { engine: triton, model: t, endpoints: ["http://b"] }
routes:
  chat: { targets: [{ backend: words }], drift: ${drift} }
  infer: { targets: [{ backend: tensors }], drift: { features: ["output:label", class], score: p } }
`;
  return loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text }));
}

test.each([
  ['{}'],
  ['{ features: [answerLanguage, confidence, entropy], cycle: 24h, hook: { command: [train] } }'],
])('is taken: %s', (drift) => {
  const result = loaded(drift);
  expect(result.ok && result.config.notices).toEqual([]);
});

test.each([
  ['{ features: [confidence, confidence] }', 'routes.chat.drift.features[1]', 'named twice'],
  ['{ features: [class] }', 'routes.chat.drift.features[0]', 'score names none'],
  ['{ features: [tokens] }', 'routes.chat.drift.features[0]', 'expected promptTokens'],
  ['{ hook: { url: "http://a", command: [b] } }', 'routes.chat.drift.hook', 'either url or command'],
  ['{ reference: { size: 50 } }', 'routes.chat.drift.reference.size', '200 or more'],
])('is refused: %s', (drift, path, words) => {
  const result = loaded(drift);
  const faults = result.ok ? [] : result.faults.map((fault) => `${fault.path}: ${fault.message}`);
  expect(faults.join('\n')).toContain(path);
  expect(faults.join('\n')).toContain(words);
});

test.each([
  ['{ features: ["input:x"] }', 'answers with input:x'],
  ['{ freshRows: 10000 }', 'found again by chance alone'],
])('is noticed: %s', (drift, words) => {
  const result = loaded(drift);
  expect(result.ok ? result.config.notices.map(({ message }) => message).join() : 'refused').toContain(words);
});
