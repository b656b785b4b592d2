import { describe, expect, it } from 'vitest';
import { backendOf, startArmature } from '../upstream/armature.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { answerByPath, chat, chunk, usageChunk } from '../upstream/scripts.ts';
import { openaiOf } from './openai-client.ts';

/** Kept, shared and joined answers over real sockets, as clients see them. */

const ZERO = { temperature: 0 };
const call = (id: string, index: number, more: object) => chunk({ tool_calls: [{ index, id, ...more }] });

const tools: Script = async (x) => {
  await x.sseHead();
  const events = [
    chunk({ role: 'assistant', content: '' }),
    call('a', 0, { type: 'function', function: { name: 'f', arguments: '{"x"' } }),
    call('b', 1, { type: 'function', function: { name: 'g', arguments: '{}' } }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
    chunk({}, 'tool_calls'),
    usageChunk(7, 3),
  ];
  for (const event of events) await x.event(event);
  await x.event('[DONE]');
  await x.end();
};

async function world(script: Script, route: object, more: object = {}) {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine(script));
  const armature = stack.use(
    await startArmature({
      backends: { b1: backendOf(engine), t1: backendOf(engine, { engine: 'triton' }) },
      routes: {
        chat: { targets: [{ backend: 'b1' }], ...route },
        tensor: { targets: [{ backend: 't1' }], ...route },
      },
      ...more,
    }),
  );
  const openai = openaiOf(armature);
  return { engine, armature, openai, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe('a kept answer', () => {
  it("is read by OpenAI's own package as the engine's was, streamed or not", async () => {
    await using it = await world(tools, { cache: {} });
    const messages = [{ role: 'user' as const, content: 'Hi' }];
    const request = { model: 'chat', messages, ...ZERO };
    const first = await it.openai.chat.completions.stream(request).finalChatCompletion();
    const second = await it.openai.chat.completions.stream(request).finalChatCompletion();
    const whole = await it.openai.chat.completions.create(request);
    expect(it.engine.posts).toHaveLength(1);
    const callsOf = (answer: typeof whole) =>
      answer.choices[0]!.message.tool_calls!.map((each) =>
        each.type === 'function' ? each.function.arguments : '',
      );
    for (const answer of [first, second, whole]) {
      expect(callsOf(answer)).toEqual(['{"x":1}', '{}']);
      expect(answer.choices[0]!.finish_reason).toBe('tool_calls');
    }
    expect(whole.usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 3 });
    const counted = await it.armature.chat({
      ...ZERO,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(counted.objects.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 7 } });
    expect([counted.done, counted.header('age'), counted.header('x-armature-backend')]).toEqual([
      true,
      '0',
      'b1',
    ]);
    expect(await it.armature.metric('armature_cache_total', { outcome: 'hit' })).toBe(3);
    expect(await it.armature.metric('armature_tokens_total', { kind: 'in' })).toBe(7);
  });

  it('stands in when the engine is gone, and why tells so', async () => {
    await using it = await world(chat(['Hel', 'lo']), { ladder: [{ cached: {} }] });
    await it.armature.chat({ stream: true });
    it.engine.die();
    const answer = await it.armature.chat();
    expect([answer.status, answer.text, answer.header('x-armature-degraded')]).toEqual([
      200,
      'Hello',
      'cached',
    ]);
    const why = await it.armature.why(answer.header('x-armature-id')!);
    expect(JSON.stringify(why)).toContain('an answer that b1 gave');
    await it.armature.idle();
  });
});

describe('requests in the air', () => {
  it('are asked once, and each caller gets the stream from its beginning', async () => {
    await using it = await world(chat(['one ', 'two ', 'three'], { gapMs: 30 }), { singleFlight: true });
    const bodies = Array.from({ length: 20 }, () => it.armature.chat({ ...ZERO, stream: true }));
    await it.engine.posted(1);
    const late = it.armature.chat({ ...ZERO, stream: true });
    for (const answer of await Promise.all([...bodies, late])) {
      expect([answer.text, answer.done]).toEqual(['one two three', true]);
    }
    expect(it.engine.posts).toHaveLength(1);
    await it.armature.idle();
  });
});

describe('embeddings and tensors of many callers', () => {
  it('go upstream together, and come back apart', async () => {
    await using it = await world(answerByPath, { batch: { delay: '200ms', max: 8 } });
    const embed = (input: unknown) =>
      it.armature.ask({ path: '/v1/embeddings', body: { model: 'chat', input, encoding_format: 'float' } });
    const infer = (rows: number[][]) =>
      it.armature.ask({
        path: '/v2/models/tensor/infer',
        body: { inputs: [{ name: 'x', datatype: 'FP32', shape: [rows.length, 2], data: rows }] },
      });
    const embedded = await Promise.all(['a', ['b', 'c'], 'd', ['e', 'f', 'g', 'h']].map(embed));
    expect(it.engine.posts).toHaveLength(1);
    expect(embedded.map((answer) => answer.json().data.length)).toEqual([1, 2, 1, 4]);
    const inferred = await Promise.all([
      infer([[1, 2]]),
      infer([
        [3, 4],
        [5, 6],
      ]),
      infer([
        [7, 8],
        [9, 10],
        [11, 12],
        [13, 14],
        [15, 16],
      ]),
    ]);
    expect(it.engine.posts).toHaveLength(2);
    expect(inferred.map((answer) => answer.json().outputs[0].data)).toEqual([
      [[1, 2]],
      [
        [3, 4],
        [5, 6],
      ],
      [
        [7, 8],
        [9, 10],
        [11, 12],
        [13, 14],
        [15, 16],
      ],
    ]);
    const raw = (values: number[]) => {
      const tensor = Buffer.from(new Float32Array(values).buffer);
      const shape = [values.length];
      const input = { name: 'x', datatype: 'FP32', shape, parameters: { binary_data_size: tensor.length } };
      const json = Buffer.from(JSON.stringify({ inputs: [input] }));
      const headers: [string, string][] = [
        ['Content-Type', 'application/octet-stream'],
        ['Inference-Header-Content-Length', String(json.length)],
      ];
      const body = Buffer.concat([json, tensor]);
      return it.armature.ask({ path: '/v2/models/tensor/infer', body, headers });
    };
    const sent = [[1, 2], [3], [4, 5, 6], [7, 8]];
    const got = await Promise.all(sent.map(raw));
    expect(it.engine.posts).toHaveLength(3);
    for (const [at, answer] of got.entries()) {
      const jsonBytes = Number(answer.header('inference-header-content-length'));
      expect(JSON.parse(answer.body.toString('utf8', 0, jsonBytes)).outputs[0].shape).toEqual([
        sent[at]!.length,
      ]);
      expect(answer.body.subarray(jsonBytes)).toEqual(Buffer.from(new Float32Array(sent[at]!).buffer));
    }
    expect(await it.armature.metric('armature_joined_total', { how: 'batch' })).toBe(11);
    expect(await it.armature.metric('armature_requests_total', { outcome: 'ok' })).toBe(11);
    await it.armature.idle();
  });
});
