import { once } from 'node:events';
import { connect } from 'node:net';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema/index.ts';
import type { HostServer } from '../../src/hosts/contracts.ts';
import { type SimSettings, serveSim } from '../../src/hosts/sim/index.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';

const FAST = { prefillTokensPerSecond: 1_000_000, decodeTokensPerSecond: 2000 };

let host: HostServer | undefined;

afterEach(async () => {
  await host?.close(0);
  host = undefined;
});

async function serve(profile: object = {}): Promise<{ v1: string; origin: string; client: OpenAI }> {
  const settings = settingsSchema.parse({
    backends: { b: { engine: 'sim', model: 'sim', profile: { ...FAST, ...profile } } },
  }).backends.b as SimSettings;
  host = await serveSim({
    backend: 'b',
    settings,
    clock: systemClock,
    random: systemRandom,
    timers: systemTimers,
    note: () => {},
  });
  const client = new OpenAI({ baseURL: host.address, apiKey: 'none', maxRetries: 0 });
  return { v1: host.address, origin: host.address.replace(/\/v1$/, ''), client };
}

const messages = [{ role: 'user' as const, content: 'What is an armature?' }];

async function gauges(origin: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${origin}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(lines.map((line) => [line.split(' ')[0]!, Number(line.split(' ')[1])]));
}

