import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/schema/index.ts';
import {
  chatAnswer,
  chatStream,
  failing,
  NOTHING,
  status,
  type VirtualCaller,
  VirtualGateway,
} from './virtual-gateway.ts';

/** Answers that are kept and given again, and what a caller sees of them. */

const A = 'http://10.0.0.1:8000';
const RUNG = { ladder: [{ cached: { staleMax: '10m' } }] };
const CACHE = { cache: { ttl: '5m' } };

function world(route: object, top: object = {}, model = 'm') {
  return {
    backends: { b1: { engine: 'vllm', model, endpoints: [`${A}/v1`], limits: { concurrency: 8 } } },
    routes: { chat: { targets: [{ backend: 'b1' }], ...route } },
    ...top,
  };
}

function gatewayOf(route: object, top: object = {}) {
  const gateway = new VirtualGateway(world(route, top));
  gateway.engines.set(A, chatAnswer('Hello', 10));
  return gateway;
}

async function answered(gateway: VirtualGateway, caller: VirtualCaller): Promise<VirtualCaller> {
  await gateway.time.advance(100);
  expect(caller.ended).toBe(true);
  return caller;
}

function chunksOf(
  caller: VirtualCaller,
): { object: string; choices: { delta: { content?: string }; finish_reason: unknown }[]; usage?: unknown }[] {
  return caller.text
    .split('\n\n')
    .filter((event) => event !== '' && event !== 'data: [DONE]')
    .map((event) => JSON.parse(event.slice(6)));
}

const wordsOf = (caller: VirtualCaller) =>
  chunksOf(caller)
    .flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? ''))
    .join('');

describe('the rung of kept answers', () => {
  it('gives the same answer framed as asked, labelled, when nothing else answers', async () => {
    for (const streamed of [true, false]) {
      const gateway = gatewayOf(RUNG);
      gateway.engines.set(A, streamed ? chatStream(['Hel', 'lo']) : chatAnswer('Hello'));
      await answered(gateway, gateway.chat({ stream: streamed }));
      gateway.engines.set(A, failing());
      const whole = await answered(gateway, gateway.chat({ user: 'somebody else' }));
      expect([whole.status, whole.answerHeader('x-armature-degraded')]).toEqual([200, 'cached']);
      expect([whole.answerHeader('x-armature-backend'), whole.answerHeader('age')]).toEqual(['b1', '0']);
      expect(JSON.parse(whole.text).choices[0].message.content).toBe('Hello');
      const stream = await answered(gateway, gateway.chat({ stream: true }));
      expect(stream.answerHeader('content-type')).toContain('text/event-stream');
      expect(wordsOf(stream)).toBe('Hello');
      expect(chunksOf(stream).every(({ object }) => object === 'chat.completion.chunk')).toBe(true);
      expect(chunksOf(stream).at(-1)!.choices[0]!.finish_reason).toBe('stop');
      expect(stream.text.endsWith('data: [DONE]\n\n')).toBe(true);
      const other = await answered(gateway, gateway.chat({ temperature: 1 }));
      expect(other.status).toBe(502);
      expect(gateway.records.map(({ outcome }) => outcome)).toEqual(['ok', 'degraded', 'degraded', 'failed']);
      expect(gateway.records[1]).toMatchObject({ rung: 'cached', backend: 'b1' });
      expect(gateway.taken).toEqual(NOTHING);
    }
  });

  it('asks the engine as long as it answers', async () => {
    const gateway = gatewayOf(RUNG);
    await answered(gateway, gateway.chat({ temperature: 0 }));
    await answered(gateway, gateway.chat({ temperature: 0 }));
    expect(gateway.served).toHaveLength(2);
  });

  it('gives nothing that is too old, nor what the caller does not want', async () => {
    const gateway = gatewayOf(RUNG);
    await answered(gateway, gateway.chat());
    gateway.engines.set(A, failing());
    expect((await answered(gateway, gateway.chat({}, { 'cache-control': 'no-cache' }))).status).toBe(502);
    await gateway.time.advance(120_000);
    expect((await answered(gateway, gateway.chat({}, { 'cache-control': 'max-age=60' }))).status).toBe(502);
    const old = await answered(gateway, gateway.chat());
    expect([old.status, old.answerHeader('age')]).toEqual([200, '120']);
    await gateway.time.advance(600_000);
    expect((await answered(gateway, gateway.chat())).status).toBe(502);
  });
});

