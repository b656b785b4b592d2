import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HostServer } from '../../../src/hosts/contracts.ts';
import { serveLlama } from '../../../src/hosts/llama/index.ts';
import { eventually } from '../../upstream/waiting.ts';
import { gaugesOf, localOrder, realModels } from './real-models.ts';

const CONTEXT = 512;
const SEQUENCES = 4;
/** How long a step may take while other tests keep the machine busy. */
const BUSY_MS = 30_000;
const FRANCE = [{ role: 'user' as const, content: 'What is the capital of France?' }];
const LONG = [{ role: 'user' as const, content: 'Write a very long story about the sea and the wind.' }];

let host: HostServer | undefined;
let client: OpenAI;
let missing: string | undefined;

beforeAll(async () => {
  const models = await realModels();
  if (typeof models === 'string') {
    if (process.env['CI']) throw new Error(models);
    missing = models;
    return;
  }
  const order = localOrder('chat-model', { sequences: SEQUENCES, contextTokensMax: CONTEXT });
  host = await serveLlama({ ...order, modelPath: models.chat });
  client = new OpenAI({ baseURL: host.address, apiKey: 'none', maxRetries: 0 });
});
beforeEach((context) => {
  if (missing !== undefined) context.skip(missing);
});
afterAll(() => host?.close(0));

function post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(host!.address + path, {
    method: 'POST',
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

async function refusal(path: string, body: object) {
  const answer = await post(path, body);
  return {
    status: answer.status,
    ...((await answer.json()) as { error: { message: string; param: string; code: string } }).error,
  };
}

describe('a chat with a real model', () => {
  it('is answered whole, with usage', async () => {
    const answer = await client.chat.completions.create({ model: 'm', messages: FRANCE, max_tokens: 12 });
    expect(answer.object).toBe('chat.completion');
    expect(answer.model).toBe('chat-model');
    expect(answer.choices[0]!.message).toMatchObject({ role: 'assistant' });
    expect(answer.choices[0]!.message.content).not.toBe('');
    const { prompt_tokens: prompt, completion_tokens: made, total_tokens: total } = answer.usage!;
    expect(prompt).toBeGreaterThan(10);
    expect(made).toBeLessThanOrEqual(12);
    expect(total).toBe(prompt + made);
  });

  it('has as many tokens as the host tells beforehand', async () => {
    for (const content of ['What?', '\t\tindented <|im_end|> and 123 Ⅷ', '你好\n\n👩‍👩‍👧']) {
      const messages = [{ role: 'user' as const, content }];
      const told = await fetch(host!.address.replace(/\/v1$/, '/tokenize'), {
        method: 'POST',
        body: JSON.stringify({ model: 'm', messages, add_generation_prompt: true }),
      });
      const { count, max_model_len } = (await told.json()) as { count: number; max_model_len: number };
      const answer = await client.chat.completions.create({ model: 'm', messages, max_tokens: 1 });
      expect([count, max_model_len]).toEqual([answer.usage!.prompt_tokens, CONTEXT]);
    }
  });

  it('is streamed in the pieces and the order of the API', async () => {
    const answer = await post('/chat/completions', {
      messages: FRANCE,
      max_tokens: 6,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    const events = (await answer.text()).split('\n\n').filter((event) => event !== '');
    expect(events.at(-1)).toBe('data: [DONE]');
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)));
    expect(new Set(chunks.map(({ id, created }) => `${id} ${created}`)).size).toBe(1);
    expect(chunks[0].choices[0].delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks.at(-2).choices[0]).toMatchObject({ delta: {}, finish_reason: expect.any(String) });
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: expect.any(Number) } });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
  });

  it('says the same whether streamed or not, at temperature 0', async () => {
    const asked = { model: 'm', messages: FRANCE, temperature: 0, seed: 1, max_tokens: 16 };
    const whole = await client.chat.completions.create(asked);
    let text = '';
    for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe(whole.choices[0]!.message.content);
  });

  it('repeats with a seed', async () => {
    const ask = async (seed: number) => {
      const answer = await client.chat.completions.create({
        model: 'm',
        messages: LONG,
        seed,
        max_tokens: 24,
      });
      return answer.choices[0]!.message.content;
    };
    const first = await ask(11);
    expect(await ask(12)).not.toBe(first);
    expect(await ask(11)).toBe(first);
  });

  it('ends before a stop string, and tells so', async () => {
    const asked = { model: 'm', messages: LONG, temperature: 0, seed: 1, max_tokens: 40 };
    const whole = (await client.chat.completions.create(asked)).choices[0]!.message.content!;
    const word = whole.split(' ')[6]!;
    const cut = await client.chat.completions.create({ ...asked, stop: ['no such words', word] });
    expect(cut.choices[0]!.finish_reason).toBe('stop');
    expect(cut.choices[0]!.message.content).toBe(whole.slice(0, whole.indexOf(word)));
  });

  it('fits a JSON schema, unions, references and lists included', async () => {
    const schema = {
      type: 'object',
      $defs: { animal: { enum: ['cat', 'dog'] } },
      properties: {
        animal: { $ref: '#/$defs/animal' },
        legs: { type: 'integer' },
        owner: { anyOf: [{ type: 'null' }, { enum: ['Ada', 'Bob'] }] },
      },
      required: ['animal', 'legs', 'owner'],
      additionalProperties: false,
    };
    const answer = await client.chat.completions.create({
      model: 'm',
      messages: [{ role: 'user', content: 'Describe a pet.' }],
      max_tokens: 120,
      temperature: 0,
      response_format: { type: 'json_schema', json_schema: { name: 'pet', schema } },
    });
    const pet = JSON.parse(answer.choices[0]!.message.content!);
    expect(['cat', 'dog']).toContain(pet.animal);
    expect(Number.isInteger(pet.legs)).toBe(true);
    expect([null, 'Ada', 'Bob']).toContain(pet.owner);
    expect(answer.choices[0]!.finish_reason).toBe('stop');
  });

  it('tells log-probabilities: no token is likelier than the likeliest', async () => {
    const answer = await client.chat.completions.create({
      model: 'm',
      messages: FRANCE,
      temperature: 0,
      max_tokens: 4,
      logprobs: true,
      top_logprobs: 3,
    });
    const tokens = answer.choices[0]!.logprobs!.content!;
    expect(tokens).toHaveLength(4);
    for (const { token, logprob, top_logprobs: top } of tokens) {
      expect(top).toHaveLength(3);
      expect(top[0]!.token).toBe(token);
      expect(top[0]!.logprob).toBeCloseTo(logprob, 5);
      expect(logprob).toBeLessThanOrEqual(0);
      expect(top.reduce((sum, other) => sum + Math.exp(other.logprob), 0)).toBeLessThanOrEqual(1.0001);
    }
    expect(tokens.map(({ token }) => token).join('')).toBe(answer.choices[0]!.message.content);
  });

  it('reuses what the last turn of a conversation has left', async () => {
    const answer = await client.chat.completions.create({ model: 'm', messages: LONG, max_tokens: 5 });
    const messages = [
      ...LONG,
      { role: 'assistant' as const, content: answer.choices[0]!.message.content! },
      { role: 'user' as const, content: 'Go on.' },
    ];
    const next = await client.chat.completions.create({ model: 'm', messages, max_tokens: 5 });
    expect(next.usage!.prompt_tokens_details!.cached_tokens).toBeGreaterThan(20);
  });

  it('leaves what looks like a special token in a message as the text it is', async () => {
    const tokens = async (content: string) =>
      (
        await client.chat.completions.create({
          model: 'm',
          messages: [{ role: 'user', content }],
          max_tokens: 1,
        })
      ).usage!.prompt_tokens;
    expect((await tokens('<|im_end|>')) - (await tokens(''))).toBeGreaterThan(3);
  });
});

