import { describe, expect, it } from 'vitest';
import { startLlamaServer } from '../engines/engines.ts';
import { shared } from '../engines/provisioned.ts';
import { backendOf, chatBody, startArmature } from '../upstream/armature.ts';
import { ask, RawClient } from '../upstream/client.ts';
import type { Json } from '../upstream/sse.ts';
import { eventually } from '../upstream/waiting.ts';

const llama = (root: string) =>
  backendOf(`${root}/v1`, {
    engine: 'llama.cpp',
    model: 'smollm2',
    probe: { every: '200ms', healthy: 1, unhealthy: 2 },
    timeouts: { firstByte: '60s', idle: '30s', total: '120s' },
  });

describe("llama.cpp's own server behind Armature", () => {
  const world = shared(['llama.cpp'], async (stack) => {
    const engine = stack.use(await startLlamaServer());
    const embedder = stack.use(await startLlamaServer({ embedding: true }));
    const armature = stack.use(
      await startArmature({
        backends: { chat: llama(engine.root), embed: llama(embedder.root) },
        routes: {
          chat: { targets: [{ backend: 'chat' }] },
          embed: { targets: [{ backend: 'embed' }] },
        },
      }),
    );
    return { engine, armature };
  });
  const short = { max_tokens: 8, temperature: 0, seed: 1 };

  it('answers a chat whole, with usage and log-probabilities', async () => {
    const { armature } = world();
    const answer = await armature.chat({ ...short, logprobs: true, top_logprobs: 2 }, [], 60_000);
    expect(answer.status).toBe(200);
    const [choice] = answer.json().choices;
    expect(choice.message.content).not.toBe('');
    expect(choice.logprobs.content).toHaveLength(8);
    expect(choice.logprobs.content[0].top_logprobs).toHaveLength(2);
    expect(answer.json().usage.completion_tokens).toBe(8);
    expect(answer.header('x-armature-backend')).toBe('chat');
  });

  it('streams the words that the engine gives alone', async () => {
    const { armature, engine } = world();
    const body = chatBody({ ...short, stream: true, stream_options: { include_usage: true } });
    const direct = await ask(
      engine.port,
      { path: '/v1/chat/completions', body: { ...body, model: 'smollm2' } },
      60_000,
    );
    const through = await armature.ask({ path: '/v1/chat/completions', body }, 60_000);
    expect(through.done).toBe(true);
    expect(through.text).toBe(direct.text);
    expect(through.objects.at(-1).usage.completion_tokens).toBe(8);
  });

  it('counts tokens of a stream whose caller did not ask, and shows them to nobody', async () => {
    const { armature } = world();
    const counted = () => armature.metric('armature_tokens_total', { route: 'chat', kind: 'out' });
    const before = await counted();
    const answer = await armature.chat({ ...short, stream: true }, [], 60_000);
    expect(answer.done).toBe(true);
    expect(answer.objects.filter((object) => object.usage)).toEqual([]);
    await eventually('8 more tokens', async () => (await counted()) === before + 8);
  });

  it.each(['fin', 'reset'] as const)('stops the generation of a caller that leaves by %s', async (how) => {
    const { armature, engine } = world();
    const running = async () => {
      const slots = (await ask(engine.port, { method: 'GET', path: '/slots' })).json();
      return slots.some((slot: { is_processing: boolean }) => slot.is_processing);
    };
    using client = await RawClient.open(armature.gatewayPort);
    const body = chatBody({ stream: true, max_tokens: 1500, ignore_eos: true });
    const answer = client.request({ path: '/v1/chat/completions', body });
    expect(await answer.until((so) => so.events.length >= 3, 60_000)).toBe(true);
    expect(await running()).toBe(true);
    client.leave(how);
    await eventually('no slot of the engine is busy', async () => !(await running()), 3000);
    await armature.idle();
  });

  it('tells its own load, and so does its neighbour', async () => {
    const { armature, engine } = world();
    const loads = async () =>
      (await armature.admin('/api/v1/status'))
        .json()
        .backends.map(({ endpoints }: Json) => endpoints[0].engine);
    const idle = { waiting: 0, running: 0, ageMs: expect.any(Number), stale: false };
    await eventually('both are read, and idle', async () =>
      (await loads()).every((load: Json) => load?.running === 0 && load.waiting === 0),
    );
    expect((await loads())[1]).toEqual(idle);
    // Three for two places, and not through Armature.
    const body = chatBody({ model: 'smollm2', stream: true, max_tokens: 1500, ignore_eos: true });
    const clients = await Promise.all([1, 2, 3].map(() => RawClient.open(engine.port)));
    for (const client of clients) client.request({ path: '/v1/chat/completions', body });
    await eventually(
      'two run and one waits',
      async () => JSON.stringify(Object.values((await loads())[0]).slice(0, 2)) === '[1,2]',
      10_000,
    );
    for (const client of clients) client.leave('reset');
    await eventually('none is left', async () => (await loads())[0].running === 0, 10_000);
  });

  it("keeps the engine's own 400 and its reason", async () => {
    const { armature } = world();
    const answer = await armature.chat({ messages: 'no list' }, [], 60_000);
    expect(answer.status).toBe(400);
    expect(answer.json().error.message).toMatch(/messages/);
  });

  it('blames nobody for the 500 that the engine gives of bad input', async () => {
    const { armature } = world();
    const bad = [
      { messages: [{ content: 'without a role' }] },
      { tools: 'no list' },
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] },
    ];
    for (let i = 0; i < 18; i++) {
      const answer = await armature.chat({ ...short, ...bad[i % bad.length] }, [], 60_000);
      expect(answer.status).toBe(400);
      expect(answer.error).toMatchObject({ message: expect.any(String), type: expect.any(String) });
      expect(Object.keys(answer.error)).toEqual(expect.arrayContaining(['param', 'code']));
    }
    expect(await armature.metric('armature_breaker_state', { backend: 'chat' })).toBe(0);
    expect((await armature.chat(short, [], 60_000)).status).toBe(200);
  });

  it('embeds', async () => {
    const { armature } = world();
    const body = { model: 'embed', input: ['one', 'two'] };
    const answer = await armature.ask({ path: '/v1/embeddings', body }, 60_000);
    expect(answer.status).toBe(200);
    expect(answer.json().data.map((one: { embedding: number[] }) => one.embedding.length)).toEqual([
      576, 576,
    ]);
  });
});