describe('a simulated engine', () => {
  it('answers a chat with as many tokens as asked for, and the same words each time', async () => {
    const { client } = await serve();
    const ask = () => client.chat.completions.create({ model: 'sim', messages, max_tokens: 7 });
    const first = await ask();
    expect(first.choices[0]!.message.content!.split(' ')).toHaveLength(7);
    expect(first.choices[0]!.finish_reason).toBe('length');
    expect(first.usage).toEqual({ prompt_tokens: 8, completion_tokens: 7, total_tokens: 15 });
    const second = await ask();
    expect(second.choices).toEqual(first.choices);
    expect(second.id).not.toBe(first.id);
  });

  it('streams the same words, and usage only when asked', async () => {
    const { client } = await serve();
    const whole = await client.chat.completions.create({ model: 'sim', messages });
    for (const include_usage of [true, false]) {
      const stream = await client.chat.completions.create({
        model: 'sim',
        messages,
        stream: true,
        stream_options: { include_usage },
      });
      let text = '';
      let usage: unknown;
      const finishes: unknown[] = [];
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? '';
        if (chunk.choices[0]?.finish_reason) finishes.push(chunk.choices[0].finish_reason);
        if (chunk.usage) usage = chunk.usage;
      }
      expect(text).toBe(whole.choices[0]!.message.content);
      expect(finishes).toEqual(['stop']);
      expect(usage).toEqual(include_usage ? whole.usage : undefined);
    }
  });

  it('completes a prompt, and streams a completion', async () => {
    const { client } = await serve();
    const whole = await client.completions.create({ model: 'sim', prompt: 'Once', max_tokens: 3 });
    const stream = await client.completions.create({
      model: 'sim',
      prompt: 'Once',
      max_tokens: 3,
      stream: true,
    });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]!.text;
    expect(text).toBe(whole.choices[0]!.text);
  });

  it('embeds texts as unit vectors, the same for the same text', async () => {
    const { client, v1 } = await serve();
    const { data, usage } = await client.embeddings.create({ model: 'sim', input: ['one', 'two', 'one'] });
    expect(data.map((one) => one.index)).toEqual([0, 1, 2]);
    expect(data[0]!.embedding).toEqual(data[2]!.embedding);
    expect(data[0]!.embedding).not.toEqual(data[1]!.embedding);
    expect(Math.hypot(...data[0]!.embedding)).toBeCloseTo(1, 5);
    expect(usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
    const plain = await fetch(`${v1}/embeddings`, {
      method: 'POST',
      body: JSON.stringify({ model: 'sim', input: 'one', dimensions: 4 }),
    });
    const body = (await plain.json()) as { data: { embedding: number[] }[] };
    expect(body.data[0]!.embedding).toHaveLength(4);
  });

  it('refuses what an engine would refuse, with OpenAI’s error', async () => {
    const { client } = await serve({ kvTokensMax: 100 });
    const refused = async (request: object) =>
      client.chat.completions
        .create({ model: 'sim', messages, ...request } as OpenAI.ChatCompletionCreateParamsNonStreaming)
        .catch((error: InstanceType<typeof OpenAI.APIError>) => [error.status, error.code, error.param]);
    expect(await refused({ max_tokens: 100 })).toEqual([400, 'context_length_exceeded', 'messages']);
    expect(await refused({ max_tokens: 0 })).toEqual([400, null, 'max_tokens']);
    expect(await refused({ messages: [] })).toEqual([400, null, 'messages']);
    expect(await refused({ model: 'other' })).toEqual([404, 'model_not_found', 'model']);
    expect(await refused({ n: 2 })).toEqual([400, null, 'n']);
  });

  it('says how loaded it is, lists its model and says that it is well', async () => {
    const { client, origin } = await serve({ decodeTokensPerSecond: 1, batchMax: 1, kvTokensMax: 1000 });
    const gone = new AbortController();
    const asks = [1, 2].map(() =>
      client.chat.completions
        .create({ model: 'sim', messages, max_tokens: 92 }, { signal: gone.signal })
        .catch((error: Error) => error.constructor.name),
    );
    await expect
      .poll(() => gauges(origin))
      .toMatchObject({ armature_host_running: 1, armature_host_waiting: 1, armature_host_cache_used: 0.1 });
    gone.abort();
    expect(await Promise.all(asks)).toEqual(['APIUserAbortError', 'APIUserAbortError']);
    await expect
      .poll(() => gauges(origin))
      .toMatchObject({ armature_host_running: 0, armature_host_waiting: 0, armature_host_cache_used: 0 });
    expect((await fetch(`${origin}/health`)).status).toBe(200);
    expect((await client.models.list()).data.map((one) => one.id)).toEqual(['sim']);
  });

  it('fails the shares of its profile: errors, cuts and silence', async () => {
    const ask = (v1: string, stream: boolean, signal?: AbortSignal) =>
      fetch(`${v1}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'sim', messages, max_tokens: 50, stream }),
        ...(signal && { signal }),
      });
    const failing = await serve({ faults: { errorRate: 1 } });
    expect((await ask(failing.v1, true)).status).toBe(500);
    await host!.close(0);
    const cutting = await serve({ faults: { resetRate: 1 } });
    for (const stream of [true, false]) {
      const cut = await ask(cutting.v1, stream)
        .then((response) => response.text())
        .catch(String);
      expect(cut).not.toContain('[DONE]');
      expect(cut).toMatch(/terminated|failed/);
    }
    await host!.close(0);
    const silent = await serve({ faults: { stallRate: 1 } });
    await expect(ask(silent.v1, true, AbortSignal.timeout(100))).rejects.toThrow(/timeout/);
  });

  it('answers only once its cold start is over', async () => {
    const before = systemClock.mono();
    await serve({ coldStart: '150ms' });
    expect(systemClock.mono() - before).toBeGreaterThanOrEqual(149);
  });

  it('lets running answers finish when it closes, and takes no new ones', async () => {
    const { client, v1 } = await serve({ decodeTokensPerSecond: 200 });
    const stream = await client.chat.completions.create({
      model: 'sim',
      messages,
      max_tokens: 20,
      stream: true,
    });
    const closed = host!.close(10_000);
    let tokens = 0;
    for await (const chunk of stream) tokens += chunk.choices[0]?.delta.content ? 1 : 0;
    expect(tokens).toBe(20);
    await closed;
    await expect(fetch(`${v1}/models`)).rejects.toThrow();
    host = undefined;
  });

  it('gives a place back when a caller leaves while it waits', async () => {
    const { origin } = await serve({ decodeTokensPerSecond: 1 });
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    await once(socket, 'connect');
    const body = JSON.stringify({ model: 'sim', messages, stream: true });
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await expect.poll(() => gauges(origin)).toMatchObject({ armature_host_running: 1 });
    socket.destroy();
    await expect.poll(() => gauges(origin)).toMatchObject({ armature_host_running: 0 });
  });
});

describe('its Open Inference Protocol', () => {
  it('describes itself and says that it is ready', async () => {
    const { origin } = await serve();
    const get = async (path: string) => {
      const response = await fetch(`${origin}${path}`);
      return [response.status, await response.json().catch(() => '')] as [number, Record<string, unknown>];
    };
    expect((await get('/v2'))[1]).toMatchObject({ extensions: ['binary_tensor_data'] });
    for (const path of ['/v2/health/live', '/v2/health/ready', '/v2/models/sim/versions/1/ready']) {
      expect((await get(path))[0]).toBe(200);
    }
    expect((await get('/v2/models/sim'))[1]).toMatchObject({ name: 'sim', versions: ['1'] });
    expect(await get('/v2/models/sim/versions/2')).toEqual([
      404,
      { error: "unknown model: 'sim' version 2" },
    ]);
    expect((await get('/v2/models/other/ready'))[0]).toBe(404);
  });

  it('echoes tensors, as JSON and in binary', async () => {
    const { origin } = await serve();
    const infer = (body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}) =>
      fetch(`${origin}/v2/models/sim/infer`, { method: 'POST', body, headers });
    const tensor = { name: 'x', datatype: 'FP32', shape: [1, 2] };
    const asJson = await infer(JSON.stringify({ id: 'a', inputs: [{ ...tensor, data: [1.5, 2] }] }));
    expect(await asJson.json()).toEqual({
      id: 'a',
      model_name: 'sim',
      model_version: '1',
      outputs: [{ ...tensor, name: 'OUTPUT0', data: [1.5, 2] }],
    });
    const raw = Buffer.from(new Float32Array([1.5, 2]).buffer);
    const head = JSON.stringify({
      inputs: [{ ...tensor, parameters: { binary_data_size: 8 } }],
      outputs: [{ name: 'OUTPUT0', parameters: { binary_data: true } }],
    });
    const inBinary = await infer(Buffer.concat([Buffer.from(head), raw]), {
      'inference-header-content-length': String(head.length),
    });
    const bytes = Buffer.from(await inBinary.arrayBuffer());
    expect(bytes.subarray(Number(inBinary.headers.get('inference-header-content-length')))).toEqual(raw);
    const wrong = await infer(JSON.stringify({ inputs: [{ ...tensor, data: [1] }] }));
    expect([wrong.status, await wrong.json()]).toEqual([
      400,
      { error: "input 'x': 2 elements by its shape, 1 in data" },
    ]);
  });
});
