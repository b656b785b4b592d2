import { describe, expect, it } from 'vitest';
import { type Armature, backendOf, chatBody, startArmature } from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { type Script, type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { chatAnswer, chunk, never, textChunks } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** `gateway.bufferBytesMax`: all bodies and buffers of a worker together. */

const MIB = 2 ** 20;
const path = '/v1/chat/completions';
const large = (bytes: number) => ({
  path,
  body: chatBody({ messages: [{ role: 'user', content: 'x'.repeat(bytes) }] }),
});
const stream = { path, body: chatBody({ stream: true }) };

async function world(script: Script) {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine(script));
  const armature = stack.use(
    await startArmature({
      gateway: { bodyBytesMax: '2MiB', bufferBytesMax: '3MiB' },
      backends: { b1: backendOf(engine), t1: backendOf(engine, { engine: 'oip' }) },
      routes: {
        chat: { targets: [{ backend: 'b1' }], retry: { attempts: 1 } },
        tensor: { targets: [{ backend: 't1' }], retry: { attempts: 1 } },
      },
    }),
  );
  return { engine, armature, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** Whether a body that takes half of the room is taken. */
const roomy = async (armature: Armature, engine: ScriptedEngine) => {
  engine.script = (x) => x.json(chatAnswer());
  const answer = await armature.ask(large(1.5 * MIB));
  return answer.status === 200;
};

describe('bodies', () => {
  it('beyond the room for all of them are refused, on both protocols, and taken once there is room', async () => {
    await using it = await world(never);
    using first = await RawClient.open(it.armature.gatewayPort);
    first.request(large(1.9 * MIB));
    await it.engine.posted(1);
    const refused = await it.armature.ask(large(1.5 * MIB));
    expect([refused.status, refused.error?.code]).toEqual([503, 'overloaded']);
    expect(Number(refused.header('retry-after'))).toBeGreaterThanOrEqual(1);
    const tensors = await it.armature.ask({
      path: '/v2/models/tensor/infer',
      body: { inputs: [{ name: 'x', datatype: 'BYTES', shape: [1], data: ['x'.repeat(1.5 * MIB)] }] },
    });
    expect([tensors.status, typeof tensors.json().error]).toEqual([503, 'string']);
    expect(Number(tensors.header('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(it.engine.posts).toHaveLength(1);
    first.leave('reset');
    await eventually('the first has left', () => it.engine.active === 0);
    expect(await roomy(it.armature, it.engine)).toBe(true);
  });

  it('give their room back however they end', async () => {
    await using it = await world((x) => x.json({ error: { message: 'no' } }, { status: 400 }));
    for (let round = 0; round < 6; round++) {
      expect((await it.armature.ask(large(1.9 * MIB))).status).toBe(400);
      expect((await it.armature.ask(large(2.5 * MIB))).status).toBe(413);
      using half = await RawClient.open(it.armature.gatewayPort);
      half.send(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: ${MIB}\r\n\r\n${'x'.repeat(MIB / 2)}`);
      half.leave('fin');
    }
    const taken = () => roomy(it.armature, it.engine);
    await eventually('there is room', taken);
  });
});

describe('answers', () => {
  it('larger than the room pass through, whole', async () => {
    const text = 'y'.repeat(8 * MIB);
    await using it = await world((x) => x.json(chatAnswer(text)));
    const answers = await Promise.all([1, 2, 3].map(() => it.armature.chat({}, [], 20_000)));
    for (const answer of answers)
      expect([answer.status, answer.complete, answer.text]).toEqual([200, true, text]);
    expect(await roomy(it.armature, it.engine)).toBe(true);
  });

  it('of one event larger than the room are no reason to take more', async () => {
    let sent = 0;
    await using it = await world(async (x) => {
      await x.sseHead();
      await x.event(chunk({ content: 'begun' }));
      await x.body('data: {"choices":[{"delta":{"content":"');
      for (sent = 0; sent < 16 * MIB; sent += MIB) await x.body('z'.repeat(MIB));
      await x.hang();
    });
    const answer = await it.armature.ask(stream, 10_000);
    expect([answer.done, answer.error?.code]).toEqual([
      false,
      expect.stringMatching(/^(backend_error|overloaded)$/),
    ]);
    expect(sent).toBeLessThan(8 * MIB);
    await it.armature.idle();
    expect(await roomy(it.armature, it.engine)).toBe(true);
  });

  it('of many frames before the first content are held within the room, and go on', async () => {
    await using it = await world(async (x) => {
      await x.sseHead();
      for (let i = 0; i < 100; i++) await x.body(`: ${'w'.repeat(32 * 1024)}\n\n`);
      for (let i = 0; i < 20; i++) await x.event(chunk({ role: 'assistant', content: '' }));
      for (const object of textChunks(['all'])) await x.event(object);
      await x.event('[DONE]');
      await x.end();
    });
    const answer = await it.armature.ask(stream, 10_000);
    expect([answer.status, answer.done, answer.text]).toEqual([200, true, 'all']);
  });
});

describe('an answer that is not the stream that was asked for', () => {
  it('and breaks off in its middle is no clean end, and has nothing put into it', async () => {
    const text = 'y'.repeat(2 * MIB);
    await using it = await world(async (x) => {
      const body = JSON.stringify(chatAnswer(text));
      await x.head(200, [['Content-Type', 'application/json']], 'length', body.length + 10);
      await x.body(body.slice(0, -10));
      x.fin();
    });
    const answer = await it.armature.ask(stream, 10_000);
    expect(answer.complete).toBe(false);
    expect(answer.content.toString()).not.toContain('backend_error');
  });
});