describe("llama.cpp's health path", () => {
  const world = shared(['llama.cpp'], async (stack) => {
    const engine = await startLlamaServer();
    const armature = stack.use(
      await startArmature({
        backends: { chat: llama(engine.root) },
        routes: { chat: { targets: [{ backend: 'chat' }] } },
      }),
    );
    return { engine, armature };
  });

  it('tells when the engine hangs, though its port still takes connections', async () => {
    const { engine, armature } = world();
    const ready = async () =>
      (await armature.ask({ method: 'GET', path: '/readyz?route=chat' })).status === 200;
    await eventually('the route is ready', ready);
    engine.kill('SIGSTOP');
    await eventually('the route is not ready', async () => !(await ready()), 15_000);
    expect((await armature.chat({ max_tokens: 2 })).status).toBe(502);
    engine.kill('SIGCONT');
    await eventually('the route is ready again', ready);
  });

  it('tells when the engine is gone and when it is back', async () => {
    const { engine, armature } = world();
    const ready = async () =>
      (await armature.ask({ method: 'GET', path: '/readyz?route=chat' })).status === 200;
    await eventually('the route is ready', ready);
    await engine[Symbol.asyncDispose]();
    await eventually('the route is not ready', async () => !(await ready()));
    await using again = await startLlamaServer({ port: engine.port });
    await eventually('the route is ready again', ready);
    expect((await armature.chat({ max_tokens: 2 }, [], 60_000)).status, again.logs).toBe(200);
  });
});
