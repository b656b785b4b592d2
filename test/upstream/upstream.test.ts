import { describe, expect, it } from 'vitest';
import { ask, RawClient } from './client.ts';
import { letGo, nowMs, startEngine } from './engine.ts';
import {
  answerByPath,
  chat,
  cutStream,
  delayed,
  endless,
  failWith,
  inTurn,
  never,
  nonsense,
  rawStream,
  reset,
} from './scripts.ts';
import { eventually } from './waiting.ts';

const CHAT = '/v1/chat/completions';
const streamed = { path: CHAT, body: { model: 'm', messages: [], stream: true } };
const whole = { path: CHAT, body: { model: 'm', messages: [] } };

describe('the scripted engine and the raw client', () => {
  it('answers each call, and keeps the bytes of every request', async () => {
    await using engine = await startEngine();
    expect((await ask(engine.port, whole)).text).toBe('Hello there');
    const stream = await ask(engine.port, streamed);
    expect([stream.text, stream.done, stream.framing]).toEqual(['Hello there', true, 'chunked']);
    expect(
      (await ask(engine.port, { path: '/v1/embeddings', body: { input: ['a', 'b'] } })).json().data,
    ).toHaveLength(2);
    const list = await ask(engine.port, { method: 'GET', path: '/v1/models' });
    expect(list.json().data[0].id).toBe('engine-model');
    expect(engine.posts.map((request) => request.path)).toEqual([CHAT, CHAT, '/v1/embeddings']);
    expect(engine.posts[0]!.rawHead.toString()).toMatch(/^POST \/v1\/chat\/completions HTTP\/1\.1\r\nHost: /);
    expect(engine.posts[0]!.body.toString()).toBe(JSON.stringify(whole.body));
    expect(engine.connections).toBe(4);
  });

  it('sends the usage chunk only when asked', async () => {
    await using engine = await startEngine();
    const asked = { ...streamed.body, stream_options: { include_usage: true } };
    const answer = await ask(engine.port, { path: CHAT, body: asked });
    expect(answer.objects.at(-1).usage.total_tokens).toBe(7);
    expect((await ask(engine.port, streamed)).objects.at(-1).usage).toBeUndefined();
  });

  it('keeps several answers on one connection apart', async () => {
    await using engine = await startEngine(
      inTurn(chat(['one']), failWith(503, [['Retry-After', '3']]), chat(['three'])),
    );
    using client = await RawClient.open(engine.port);
    const answers = [client.request(streamed), client.request(whole), client.request(whole)];
    for (const answer of answers) await answer.whole();
    expect(answers.map((answer) => answer.status)).toEqual([200, 503, 200]);
    expect(answers[1]!.header('retry-after')).toBe('3');
    expect([answers[0]!.text, answers[2]!.text]).toEqual(['one', 'three']);
    expect(engine.posts.map((request) => [request.connection, request.sequence])).toEqual([
      [1, 0],
      [1, 1],
      [1, 2],
    ]);
  });

  it.each(['fin', 'reset'] as const)('sees a caller leave by %s, and when', async (how) => {
    await using engine = await startEngine(endless(5));
    using client = await RawClient.open(engine.port);
    const answer = client.request(streamed);
    await answer.until((so) => so.events.length >= 2);
    const leftAtMs = nowMs();
    client.leave(how);
    expect((await letGo(engine.posts[0]!)) - leftAtMs).toBeLessThan(200);
    await eventually('nothing runs', () => engine.active === 0);
  });

  it.each(['fin', 'reset'] as const)('breaks a stream off by %s', async (how) => {
    await using engine = await startEngine(cutStream(['a', 'b'], how));
    const answer = await ask(engine.port, streamed);
    expect(answer.complete).toBe(false);
    expect(answer.fault).toBeDefined();
    if (how === 'fin') expect(answer.text).toBe('ab');
  });

  it('resets, talks nonsense and hangs', async () => {
    await using engine = await startEngine(inTurn(reset, nonsense, never));
    expect((await ask(engine.port, whole)).fault).toMatch(/ECONNRESET/);
    expect((await ask(engine.port, whole)).fault).toMatch(/no HTTP answer/);
    expect((await ask(engine.port, whole, 50)).fault).toBe('timeout');
  });

  it('ends a body by closing, and writes pieces as they are', async () => {
    await using engine = await startEngine(rawStream(['da', 'ta: 1\n', '\ndata: 2\n\n'], 'close'));
    const answer = await ask(engine.port, streamed);
    expect([answer.framing, answer.complete]).toEqual(['close', true]);
    expect(answer.events.map((event) => event.data)).toEqual(['1', '2']);
  });

  it('knows the most requests at once, and dies with all of them', async () => {
    await using engine = await startEngine(delayed(60_000, answerByPath));
    const answers = Array.from({ length: 20 }, () => ask(engine.port, whole));
    await engine.posted(20);
    expect(engine.peak).toBe(20);
    engine.die('reset');
    for (const answer of await Promise.all(answers)) expect(answer.fault).toBeDefined();
    expect(engine.posts.every((request) => request.goneAtMs === undefined)).toBe(true);
    expect((await ask(engine.port, whole)).fault).toMatch(/ECONNREFUSED/);
    await engine.listen();
    engine.script = answerByPath;
    expect((await ask(engine.port, whole)).status).toBe(200);
  });

  it('reads a chunked request, and one whose body never comes', async () => {
    await using engine = await startEngine();
    using client = await RawClient.open(engine.port);
    const answer = client.expect();
    client.send(`POST ${CHAT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
    client.send('2\r\n{"\r\n');
    client.send('4\r\na":1\r\n1\r\n}\r\n0\r\nX-Sum: 1\r\n\r\n');
    expect((await answer.whole()).status).toBe(200);
    expect(engine.posts[0]!.json()).toEqual({ a: 1 });
    client.send(`POST ${CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{`);
    await eventually('its head is there', () => engine.posts.length === 2);
    client.leave('reset');
    await letGo(engine.posts[1]!);
    expect(engine.posts[1]!.complete).toBe(false);
  });
});
