import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { backendOf, chatBody, startArmature } from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { startEngine } from '../upstream/engine.ts';
import { eventually } from '../upstream/waiting.ts';

/** Callers without a key, or with bodies made to be dear. */

const path = '/v1/chat/completions';
const KEY = 'key-of-web';
const hash = `sha256:${createHash('sha256').update(KEY).digest('hex')}`;
const known = ['Authorization', `Bearer ${KEY}`] as const;
const large = chatBody({ messages: [{ role: 'user', content: 'x'.repeat(1.5 * 2 ** 20) }] });

async function world() {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine());
  const armature = stack.use(
    await startArmature({
      gateway: { bodyBytesMax: '2MiB', bufferBytesMax: '3MiB' },
      backends: { b1: backendOf(engine) },
      routes: { chat: { targets: [{ backend: 'b1' }] } },
      tenants: { web: { keys: [{ hash }] } },
    }),
  );
  return { engine, armature, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe('a caller without a key', () => {
  it('is refused before its body has come, and takes no room from those who have one', async () => {
    await using it = await world();
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
    const begun = [
      `${head}Content-Length: 2000000\r\n\r\n{"model":`,
      `${head}Transfer-Encoding: chunked\r\n\r\n9\r\n{"model":\r\n`,
    ];
    for (let i = 0; i < 4; i++) {
      using client = await RawClient.open(it.armature.gatewayPort);
      client.send(begun[i % begun.length]!);
      client.send('x'.repeat(i % 2 === 0 ? 1_900_000 : 0));
      const answer = await client.expect().whole();
      expect([answer.status, answer.error.code, answer.header('connection')]).toEqual([
        401,
        'unauthorized',
        'close',
      ]);
      const welcome = await it.armature.ask({ path, body: large, headers: [known] });
      expect(welcome.status).toBe(200);
    }
    await it.armature.idle();
  });

  it('is not asked to send a large body', async () => {
    await using it = await world();
    const begin = (client: RawClient, headers: string) => {
      client.send(
        `POST ${path} HTTP/1.1\r\nHost: x\r\n${headers}Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n`,
      );
      return client.expect();
    };
    using stranger = await RawClient.open(it.armature.gatewayPort);
    const refusal = await begin(stranger, '').whole();
    expect([refusal.status, refusal.interim]).toEqual([401, []]);
    using friend = await RawClient.open(it.armature.gatewayPort);
    const welcome = begin(friend, `${known.join(': ')}\r\n`);
    await eventually('the word to go on', () => welcome.interim.includes(100));
  });

  it('keeps its connection after a refusal of little', async () => {
    await using it = await world();
    using client = await RawClient.open(it.armature.gatewayPort);
    expect((await client.request({ path, body: chatBody() }).whole()).status).toBe(401);
    expect((await client.request({ path, body: chatBody(), headers: [known] }).whole()).status).toBe(200);
  });
});

describe('a head', () => {
  it.each([
    ['without a host', 400, 'Content-Length: 2'],
    ['that expects what nobody can do', 417, 'Host: x\r\nExpect: 200-ok\r\nContent-Length: 2'],
  ])('%s is refused in words, with its id', async (_, status, head) => {
    await using it = await world();
    using client = await RawClient.open(it.armature.gatewayPort);
    client.send(`POST ${path} HTTP/1.1\r\nX-Request-Id: mine\r\n${known.join(': ')}\r\n${head}\r\n\r\n{}`);
    const answer = await client.expect().whole();
    expect([answer.status, answer.error.code, answer.header('x-request-id')]).toEqual([
      status,
      'invalid_request',
      'mine',
    ]);
    await it.armature.idle();
  });
});

describe('a body', () => {
  it('in chunks of one byte is taken as it is', async () => {
    await using it = await world();
    using client = await RawClient.open(it.armature.gatewayPort);
    const body = Buffer.from(JSON.stringify(chatBody({ user: 'y'.repeat(20_000) })));
    const chunks = Array.from(body, (byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join('');
    client.send(
      `POST ${path} HTTP/1.1\r\nHost: x\r\n${known.join(': ')}\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
    );
    expect((await client.expect().whole()).status).toBe(200);
    expect(JSON.parse(it.engine.posts.at(-1)!.body.toString())).toMatchObject({ user: 'y'.repeat(20_000) });
  });
});
