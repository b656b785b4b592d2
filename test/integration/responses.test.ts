import type OpenAI from 'openai';
import { BadRequestError, ConflictError, NotFoundError } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Armature, backendOf, startArmature } from '../upstream/armature.ts';
import { type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { cutStream, failWith } from '../upstream/scripts.ts';
import { openaiOf } from './openai-client.ts';
import { answersLast, callsTools, talk } from './responses-world.ts';

/** OpenAI's own package on `/v1/responses` and `/v1/conversations`, over two workers that share what is kept. */

const WEATHER = {
  type: 'function' as const,
  name: 'weather',
  description: 'The weather of a city.',
  strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

describe('responses by the official package, over two workers', () => {
  const stack = new AsyncDisposableStack();
  let engine: ScriptedEngine;
  let armature: Armature;
  let openai: OpenAI;
  let other: OpenAI;

  beforeAll(async () => {
    engine = stack.use(await startEngine());
    armature = stack.use(
      await startArmature({
        gateway: { workers: 2 },
        backends: { b1: backendOf(engine) },
        routes: { chat: { targets: [{ backend: 'b1' }], deadline: '20s' } },
        tenants: { web: {}, else: {} },
      }),
    );
    // A connection each: requests reach both workers.
    const defaultHeaders = { connection: 'close' };
    const client = async (tenant: string) =>
      openaiOf(armature, { apiKey: await armature.key(tenant), defaultHeaders });
    openai = await client('web');
    other = await client('else');
  });
  afterAll(() => stack.disposeAsync());
  beforeEach(() => {
    engine.script = answersLast();
  });

  it('goes on from a response, whichever worker has answered it', async () => {
    let previous: string | null = null;
    for (let turn = 0; turn < 10; turn++) {
      const response: OpenAI.Responses.Response = await openai.responses.create({
        model: 'chat',
        input: `t${turn}`,
        previous_response_id: previous,
      });
      expect(response.output_text).toBe(`answer:t${turn}`);
      expect(talk(engine.posts.at(-1)!)).toHaveLength(2 * turn + 1);
      previous = response.id;
    }
    const read = await openai.responses.retrieve(previous!);
    expect(read.output_text).toBe('answer:t9');
    expect((await armature.why(previous!)).subject).toMatch(/^request:/);
    const items = await openai.responses.inputItems.list(previous!);
    expect(items.data).toMatchObject([{ type: 'message', role: 'user', content: [{ text: 't9' }] }]);
    await openai.responses.delete(previous!);
    await expect(openai.responses.retrieve(previous!)).rejects.toBeInstanceOf(NotFoundError);
  });

  it('streams', async () => {
    const stream = openai.responses.stream({ model: 'chat', input: 'Hi' });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    const final = await stream.finalResponse();
    expect(final.output_text).toBe('answer:Hi');
    expect(final.usage).toMatchObject({ input_tokens: 5, output_tokens: 2, total_tokens: 7 });
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect((await openai.responses.retrieve(final.id)).output_text).toBe('answer:Hi');
  });

  it.each([false, true])('carries function calls there and back (stream: %s)', async (streamed) => {
    engine.script = callsTools;
    const body = { model: 'chat', input: 'weather?', tools: [WEATHER] };
    const first = streamed
      ? await openai.responses.stream(body).finalResponse()
      : await openai.responses.create(body);
    const output: OpenAI.Responses.ResponseOutputItem[] = first.output;
    const calls = output.filter((item) => item.type === 'function_call');
    expect(calls.map(({ call_id, arguments: words }) => [call_id, JSON.parse(words).city])).toEqual([
      ['call_A', 'Paris'],
      ['call_B', 'Köln "am" Rhein'],
    ]);
    const second = await openai.responses.create({
      model: 'chat',
      previous_response_id: first.id,
      tools: [WEATHER],
      input: calls.map(({ call_id }, at) => ({
        type: 'function_call_output',
        call_id,
        output: ['sun', 'rain'][at]!,
      })),
    });
    expect(second.output_text).toBe('said:sun+rain');
    const roles = engine.posts
      .at(-1)!
      .json()
      .messages.map(({ role }: { role: string }) => role);
    expect(roles).toEqual(['user', 'assistant', 'tool', 'tool']);
    // A call without its output would be refused by engines; it is refused here, in words.
    await expect(
      openai.responses.create({ model: 'chat', previous_response_id: first.id, input: 'never mind' }),
    ).rejects.toThrow(/no output for the call/);
  });

  it('keeps conversations', async () => {
    const conversation = await openai.conversations.create({
      metadata: { topic: 'demo' },
      items: [{ type: 'message', role: 'user', content: 'before' }],
    });
    for (const input of ['one', 'two']) {
      const response = await openai.responses.create({ model: 'chat', input, conversation: conversation.id });
      expect(response.conversation?.id).toBe(conversation.id);
    }
    expect(talk(engine.posts.at(-1)!).map(({ content }) => content)).toEqual([
      'before',
      'one',
      'answer:one',
      'two',
    ]);
    const items = await openai.conversations.items.list(conversation.id, { order: 'asc', limit: 2 });
    expect(items.data).toHaveLength(2);
    const all: string[] = [];
    for await (const item of items) {
      if (item.type === 'message') all.push(item.role);
    }
    expect(all).toEqual(['user', 'user', 'assistant', 'user', 'assistant']);

    const added = await openai.conversations.items.create(conversation.id, {
      items: [{ type: 'message', role: 'user', content: 'more' }],
    });
    const [item] = added.data;
    expect(
      await openai.conversations.items.retrieve(item!.id!, { conversation_id: conversation.id }),
    ).toEqual(item);
    await openai.conversations.items.delete(item!.id!, { conversation_id: conversation.id });
    const updated = await openai.conversations.update(conversation.id, { metadata: { topic: 'other' } });
    expect(updated.metadata).toEqual({ topic: 'other' });
    expect(await openai.conversations.retrieve(conversation.id)).toEqual(updated);
    expect(await openai.conversations.delete(conversation.id)).toMatchObject({ deleted: true });
    await expect(openai.conversations.retrieve(conversation.id)).rejects.toBeInstanceOf(NotFoundError);
  });

  it('keeps the line of a conversation whole with eight who write it at once', async () => {
    engine.script = answersLast(20);
    const { id } = await openai.conversations.create();
    let conflicts = 0;
    const write = async (input: string): Promise<void> => {
      try {
        await openai.responses.create({ model: 'chat', input, conversation: id });
      } catch (error) {
        if (!(error instanceof ConflictError)) throw error;
        expect(error.code).toBe('conflict');
        conflicts++;
        await write(input);
      }
    };
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        for (let turn = 0; turn < 3; turn++) await write(`w${writer}-${turn}`);
      }),
    );
    expect(conflicts).toBeGreaterThan(0);
    const said: string[] = [];
    for await (const item of await openai.conversations.items.list(id, { order: 'asc', limit: 100 })) {
      if (item.type === 'message' && 'text' in item.content[0]!) said.push(item.content[0].text);
    }
    expect(said).toHaveLength(48);
    for (let at = 0; at < said.length; at += 2) expect(said[at + 1]).toBe(`answer:${said[at]}`);
    for (let writer = 0; writer < 8; writer++) {
      const own = said.filter((text) => text.startsWith(`w${writer}-`));
      expect(own).toEqual([0, 1, 2].map((turn) => `w${writer}-${turn}`));
    }
    // What each was answered on was the line as it was then.
    for (const post of engine.posts.slice(-24)) {
      const turns = talk(post).map(({ content }) => content);
      expect(turns).toEqual(said.slice(0, turns.length));
    }
  });

  it('frees a conversation whose writer fails, leaves, or dies', async () => {
    const { id } = await openai.conversations.create();
    const write = (input: string, signal?: AbortSignal) =>
      openai.responses.create({ model: 'chat', input, conversation: id }, signal ? { signal } : {});
    engine.script = failWith(400, [], { error: { message: 'no', type: 'x', param: null, code: null } });
    await expect(write('fails')).rejects.toBeInstanceOf(BadRequestError);
    engine.script = answersLast(5_000);
    const leaving = new AbortController();
    const posts = engine.posts.length;
    const left = write('leaves', leaving.signal);
    await vi.waitFor(() => expect(engine.posts.length).toBeGreaterThan(posts));
    await expect(write('meanwhile')).rejects.toBeInstanceOf(ConflictError);
    leaving.abort();
    await expect(left).rejects.toThrow();
    const dying = vi.waitFor(() =>
      write('dies').catch((error) => {
        if (error instanceof ConflictError) throw error; // not given back yet
        return error as Error;
      }),
    );
    await vi.waitFor(() => expect(engine.posts.length).toBeGreaterThan(posts + 1), { timeout: 5000 });
    armature.kill('gateway-0');
    armature.kill('gateway-1');
    expect(await dying).toBeInstanceOf(Error);
    engine.script = answersLast();
    const after = await vi.waitFor(() => write('after'), { timeout: 10_000, interval: 100 });
    expect(after.output_text).toBe('answer:after');
    expect(talk(engine.posts.at(-1)!)).toHaveLength(1);
  });

  it('never keeps a failed response in a conversation, and tells it in a stream', async () => {
    const { id } = await openai.conversations.create();
    engine.script = cutStream(['One ', 'two '], 'reset');
    const stream = await openai.responses.create({
      model: 'chat',
      input: 'x',
      conversation: id,
      stream: true,
    });
    let failed: OpenAI.Responses.Response | undefined;
    for await (const event of stream) if (event.type === 'response.failed') failed = event.response;
    expect(failed).toMatchObject({ status: 'failed', error: { message: expect.any(String) } });
    expect(await openai.responses.retrieve(failed!.id)).toMatchObject({ status: 'failed' });
    expect((await openai.conversations.items.list(id)).data).toEqual([]);
    await expect(
      openai.responses.create({ model: 'chat', input: 'y', previous_response_id: failed!.id }),
    ).rejects.toThrow(/failed/);
  });

  it("tells nobody of another tenant's", async () => {
    const response = await openai.responses.create({ model: 'chat', input: 'secret' });
    const conversation = await openai.conversations.create({
      items: [{ type: 'message', role: 'user', content: 'secret' }],
    });
    const [item] = (await openai.conversations.items.list(conversation.id)).data;
    const posts = engine.posts.length;
    const tries: (() => Promise<unknown>)[] = [
      () => other.responses.retrieve(response.id),
      () => other.responses.inputItems.list(response.id),
      () => other.responses.delete(response.id),
      () => other.responses.create({ model: 'chat', input: 'x', previous_response_id: response.id }),
      () => other.responses.create({ model: 'chat', input: 'x', conversation: conversation.id }),
      () => other.responses.create({ model: 'chat', input: [{ type: 'item_reference', id: item!.id! }] }),
      () => other.conversations.retrieve(conversation.id),
      () => other.conversations.update(conversation.id, { metadata: {} }),
      () => other.conversations.items.list(conversation.id),
      () => other.conversations.items.retrieve(item!.id!, { conversation_id: conversation.id }),
      () => other.conversations.delete(conversation.id),
    ];
    for (const attempt of tries)
      await expect(attempt()).rejects.toMatchObject({ status: 404, code: 'not_found' });
    expect(engine.posts).toHaveLength(posts);
    expect((await openai.responses.retrieve(response.id)).output_text).toBe('answer:secret');
  });

  it('has what was answered after kill -9 of everything', async () => {
    const first = await openai.responses.create({ model: 'chat', input: 'one' });
    const second = await openai.responses
      .stream({ model: 'chat', input: 'two', previous_response_id: first.id })
      .finalResponse();
    for (const part of ['gateway-0', 'gateway-1', 'control']) armature.kill(part);
    const third = await vi.waitFor(
      () => openai.responses.create({ model: 'chat', input: 'three', previous_response_id: second.id }),
      { timeout: 15_000, interval: 100 },
    );
    expect(third.output_text).toBe('answer:three');
    expect(talk(engine.posts.at(-1)!).map(({ content }) => content)).toEqual([
      'one',
      'answer:one',
      'two',
      'answer:two',
      'three',
    ]);
    await armature.idle();
  });

  it('is listed, shown, exported and removed by command', async () => {
    const root = await openai.responses.create({ model: 'chat', input: 'root' });
    const leaf = await openai.responses.create({
      model: 'chat',
      input: 'leaf',
      previous_response_id: root.id,
    });
    const ls = await armature.run('sessions', 'ls', '--json');
    const { sessions } = JSON.parse(ls.stdout) as { sessions: { id: string }[] };
    expect(sessions.find(({ id }) => id === root.id)).toMatchObject({ tenant: 'web', turns: 2 });
    expect(sessions.find(({ id }) => id === leaf.id)).toBeUndefined();
    const shown = JSON.parse((await armature.run('sessions', 'show', root.id, '--json')).stdout);
    expect(shown.responses).toMatchObject([
      { id: root.id, backend: 'b1', model: 'engine-model', previous: null },
      { id: leaf.id, backend: 'b1', previous: root.id, input: [{ content: [{ text: 'leaf' }] }] },
    ]);
    const exported = (await armature.run('sessions', 'export', '--tenant', 'web')).stdout.trim().split('\n');
    expect(exported.map((line) => JSON.parse(line).id)).toContain(root.id);
    expect((await armature.run('sessions', 'rm', root.id)).exitCode).toBe(0);
    for (const id of [root.id, leaf.id])
      await expect(openai.responses.retrieve(id)).rejects.toBeInstanceOf(NotFoundError);
    expect((await armature.run('sessions', 'rm', root.id)).exitCode).toBe(1);
    expect(await armature.events('session-removed')).toMatchObject([{ subject: `session:${root.id}` }]);
  });
});
