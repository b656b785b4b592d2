import { describe, expect, it } from 'vitest';
import { backendOf, chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chunk, endless, never } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** Going down without severing what runs. */

const stream = { path: '/v1/chat/completions', body: chatBody({ stream: true }) };
const whole = { path: '/v1/chat/completions', body: chatBody() };
const readyz = { method: 'GET', path: '/readyz' };

/** A stream whose end waits for `open`. */
function gated(): { script: Script; open: () => void } {
  let open: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const script: Script = async (x) => {
    await x.sseHead();
    await x.event(chunk({ content: 'begun ' }));
    await gate;
    await x.event(chunk({ content: 'ended' }));
    await x.event(chunk({}, 'stop'));
    await x.event('[DONE]');
    await x.end();
  };
  return { script, open: () => open() };
}

describe('SIGTERM', () => {
  it('lets running answers finish, refuses new ones at once, and leaves with 0', async () => {
    const { script, open } = gated();
    await using engine = await startEngine(script);
    await using armature = await startArmature(plainConfig(engine, { top: { gateway: { drain: '20s' } } }));
    using running = await RawClient.open(armature.gatewayPort);
    using watching = await RawClient.open(armature.gatewayPort);
    using kept = await RawClient.open(armature.gatewayPort);
    for (const client of [watching, kept]) expect((await client.request(readyz).whole()).status).toBe(200);
    const answer = running.request(stream);
    await answer.until((so) => so.events.length >= 1);

    const left = armature.stop(20_000);
    await eventually('unready', async () => (await watching.request(readyz).whole()).status !== 200);
    const refusal = await kept.request(whole).whole();
    // Either the connection was kept for one refusal, or it was closed unused; never an answer.
    if (refusal.status !== 0) {
      expect([refusal.status, refusal.error.code]).toEqual([503, 'draining']);
      expect(refusal.header('connection')).toBe('close');
      expect(Number(refusal.header('retry-after'))).toBeGreaterThanOrEqual(1);
    }
    expect(answer.ended).toBe(false);
    open();
    await answer.whole();
    expect([answer.text, answer.done]).toEqual(['begun ended', true]);
    expect(await left).toBe(0);
    expect(engine.posts).toHaveLength(1);
  });

  it('is unready at once, but takes requests for drainDelay', async () => {
    await using engine = await startEngine();
    const gateway = { drain: '5s', drainDelay: '1500ms' };
    await using armature = await startArmature(plainConfig(engine, { top: { gateway } }));
    using kept = await RawClient.open(armature.gatewayPort);
    const left = armature.stop();
    await eventually('unready', async () => (await kept.request(readyz).whole()).status === 503);
    expect((await kept.request(whole).whole()).status).toBe(200);
    expect((await armature.ask(whole)).status).toBe(200);
    expect(await left).toBe(0);
  });

  it('ends what outlives the drain with an error that says to come again, chat and tensors alike', async () => {
    await using talker = await startEngine(endless());
    await using mute = await startEngine(never);
    await using armature = await startArmature({
      gateway: { drain: '700ms' },
      backends: {
        b1: backendOf(talker),
        b2: backendOf(mute),
        t1: backendOf(mute, { engine: 'oip' }),
      },
      routes: {
        chat: { targets: [{ backend: 'b1' }] },
        mute: { targets: [{ backend: 'b2' }] },
        tensor: { targets: [{ backend: 't1' }] },
      },
    });
    using client = await RawClient.open(armature.gatewayPort);
    const streamed = client.request(stream);
    await streamed.until((so) => so.events.length >= 3);
    const silent = armature.ask({ ...whole, body: chatBody({ model: 'mute' }) });
    const tensors = armature.ask({ path: '/v2/models/tensor/infer', body: { inputs: [] } });
    await mute.posted(2);
    expect(await armature.stop()).toBe(0);
    await streamed.whole();
    expect(streamed.done).toBe(false);
    expect(streamed.error.code).toBe('draining');
    for (const answer of [await silent, await tensors]) expect(answer.status).toBe(503);
    expect((await silent).error.code).toBe('draining');
    expect(talker.posts[0]!.goneAtMs).toBeDefined();
  });

  it('loses no record of what it answered', async () => {
    await using armature = await startArmature(
      plainConfig('http://127.0.0.1:9/v1', { route: { ladder: [{ answer: 'Try later.' }] } }),
    );
    const answers = await Promise.all(Array.from({ length: 20 }, () => armature.ask(whole)));
    expect(new Set(answers.map((answer) => answer.header('x-armature-degraded')))).not.toContain(undefined);
    expect(await armature.stop()).toBe(0);
    await armature.up();
    for (const answer of answers) {
      const why = await armature.admin(`/api/v1/why/${answer.header('x-armature-id')}`);
      expect([why.status, why.json().steps.length > 0]).toEqual([200, true]);
    }
  });
});
