import { describe, expect, it } from 'vitest';
import { chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { ask, RawClient } from '../upstream/client.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chatAnswer } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** What a drain owes to connections: those kept open, those half-way through a request, those that read slowly. */

const whole = { path: '/v1/chat/completions', body: chatBody() };
const models = { method: 'GET', path: '/v1/models' };

function config(engine: Parameters<typeof plainConfig>[0], gateway: Record<string, string> = {}) {
  return plainConfig(engine, { top: { gateway: { drain: '20s', ...gateway } } });
}

/** An answer that waits for `open`. */
function gated(answer: unknown = chatAnswer()): { script: Script; open: () => void } {
  const gate = Promise.withResolvers<void>();
  const script: Script = async (x) => {
    await gate.promise;
    await x.json(answer);
  };
  return { script, open: gate.resolve };
}

const unready = async (port: number) =>
  (await ask(port, { method: 'GET', path: '/readyz' }, 2000)).status !== 200;

describe('a drain', () => {
  it('answers a request whose body was still coming, and says that the connection ends', async () => {
    const { script, open } = gated();
    await using engine = await startEngine(script);
    await using armature = await startArmature(config(engine));
    using running = await RawClient.open(armature.gatewayPort);
    const answer = running.request(whole);
    await eventually('it runs', () => engine.active === 1);
    using coming = await RawClient.open(armature.gatewayPort);
    const body = JSON.stringify(chatBody());
    const late = coming.expect();
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n`;
    coming.send(`${head}content-length: ${body.length}\r\n\r\n`);
    await late.until((so) => so.interim.includes(100)); // its head has been read
    coming.send(body.slice(0, 10));
    const left = armature.stop(20_000);
    await eventually('unready', () => unready(armature.gatewayPort));
    coming.send(body.slice(10));
    await late.whole();
    expect([late.status, late.error?.code]).toEqual([503, 'draining']);
    expect(late.header('connection')).toBe('close');
    expect(Number(late.header('retry-after'))).toBeGreaterThanOrEqual(1);
    open();
    await answer.whole();
    expect(answer.status).toBe(200);
    expect(await left).toBe(0);
  });

  it('cuts no request whose body comes slowly, when nothing else runs', async () => {
    await using engine = await startEngine();
    await using armature = await startArmature(config(engine));
    using coming = await RawClient.open(armature.gatewayPort);
    expect((await coming.request(models).whole()).status).toBe(200);
    const body = `${JSON.stringify(chatBody())}${' '.repeat(100)}`;
    const late = coming.expect();
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n`;
    coming.send(`${head}content-length: ${body.length}\r\n\r\n`);
    await late.until((so) => so.interim.includes(100));
    coming.send(body.slice(0, 10));
    const left = armature.stop(20_000);
    await eventually('unready', () => unready(armature.gatewayPort));
    let sent = 10;
    await eventually('it is answered', () => {
      if (sent < body.length && !coming.closed) coming.send(body.charAt(sent++));
      return late.ended;
    });
    expect([late.fault, late.status, late.error?.code]).toEqual([undefined, 503, 'draining']);
    expect(await left).toBe(0);
  });

  it('says on the answers of what still runs that the connection ends, and ends it', async () => {
    const { script, open } = gated();
    await using engine = await startEngine(script);
    await using armature = await startArmature(config(engine));
    using running = await RawClient.open(armature.gatewayPort);
    const answer = running.request(whole);
    await eventually('it runs', () => engine.active === 1);
    const left = armature.stop(20_000);
    await eventually('unready', () => unready(armature.gatewayPort));
    open();
    await answer.whole();
    expect([answer.status, answer.header('connection')]).toEqual([200, 'close']);
    await running.whenClosed(2_000);
    expect(await left).toBe(0);
  });

  it('lets a caller that reads slowly have its whole answer', async () => {
    const text = 'x'.repeat(900_000);
    await using engine = await startEngine((x) => x.json(chatAnswer(text)));
    await using armature = await startArmature(config(engine));
    using slow = await RawClient.open(armature.gatewayPort);
    slow.pause();
    const answer = slow.request(whole);
    await eventually('the engine has answered', () => engine.posts.length === 1 && engine.active === 0);
    const left = armature.stop(20_000);
    await eventually('unready', () => unready(armature.gatewayPort));
    slow.resume();
    await answer.whole();
    expect([answer.fault, answer.status]).toEqual([undefined, 200]);
    expect(answer.text).toHaveLength(text.length);
    expect(await left).toBe(0);
  });

  it('takes requests on new and on kept connections for drainDelay, and closes idle ones after it', async () => {
    await using engine = await startEngine();
    await using armature = await startArmature(config(engine, { drainDelay: '1s' }));
    using kept = await RawClient.open(armature.gatewayPort);
    using fresh = await RawClient.open(armature.gatewayPort);
    expect((await kept.request(models).whole()).status).toBe(200);
    const left = armature.stop(20_000);
    await eventually('unready', () => unready(armature.gatewayPort));
    expect((await kept.request(whole).whole()).status).toBe(200);
    expect((await armature.ask(whole)).status).toBe(200);
    await Promise.all([kept.whenClosed(10_000), fresh.whenClosed(10_000)]);
    expect(await left).toBe(0);
  });
});