describe('a route with a cache', () => {
  it('answers in full from it where repetition is meant, and only there', async () => {
    const gateway = gatewayOf(CACHE);
    for (const more of [
      { temperature: 0 },
      { temperature: 0, stream: true },
      { temperature: 0.0, user: 'u' },
    ]) {
      const caller = await answered(gateway, gateway.chat(more));
      expect([caller.status, caller.answerHeader('x-armature-degraded')]).toEqual([200, undefined]);
    }
    expect(gateway.served).toHaveLength(1);
    for (const more of [{}, {}, { temperature: 1 }, { temperature: 1 }])
      await answered(gateway, gateway.chat(more));
    expect(gateway.served).toHaveLength(5);
    expect(gateway.records.map(({ outcome }) => outcome)).toEqual(gateway.records.map(() => 'ok'));
    expect(gateway.records[1]!.steps.map(({ code }) => code)).toContain('kept-answer');
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('gives the bytes that the engine gave', async () => {
    const gateway = gatewayOf(CACHE);
    const first = await answered(gateway, gateway.chat({ temperature: 0 }));
    const second = await answered(gateway, gateway.chat({ temperature: 0 }));
    expect(second.text).toBe(first.text);
    expect(second.answerHeader('x-armature-id')).not.toBe(first.answerHeader('x-armature-id'));
    expect(second.answerHeader('x-armature-backend')).toBe('b1');
  });

  it('asks anew when its time is over, the model is another, or the caller says so', async () => {
    const gateway = gatewayOf(CACHE);
    const ask = (headers = {}) => answered(gateway, gateway.chat({ temperature: 0 }, headers));
    await ask({ 'cache-control': 'no-store' });
    await ask();
    expect(gateway.served).toHaveLength(2);
    await ask();
    await ask({ 'cache-control': 'no-cache' });
    expect(gateway.served).toHaveLength(3);
    await gateway.time.advance(300_001);
    await ask();
    expect(gateway.served).toHaveLength(4);
    gateway.load(world(CACHE, {}, 'm-2'));
    await ask();
    expect(gateway.served).toHaveLength(5);
    await ask();
    expect(gateway.served).toHaveLength(5);
    gateway.load(world({}));
    expect(gateway.path.deps.answers.kept.count).toBe(0);
  });

  it('asks anew when a local model has other files under its name', async () => {
    const gateway = gatewayOf(CACHE);
    const load = (sha256: string) =>
      gateway.world.swap({
        number: 7,
        event: 'ev_7',
        keys: [],
        endpoints: { b1: [A] },
        settings: settingsSchema.parse({
          backends: { b1: { engine: 'local', model: 'small' } },
          routes: { chat: { targets: [{ backend: 'b1' }], ...CACHE } },
          models: { small: { format: 'gguf', from: ['file:/m.gguf'], sha256: sha256.repeat(64) } },
        }),
      });
    for (const sha256 of ['a', 'a', 'b', 'b', 'a']) {
      load(sha256);
      await answered(gateway, gateway.chat({ temperature: 0 }));
    }
    expect(gateway.served).toHaveLength(2);
  });

  it('keeps nothing that is cut, degraded, refused or too long', async () => {
    const more = { ladder: [{ backend: 'b2' }], cache: { ttl: '5m', answerBytesMax: '300B' } };
    const B = 'http://10.0.0.2:8000';
    const config = world(more);
    Object.assign(config.backends, { b2: { engine: 'vllm', model: 'n', endpoints: [`${B}/v1`] } });
    const gateway = new VirtualGateway(config);
    gateway.engines.set(A, status(500));
    gateway.engines.set(B, chatAnswer('rough'));
    await answered(gateway, gateway.chat({ temperature: 0 }));
    gateway.engines.set(A, status(400));
    await answered(gateway, gateway.chat({ temperature: 0 }));
    gateway.engines.set(A, chatAnswer('x'.repeat(400)));
    await answered(gateway, gateway.chat({ temperature: 0 }));
    gateway.engines.set(A, ({ sink, time }) => {
      time.set(1, () => {
        sink.onHead(200, { 'content-type': 'application/json' });
        sink.onData(
          Buffer.from('{"choices":[{"index":0,"message":{"content":"cut"},"finish_reason":null}]}'),
        );
        sink.onEnd();
      });
    });
    await answered(gateway, gateway.chat({ temperature: 0 }));
    expect(gateway.path.deps.answers.kept.count).toBe(0);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('gives one tenant nothing of another', async () => {
    const gateway = gatewayOf(CACHE, { tenants: { a: {}, b: {} } });
    gateway.world.keys = { tenantOf: (key: string) => key } as never;
    for (const tenant of ['a', 'b', 'a', 'b']) {
      await answered(gateway, gateway.chat({ temperature: 0 }, { authorization: `Bearer ${tenant}` }));
    }
    expect(gateway.served).toHaveLength(2);
  });

  it('stays within its bytes, the least recently used going first', async () => {
    const gateway = gatewayOf(CACHE, { gateway: { cacheBytesMax: '4KiB' } });
    for (let i = 0; i < 40; i++) await answered(gateway, gateway.chat({ temperature: 0, seed: i }));
    const { count, bytes } = gateway.path.deps.answers.kept;
    expect(count).toBeGreaterThan(1);
    expect(bytes).toBeLessThanOrEqual(4096);
    await answered(gateway, gateway.chat({ temperature: 0, seed: 39 }));
    expect(gateway.served).toHaveLength(40);
    await answered(gateway, gateway.chat({ temperature: 0, seed: 0 }));
    expect(gateway.served).toHaveLength(41);
  });

  it('keeps weights: each target answers its share from what it gave itself', async () => {
    const B = 'http://10.0.0.2:8000';
    const config = world({ ...CACHE, targets: [{ backend: 'b1' }, { backend: 'b2' }] });
    Object.assign(config.backends, { b2: { engine: 'vllm', model: 'n', endpoints: [`${B}/v1`] } });
    const gateway = new VirtualGateway(config);
    gateway.engines.set(A, chatAnswer('of A'));
    gateway.engines.set(B, chatAnswer('of B'));
    const texts: string[] = [];
    for (let i = 0; i < 200; i++)
      texts.push((await answered(gateway, gateway.chat({ temperature: 0 }))).text);
    const ofA = texts.filter((text) => text.includes('of A')).length;
    expect(ofA).toBeGreaterThan(60);
    expect(ofA).toBeLessThan(140);
    expect(gateway.served.length).toBeLessThan(20);
  });
});
