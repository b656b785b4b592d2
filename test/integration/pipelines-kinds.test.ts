// biome-ignore-all lint/suspicious/noExplicitAny: bodies as they were sent, which the tests judge.
import { describe, expect, test } from 'vitest';
import { backendOf, type Config, startArmature } from '../upstream/armature.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chat, never } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';
import { openaiOf } from './openai-client.ts';

/** Stages of vectors, tensors and chat in one pipeline, over real sockets and several workers. */

const WORDS = ['rain', 'sun', 'train', 'rome'];
const vectorOf = (text: string) => WORDS.map((word) => text.toLowerCase().split(word).length - 0.9);

const vectors: Script = async (x) => {
  const { input } = x.request.json();
  const data = [input]
    .flat()
    .map((text: string, index: number) => ({ object: 'embedding', index, embedding: vectorOf(text) }));
  await x.json({ object: 'list', model: 'v', data, usage: { prompt_tokens: 1, total_tokens: 1 } });
};

/** A cross-encoder: how many letters of the query a passage has. */
const scores: Script = async (x) => {
  const { inputs } = x.request.json();
  const [query, passages] = inputs as { data: string[] }[];
  const data = passages!.data.map(
    (passage) => [...query!.data[0]!].filter((letter) => passage.includes(letter)).length,
  );
  await x.json({
    model_name: 't',
    outputs: [{ name: 'score', datatype: 'FP32', shape: [data.length, 1], data }],
  });
};

const says =
  (say: (text: string) => string): Script =>
  async (x) =>
    chat([say(x.request.json().messages.at(-1).content)])(x);

const STAGES = {
  topic: {
    route: 'vectors',
    kind: 'embeddings',
    input: '{{ request.text }}',
    classes: { weather: ['rain', 'sun'], travel: ['train', 'rome'] },
  },
  query: { route: 'vectors', kind: 'embeddings', input: '{{ request.text }}' },
  docs: { route: 'vectors', kind: 'embeddings', inputs: 'request.body.documents' },
  near: { rank: { query: 'query', of: 'docs', top: 3 } },
  judged: {
    route: 'tensors',
    tensors: { query: { data: '{{ request.text }}' }, passages: { texts: 'stages.near.items', shape: 'n' } },
    after: ['near'],
  },
  best: { merge: { of: ['near', 'judged'], top: 2 } },
  sums: {
    route: 'chat',
    after: ['best'],
    each: 'stages.best.items',
    input: 'sum {{ loop.index }}: {{ item.text }}',
    onFailure: 'skip',
  },
  rainy: {
    route: 'chat',
    after: ['topic', 'sums'],
    when: 'stages.topic.class == "weather"',
    input: 'weather: {{ sums }}',
    stream: true,
  },
  other: {
    route: 'chat',
    after: ['topic', 'sums'],
    when: 'stages.topic.class != "weather"',
    input: '{{ topic }}: {{ sums }}',
    stream: true,
  },
  answer: { first: ['rainy', 'other'] },
};

async function world(scripts: { vectors: Script; tensors: Script; chat: Script }, more: Config = {}) {
  await using stack = new AsyncDisposableStack();
  const engines = {
    vectors: stack.use(await startEngine(scripts.vectors)),
    tensors: stack.use(await startEngine(scripts.tensors)),
    chat: stack.use(await startEngine(scripts.chat)),
  };
  const route = (backend: string) => ({ targets: [{ backend }], deadline: '20s' });
  const armature = stack.use(
    await startArmature({
      backends: {
        vectors: backendOf(engines.vectors),
        tensors: backendOf(engines.tensors, { engine: 'triton' }),
        chat: backendOf(engines.chat),
      },
      routes: { vectors: route('vectors'), tensors: route('tensors'), chat: route('chat') },
      pipelines: { search: { deadline: '10s', stages: STAGES } },
      ...more,
    }),
  );
  const openai = openaiOf(armature);
  const owned = stack.move();
  return { engines, armature, openai, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const documents = ['the sun shines', 'rain falls, and rain again', 'a train to Rome', 'rain on the train'];
const asked = (content: string, stream = false): any => ({
  model: 'search',
  messages: [{ role: 'user', content }],
  documents,
  stream,
});

describe('retrieval, ranking, summaries and an answer', () => {
  test('in one pipeline over three engines, whole, streamed and over OIP, by two workers', async () => {
    await using it = await world(
      { vectors, tensors: scores, chat: says((text) => `<${text}>`) },
      { gateway: { workers: 2 } },
    );
    const { openai, armature, engines } = it;
    const said = '<weather: <sum 1: rain falls, and rain again>\n<sum 2: rain on the train>>';
    for (let round = 0; round < 8; round++) {
      const answer = await openai.chat.completions.create(asked('rain'));
      expect(answer.choices[0]!.message.content).toBe(said);
    }
    let text = '';
    for await (const chunk of (await openai.chat.completions.create(asked('rain', true))) as any)
      text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe(said);
    const travel = await openai.chat.completions.create(asked('rome'));
    expect(travel.choices[0]!.message.content).toMatch(/^<travel: <sum 1: a train to Rome>/);

    const bytes = (name: string, data: string[]) => ({ name, datatype: 'BYTES', shape: [data.length], data });
    const response = await fetch(`http://127.0.0.1:${armature.gatewayPort}/v2/models/search/infer`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ inputs: [bytes('text', ['rain']), bytes('documents', documents)] }),
    });
    const { outputs } = (await response.json()) as any;
    expect(outputs).toEqual([{ name: 'text', datatype: 'BYTES', shape: [1], data: [said] }]);

    // The examples were asked for once by each worker at most.
    const learnt = engines.vectors.posts.filter(
      (post) => JSON.stringify(post.json().input) === '["rain","sun","train","rome"]',
    );
    expect(learnt.length).toBeGreaterThan(0);
    expect(learnt.length).toBeLessThanOrEqual(2);
    await armature.idle();
  });

  test('is left by its caller in the middle of many calls', async () => {
    await using it = await world({ vectors, tensors: scores, chat: never });
    const leaving = new AbortController();
    const answer = it.openai.chat.completions.create(asked('rain'), { signal: leaving.signal });
    await eventually('both summaries are asked for', () => it.engines.chat.active === 2);
    leaving.abort();
    await expect(answer).rejects.toThrow();
    await eventually('both are let go', () => it.engines.chat.active === 0);
    await it.armature.idle();
  });

  test('tells by why what was not run, how many items there were, and which class was found', async () => {
    await using it = await world({
      vectors,
      tensors: scores,
      chat: says((text) => text),
    });
    const { response } = await it.openai.chat.completions.create(asked('rain')).withResponse();
    const { stdout } = await it.armature.run('why', response.headers.get('x-armature-id')!);
    for (const words of [
      'Stage other was not run',
      'Stage sums asked for each item: 2 asked, 2 found',
      'Stage answer takes what rainy has said',
      'weather',
    ]) {
      expect(stdout).toContain(words);
    }
  });
});
