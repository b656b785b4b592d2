import OpenAI, {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Armature, backendOf, freePort, startArmature } from '../upstream/armature.ts';
import { letGo, type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { answerByPath, chat, chunk, cutStream, endless, failWith, never } from '../upstream/scripts.ts';
import { openaiOf, thrown } from './openai-client.ts';

/** The official package, unchanged: only its address and its key are ours. */

const messages = [{ role: 'user' as const, content: 'Hi' }];

describe("OpenAI's own package", () => {
  const stack = new AsyncDisposableStack();
  let engine: ScriptedEngine;
  let armature: Armature;
  let openai: OpenAI;

  beforeAll(async () => {
    engine = stack.use(await startEngine());
    armature = stack.use(
      await startArmature({
        backends: { b1: backendOf(engine) },
        routes: {
          chat: { targets: [{ backend: 'b1' }], deadline: '20s' },
          hidden: { targets: [{ backend: 'b1' }] },
        },
        tenants: { web: { routes: ['chat'] } },
      }),
    );
    openai = openaiOf(armature, { apiKey: await armature.key('web') });
  });
  afterAll(() => stack.disposeAsync());
  beforeEach(() => {
    engine.script = answerByPath;
  });

  it('chats', async () => {
    const { data, response } = await openai.chat.completions
      .create({ model: 'chat', messages })
      .withResponse();
    expect(data.choices[0]!.message.content).toBe('Hello there');
    expect(data.usage?.total_tokens).toBe(7);
    expect(response.headers.get('x-armature-route')).toBe('chat');
    expect(engine.posts.at(-1)!.header('authorization')).toBeUndefined();
  });

  it('streams by async iteration', async () => {
    const stream = await openai.chat.completions.create({ model: 'chat', messages, stream: true });
    const deltas: string[] = [];
    for await (const event of stream) deltas.push(event.choices[0]!.delta.content ?? '');
    expect(deltas.join('')).toBe('Hello there');
  });

  it('gets usage in a stream when it asks for it', async () => {
    const stream = await openai.chat.completions.create({
      model: 'chat',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    const usages: unknown[] = [];
    for await (const event of stream) if (event.usage) usages.push(event.usage.total_tokens);
    expect(usages).toEqual([7]);
  });

  it('assembles streamed tool calls, and sends tools as they are', async () => {
    const tool = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] });
    engine.script = async (x) => {
      await x.sseHead();
      await x.event(chunk({ role: 'assistant', content: null }));
      await x.event(
        tool(0, { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }),
      );
      await x.event(tool(0, { function: { arguments: '{"city":' } }));
      await x.event(tool(0, { function: { arguments: '"Rome"}' } }));
      await x.event(tool(1, { id: 'call_b', type: 'function', function: { name: 'time', arguments: '{}' } }));
      await x.event(chunk({}, 'tool_calls'));
      await x.event('[DONE]');
      await x.end();
    };
    const parameters = { type: 'object', properties: { city: { type: 'string' } } };
    const tools = [{ type: 'function' as const, function: { name: 'weather', strict: true, parameters } }];
    const stream = openai.chat.completions.stream({
      model: 'chat',
      messages,
      tools,
      parallel_tool_calls: true,
    });
    const { choices } = await stream.finalChatCompletion();
    const calls = choices[0]!.message.tool_calls!.map((call) => call.type === 'function' && call.function);
    expect(calls).toMatchObject([
      { name: 'weather', arguments: '{"city":"Rome"}' },
      { name: 'time', arguments: '{}' },
    ]);
    expect(engine.posts.at(-1)!.json()).toMatchObject({ tools, parallel_tool_calls: true });
  });

  it('aborts by its controller, which cancels the engine at once', async () => {
    engine.script = endless();
    const stream = await openai.chat.completions.create({ model: 'chat', messages, stream: true });
    let seen = 0;
    for await (const _ of stream) if (++seen === 3) stream.controller.abort();
    expect(seen).toBe(3);
    await letGo(engine.posts.at(-1)!, 1000);

    engine.script = never;
    const count = engine.posts.length;
    const abort = new AbortController();
    const waiting = thrown(
      openai.chat.completions.create({ model: 'chat', messages }, { signal: abort.signal }),
    );
    const request = await engine.posted(count + 1);
    abort.abort();
    expect(await waiting).toBeInstanceOf(OpenAI.APIUserAbortError);
    await letGo(request, 1000);
  });

  it('completes and embeds, in the package’s own encoding', async () => {
    const completion = await openai.completions.create({ model: 'chat', prompt: 'x' });
    expect(completion.choices[0]!.text).toBe('Hello');
    const { data } = await openai.embeddings.create({ model: 'chat', input: ['a', 'b'] });
    expect(data.map((one) => one.embedding)).toEqual([
      [0.25, -0.5],
      [0.25, -0.5],
    ]);
    expect(engine.posts.at(-1)!.json().encoding_format).toBe('base64');
  });

  it('lists the routes that its key may call', async () => {
    const models: string[] = [];
    for await (const model of openai.models.list()) models.push(model.id);
    expect(models).toEqual(['chat']);
    expect((await openai.models.retrieve('chat')).id).toBe('chat');
    expect(await thrown(openai.models.retrieve('nowhere'))).toBeInstanceOf(NotFoundError);
  });

  it('throws its own typed errors', async () => {
    const create = (model = 'chat', client = openai) =>
      thrown(client.chat.completions.create({ model, messages }));
    expect(await create('nowhere')).toMatchObject({
      constructor: NotFoundError,
      code: 'unknown_route',
      param: 'model',
    });
    expect(await create('hidden')).toMatchObject({ constructor: PermissionDeniedError, code: 'forbidden' });
    const stranger = openai.withOptions({ apiKey: 'sk-not-a-key' });
    expect(await create('chat', stranger)).toMatchObject({
      constructor: AuthenticationError,
      code: 'unauthorized',
    });

    const reason = {
      message: 'too many tokens',
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    };
    engine.script = failWith(400, [], { error: reason });
    expect(await create()).toMatchObject({
      constructor: BadRequestError,
      ...reason,
      message: expect.stringContaining('too many tokens'),
    });
    engine.script = failWith(500);
    expect(await create()).toMatchObject({
      constructor: InternalServerError,
      status: 502,
      code: 'backend_error',
    });
  });

  it('learns from a refused engine when to come again', async () => {
    await using busy = await startEngine(failWith(429, [['Retry-After', '7']]));
    await using other = await startArmature({
      backends: { b1: backendOf(busy) },
      routes: { chat: { targets: [{ backend: 'b1' }] } },
    });
    const client = openaiOf(other);
    const error = (await thrown(client.chat.completions.create({ model: 'chat', messages }))) as APIError;
    expect([RateLimitError, InternalServerError]).toContain(error.constructor);
    expect(Number(error.headers!.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(Number(error.headers!.get('retry-after'))).toBeLessThanOrEqual(7);
  });

  it('throws where a stream breaks off, with what came before it', async () => {
    for (const how of ['fin', 'reset'] as const) {
      engine.script = cutStream(['one ', 'two '], how);
      const stream = await openai.chat.completions.create({ model: 'chat', messages, stream: true });
      let text = '';
      const read = async () => {
        for await (const event of stream) text += event.choices[0]!.delta.content ?? '';
      };
      expect(await thrown(read())).toBeInstanceOf(APIError);
      expect(text).toBe('one two ');
    }
  });

  it('retries by its own rules against an Armature that starts late', async () => {
    const nobody = openaiOf({ gatewayPort: await freePort() });
    expect(await thrown(nobody.models.list())).toBeInstanceOf(APIConnectionError);
    engine.script = chat(['late']);
    const answer = await openai
      .withOptions({ maxRetries: 2 })
      .chat.completions.create({ model: 'chat', messages });
    expect(answer.choices[0]!.message.content).toBe('late');
  });
});