describe('completions', () => {
  it('go on with a text, or with tokens', async () => {
    const answer = await client.completions.create({
      model: 'm',
      prompt: 'One, two, three,',
      max_tokens: 4,
      logprobs: 1,
    });
    expect(answer.object).toBe('text_completion');
    expect(answer.choices[0]!.text).not.toBe('');
    expect(answer.choices[0]!.logprobs!.tokens!.join('')).toBe(answer.choices[0]!.text);
    const ofTokens = await client.completions.create({ model: 'm', prompt: [504, 2786, 314], max_tokens: 2 });
    expect(ofTokens.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 2 });
  });
});

describe('what cannot be done', () => {
  it('is refused in the words of the API when the context is too small', async () => {
    const long = await refusal('/chat/completions', {
      messages: [{ role: 'user', content: 'word '.repeat(CONTEXT) }],
    });
    expect(long).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
    });
    expect(long.message).toContain(`maximum context length is ${CONTEXT} tokens`);
    const vast = await refusal('/chat/completions', {
      messages: [{ role: 'user', content: 'word '.repeat(1_000_000) }],
    });
    expect(vast).toMatchObject({ status: 400, code: 'context_length_exceeded' });
    const much = await refusal('/chat/completions', { messages: FRANCE, max_tokens: CONTEXT });
    expect(much).toMatchObject({ status: 400, code: 'context_length_exceeded' });
  });

  it.each([
    ['no messages', {}, 'messages'],
    ['an empty list', { messages: [] }, 'messages'],
    ['an unknown role', { messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].role'],
    ['an image', { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages[0].content'],
    ['two answers', { messages: FRANCE, n: 2 }, 'n'],
    ['a temperature in words', { messages: FRANCE, temperature: 'hot' }, 'temperature'],
    ['tools', { messages: FRANCE, tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools'],
    ['too many alternatives', { messages: FRANCE, logprobs: true, top_logprobs: 21 }, 'top_logprobs'],
  ])('is a bad request: %s', async (_what, body, param) => {
    expect(await refusal('/chat/completions', body)).toMatchObject({ status: 400, param });
  });

  it('is a bad request: a schema that no grammar can hold', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string', pattern: '^x' } } };
    const said = await refusal('/chat/completions', {
      messages: FRANCE,
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
    });
    expect(said).toMatchObject({ status: 400, message: expect.stringContaining("'pattern'") });
  });

  it('is a bad request: a member that nobody knows; one that means nothing here is passed over', async () => {
    for (const path of ['/chat/completions', '/completions']) {
      const body = path === '/completions' ? { prompt: 'a' } : { messages: FRANCE };
      expect(await refusal(path, { ...body, temperatur: 0 })).toMatchObject({
        status: 400,
        type: 'invalid_request_error',
        code: 'unknown_parameter',
        param: 'temperatur',
      });
      const passed = { ...body, max_tokens: 1, user: 'u', metadata: { a: 'b' }, store: false };
      expect((await post(path, passed)).status).toBe(200);
    }
  });
});

describe('several at once', () => {
  it('are generated together, and those beyond the sequences wait', async () => {
    let waitedMost = 0;
    let ranMost = 0;
    const answers = Promise.all(
      Array.from({ length: 2 * SEQUENCES }, (_, at) =>
        client.chat.completions.create({
          model: 'm',
          messages: [{ role: 'user', content: `Tell me about the number ${at}.` }],
          max_tokens: 16,
        }),
      ),
    );
    await eventually(
      'some wait and some run',
      async () => {
        const { waiting, running } = await gaugesOf(host!.address);
        waitedMost = Math.max(waitedMost, waiting!);
        ranMost = Math.max(ranMost, running!);
        return waitedMost > 0 && ranMost === SEQUENCES;
      },
      BUSY_MS,
    );
    for (const { choices } of await answers) expect(choices[0]!.message.content).not.toBe('');
    expect(await gaugesOf(host!.address)).toEqual({ waiting: 0, running: 0, cache_used: 0 });
  });

  it('do not hold up one that comes later until they have ended', async () => {
    const ask = (content: string, max_tokens: number) =>
      client.chat.completions.create({ model: 'm', messages: [{ role: 'user', content }], max_tokens });
    // Once around, so that every sequence holds what has to be forgotten first.
    await Promise.all(Array.from({ length: SEQUENCES }, (_, at) => ask(`What is ${at}?`, 2)));
    const ended: string[] = [];
    const long = Array.from({ length: SEQUENCES - 1 }, async (_, at) => {
      await ask(`Tell me a long story about the number ${at}.`, 120);
      ended.push('long');
    });
    const running = async () => (await gaugesOf(host!.address)).running === SEQUENCES - 1;
    await eventually('the long ones run', running, BUSY_MS);
    await ask('And you?', 2);
    ended.push('short');
    await Promise.all(long);
    expect(ended[0]).toBe('short');
  });

  it('a caller that leaves stops its generation, whether it is being read or answered', async () => {
    for (const messages of [LONG, [{ role: 'user', content: 'word '.repeat(CONTEXT / 2) }]]) {
      const leaving = new AbortController();
      const asked = post('/chat/completions', { messages, stream: true }, leaving.signal).catch(
        () => undefined,
      );
      await eventually(
        'it is being generated',
        async () => (await gaugesOf(host!.address)).running === 1,
        BUSY_MS,
      );
      leaving.abort();
      await asked;
      await eventually('it has stopped', async () => (await gaugesOf(host!.address)).running === 0, BUSY_MS);
    }
  });

  it('callers that leave while they wait give up their turn', async () => {
    const leaving = new AbortController();
    const asked = Array.from({ length: SEQUENCES + 3 }, () =>
      post('/chat/completions', { messages: LONG }, leaving.signal).catch(() => undefined),
    );
    await eventually('three wait', async () => (await gaugesOf(host!.address)).waiting === 3, BUSY_MS);
    leaving.abort();
    await Promise.all(asked);
    await eventually(
      'nobody is left',
      async () => {
        const { waiting, running } = await gaugesOf(host!.address);
        return waiting === 0 && running === 0;
      },
      BUSY_MS,
    );
  });
});
