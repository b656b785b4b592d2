import { expect, it } from 'vitest';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

/** Where something looks wrong in a route of one backend with two endpoints and a deadline of a second. */
function looksWrong(route: string): string[] {
  const text = `backends:
  b1: { engine: vllm, model: m, endpoints: ["http://a:8000/v1", "http://b:8000/v1"] }
routes:
  chat: { targets: [{ backend: b1 }], deadline: 1s, ${route} }
`;
  const loaded = loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text }));
  if (!loaded.ok) throw new Error(loaded.faults.map(({ message }) => message).join());
  return loaded.config.notices.map(({ path }) => path);
}

it('says which rungs can never help', () => {
  expect(looksWrong('ladder: [{ answer: busy }, { cached: {} }]')).toEqual(['routes.chat.ladder[1]']);
  expect(looksWrong('ladder: [{ cached: {} }, { answer: busy }]')).toEqual([]);
  const outputs = (first: number, second: number) =>
    looksWrong(`ladder: [{ output: { tokensMax: ${first} } }, { output: { tokensMax: ${second} } }]`);
  expect(outputs(64, 64)).toEqual(['routes.chat.ladder[1].output.tokensMax']);
  expect(outputs(64, 8)).toEqual([]);
});

it('says which times lie behind the deadline', () => {
  expect(looksWrong('hedge: { after: 1s }')).toEqual(['routes.chat.hedge.after']);
  expect(looksWrong('hedge: { after: 900ms }')).toEqual([]);
  expect(looksWrong('batch: { delay: 501ms }')).toEqual(['routes.chat.batch.delay']);
  expect(looksWrong('batch: { delay: 500ms }')).toEqual([]);
});
