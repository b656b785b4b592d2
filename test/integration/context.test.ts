import { join } from 'node:path';
import { BadRequestError, type OpenAI } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { Profiles } from '../../src/pipelines/context/profile.ts';
import { promptOf } from '../../src/pipelines/context/prompt.ts';
import { openTokenizer } from '../../src/pipelines/preprocessing/tokenizer.ts';
import { type Armature, backendOf, startArmature } from '../upstream/armature.ts';
import { type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { chat } from '../upstream/scripts.ts';
import { openaiOf } from './openai-client.ts';

/** A conversation that goes on over models with other tokenizers, templates and windows, by OpenAI's own package. */

const SMALL = join(import.meta.dirname, '../context/reference/small');
const FACT = 'The code of the safe is 7351-teal.';
const RESERVE = 40;
const MODELS = [
  { name: 'bytes', window: 420 },
  { name: 'pieces', window: 1100 },
  { name: 'words', window: 2600 },
] as const;

/** Counts what was sent as the reference does; test/context/reference.test.ts says that it does. */
const counters = new Map(
  MODELS.map(({ name, window }) => {
    const file = join(SMALL, name, 'tokenizer.json');
    const settings = { engine: 'vllm', context: { window, tokenizer: { file } } } as never;
    const profile = new Profiles(undefined, systemClock).of(settings);
    const tokenizer = openTokenizer(file);
    return [
      name as string,
      (body: { messages: never[] }) =>
        tokenizer.encode(promptOf(profile, body.messages, body as never)!.text, false, undefined).length,
    ];
  }),
);

describe('a conversation over three models', () => {
  const stack = new AsyncDisposableStack();
  const engines: ScriptedEngine[] = [];
  let armature: Armature;
  let openai: OpenAI;

  beforeAll(async () => {
    const backends: Record<string, object> = {};
    const routes: Record<string, object> = {};
    for (const { name, window } of MODELS) {
      const engine = stack.use(await startEngine());
      engine.script = async (x) => {
        const { messages } = x.request.json();
        await chat([`Answer number ${messages.length} of ${name}, with some words more.`])(x);
      };
      engines.push(engine);
      const context = { window, reserve: RESERVE, tokenizer: { file: join(SMALL, name, 'tokenizer.json') } };
      backends[name] = backendOf(engine, { engine: 'vllm', model: name, context });
      routes[name] = {
        targets: [{ backend: name }],
        deadline: '20s',
        context: { keep: { first: 0, last: 2 } },
      };
    }
    armature = stack.use(await startArmature({ gateway: { workers: 2 }, backends, routes } as never));
    openai = openaiOf(armature, { defaultHeaders: { connection: 'close' } });
  });
  afterAll(() => stack.disposeAsync());

  it('of 60 turns and 20 moves tells every model what was pinned in the first, within its window, by exact counts', async () => {
    const conversation = await openai.conversations.create();
    let left = 0;
    for (let turn = 0; turn < 60; turn++) {
      const at = Math.floor(turn / 3) % MODELS.length;
      const { name, window } = MODELS[at]!;
      const said =
        turn === 0 ? FACT : `Question ${turn}: and what of number ${turn * 37}? ${'Well. '.repeat(turn % 7)}`;
      const message = { role: 'user', content: said, ...(turn === 0 ? { armature: { pinned: true } } : {}) };
      const { data, response } = await openai.responses
        .create({ model: name, conversation: conversation.id, input: [message] as never, stream: false })
        .withResponse();
      expect(data.output_text).toMatch(/^Answer number/);
      const sent = engines[at]!.posts.at(-1)!;
      const body = sent.json();
      const texts: string[] = body.messages.map(({ content }: { content: string }) => content);
      expect(texts[0]).toBe(FACT);
      expect(texts.at(-1)).toBe(said);
      expect(sent.body.toString()).not.toContain('armature');
      const tokens = counters.get(name)!(body);
      expect(tokens).toBeLessThanOrEqual(window - RESERVE);
      const whole = body.messages.length === 2 * turn + 1;
      if (!whole) left++;
      if (turn % 5 !== 2) continue; // what the record says takes a command each
      const { steps } = await armature.why(response.headers.get('x-armature-id')!);
      const step = steps.find(({ code }: { code: string }) => code.startsWith('context-'));
      expect(step.code).toBe(whole ? 'context-whole' : 'context-dropped');
      expect(step.figures).toMatchObject({ tokens, counted: 'exactly', by: 'tokenizer', window });
    }
    expect(left).toBeGreaterThan(20);
    await armature.idle();
  }, 180_000);

  it('keeps tools and their results together, and refuses aloud what is too long', async () => {
    const tools = [
      { type: 'function', name: 'f', parameters: { type: 'object', properties: {} }, strict: false },
    ];
    const input: object[] = [];
    for (let round = 0; round < 80; round++) {
      input.push({ role: 'user', content: `Look number ${round} up, please.` });
      input.push({ type: 'function_call', call_id: `call_${round}`, name: 'f', arguments: '{"n":1}' });
      input.push({
        type: 'function_call_output',
        call_id: `call_${round}`,
        output: `found ${round} `.repeat(4),
      });
      input.push({ role: 'assistant', content: `It is ${round}.` });
    }
    input.push({ role: 'user', content: 'Thank you. And what was the last one?' });
    await openai.responses.create({ model: 'words', input, tools } as never);
    const { messages } = engines[2]!.posts.at(-1)!.json() as { messages: Record<string, never>[] };
    expect(messages.length).toBeLessThan(321);
    const calls = messages.flatMap(({ tool_calls: calls }) =>
      ((calls ?? []) as { id: string }[]).map(({ id }) => id),
    );
    const results = messages.flatMap(({ tool_call_id: id }) => id ?? []);
    expect(calls.length).toBeGreaterThan(3);
    expect(results).toEqual(calls);
    const long = openai.responses.create({ model: 'bytes', input: 'long '.repeat(2000) });
    await expect(long).rejects.toBeInstanceOf(BadRequestError);
    await expect(long).rejects.toMatchObject({ code: 'invalid_request', param: 'input' });
    await armature.idle();
  });
});
