import { describe, expect, it } from 'vitest';
import { type Armature, backendOf, type Config, chatBody, startArmature } from '../upstream/armature.ts';
import { type Answer, RawClient } from '../upstream/client.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chunk } from '../upstream/scripts.ts';
import type { Json } from '../upstream/sse.ts';
import { eventually } from '../upstream/waiting.ts';

/** Parts that are killed under 200 running streams: no request fails that did not run through the dead one. */

const STREAMS = 200;
const stream = { path: '/v1/chat/completions', body: chatBody({ stream: true }) };
const whole = { path: '/v1/chat/completions', body: chatBody() };

/** Streams that say the engine's name and end once `open` is called. */
function gated(name: string): { script: Script; open: () => void } {
  const gate = Promise.withResolvers<void>();
  const script: Script = async (x) => {
    if (!x.request.stream)
      return x.json({ choices: [{ index: 0, message: { role: 'assistant', content: name } }] });
    await x.sseHead();
    await x.event(chunk({ content: `${name} ` }));
    await Promise.race([gate.promise, x.whenGone]);
    await x.event(chunk({ content: 'ended' }));
    await x.event(chunk({}, 'stop'));
    await x.event('[DONE]');
    await x.end();
  };
  return { script, open: () => gate.resolve() };
}

/** Streams on connections of their own, all past their first content. */
async function startStreams(armature: Armature, stack: DisposableStack): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < STREAMS; i++) {
    const client = stack.use(await RawClient.open(armature.gatewayPort));
    answers.push(client.request(stream));
  }
  await Promise.all(answers.map((answer) => answer.until((so) => so.events.length >= 1, 20_000)));
  return answers;
}

async function ended(answers: Answer[]): Promise<{ whole: Answer[]; broken: Answer[] }> {
  await Promise.all(answers.map((answer) => answer.whole(20_000)));
  return {
    whole: answers.filter((answer) => answer.done && answer.complete),
    broken: answers.filter((answer) => !answer.done),
  };
}

/** Which worker gave an id: the digits that each process draws for itself. */
const makerOf = (answer: Answer) =>
  /^[a-z]+_[0-9a-z]{9}([0-9a-z]{4})/.exec(answer.header('x-armature-id')!)![1]!;

const config = (engines: Parameters<typeof backendOf>[0], more: Config = {}): Config => ({
  ...more,
  // So that every request can be asked about.
  gateway: { recordsPerSecondMax: 10_000, ...more['gateway'] },
  backends: { b1: backendOf(engines, { timeouts: { idle: '60s', total: '120s' } }) },
  routes: { chat: { targets: [{ backend: 'b1' }], deadline: '30s', retry: { attempts: 2, budget: 1 } } },
});

/** With a route `spare` whose every answer is degraded, and so recorded in full. */
const withSpare = (before: Config): Config => ({
  ...before,
  routes: { ...before['routes'], spare: { targets: [{ backend: 'dead' }], ladder: [{ answer: 'Later.' }] } },
  backends: { ...before['backends'], dead: backendOf('http://127.0.0.1:9/v1') },
});
const spared = { ...whole, body: chatBody({ model: 'spare' }) };

/** Whether the full record of an answer is in the ledger, or comes into it soon. */
async function recorded(armature: Armature, answer: Answer): Promise<boolean> {
  expect(answer.header('x-armature-degraded')).toBeDefined();
  const path = `/api/v1/requests/${answer.header('x-armature-id')}`;
  return eventually('a record', async () => (await armature.admin(path)).status === 200, 2000).catch(
    () => false,
  );
}

/** Waits for the event that tells of a part's end, and for `why` to explain it. */
async function explainedDeath(armature: Armature, part: string): Promise<void> {
  const death = await eventually(`an event tells of the death of ${part}`, async () => {
    const events: Json[] = await armature.events();
    return events.find((event) => /(left|died)$/.test(event.type) && JSON.stringify(event).includes(part));
  });
  const { steps } = await armature.why(death.id);
  expect(JSON.stringify(steps)).toContain(part);
}

describe('killed under 200 streams:', () => {
  it('an engine takes its own streams alone, and each says so', async () => {
    const [one, two] = [gated('one'), gated('two')];
    await using first = await startEngine(one.script);
    await using second = await startEngine(two.script);
    // Each broken stream has its own record, in whichever second they all end.
    const gateway = { recordsPerSecondMax: 2 * STREAMS };
    await using armature = await startArmature(config([first, second], { gateway }));
    using clients = new DisposableStack();
    const answers = await startStreams(armature, clients);
    const through = answers.filter((answer) => answer.text === 'one ');
    expect(through.length).toBeGreaterThan(STREAMS / 10);

    first.die('reset');
    two.open();
    const { whole: good, broken } = await ended(answers);
    expect(new Set(broken)).toEqual(new Set(through));
    expect(new Set(good.map((answer) => answer.text))).toEqual(new Set(['two ended']));
    for (const answer of broken) expect(answer.error.code).toBe('backend_error');
    for (let i = 0; i < 20; i++) expect((await armature.ask(whole)).text).toBe('two');

    const id = broken[0]!.header('x-armature-id')!;
    const { steps } = await eventually('why knows', () => armature.why(id).catch(() => undefined));
    expect(JSON.stringify(steps)).toContain(`127.0.0.1:${first.port}`);
    await armature.idle();
  });

  it('one worker of three takes its own connections alone, and is replaced', async () => {
    const { script, open } = gated('one');
    await using engine = await startEngine(script);
    await using armature = await startArmature(config(engine, { gateway: { workers: 3 } }));
    const makers = new Set<string>();
    await eventually(
      'all three serve',
      async () => makers.add(makerOf(await armature.ask(whole))).size === 3,
    );
    using clients = new DisposableStack();
    const answers = await startStreams(armature, clients);
    expect(new Set(answers.map(makerOf)).size).toBe(3);

    const dead = armature.kill('gateway-1');
    await eventually('some are broken off', () => answers.some((answer) => answer.ended));
    for (let i = 0; i < 20; i++) expect((await armature.ask(whole)).text).toBe('one');
    open();
    const { whole: good, broken } = await ended(answers);
    expect(broken.length).toBeGreaterThan(0);
    expect(good.length + broken.length).toBe(STREAMS);
    expect(new Set(broken.map(makerOf)).size).toBe(1);
    expect(good.map(makerOf)).not.toContain(makerOf(broken[0]!));

    await eventually('a new one serves', () =>
      armature.parts().some(({ part, pid }) => part === 'gateway-1' && pid !== dead),
    );
    await explainedDeath(armature, 'gateway-1');
    await armature.idle();
  });

  it('a worker takes at most the records of its last turn', async () => {
    await using engine = await startEngine();
    await using armature = await startArmature(withSpare(config(engine)));
    const degraded: Answer[] = [];
    for (let i = 0; i < 30; i++) degraded.push(await armature.ask(spared));
    armature.kill('gateway-0');
    await explainedDeath(armature, 'gateway-0');
    const kept = await Promise.all(degraded.map((answer) => recorded(armature, answer)));
    expect(kept.slice(0, -1)).not.toContain(false);
    await armature.ready();
    expect((await armature.ask(whole)).status).toBe(200);
  });

  it('control takes nothing, and not one record is lost', async () => {
    const { script, open } = gated('one');
    await using engine = await startEngine(script);
    await using armature = await startArmature(withSpare(config(engine)));
    using clients = new DisposableStack();
    const answers = await startStreams(armature, clients);

    const degraded = await Promise.all(Array.from({ length: 20 }, () => armature.ask(spared)));
    const dead = armature.kill('control');
    for (let i = 0; i < 30; i++) degraded.push(await armature.ask(spared));
    for (let i = 0; i < 20; i++) expect((await armature.ask(whole)).text).toBe('one');
    open();
    expect((await ended(answers)).broken).toEqual([]);

    await eventually('control is back', () =>
      armature.parts().some(({ part, pid }) => part === 'control' && pid !== dead),
    );
    await eventually('it answers', async () => (await armature.admin('/metrics')).status === 200, 10_000);
    await explainedDeath(armature, 'control');
    for (const answer of degraded) expect(await recorded(armature, answer)).toBe(true);
    await armature.idle();
  });

  it('a model host takes its own streams alone, and comes back', async () => {
    const profile = { decodeTokensPerSecond: 100, batchMax: 256, kvTokensMax: 1_000_000 };
    const sim = { engine: 'sim', profile, limits: { concurrency: 256 } };
    await using armature = await startArmature({
      backends: { s1: sim, s2: sim },
      routes: {
        chat: { targets: [{ backend: 's1' }, { backend: 's2' }], retry: { attempts: 2, budget: 1 } },
      },
    });
    await eventually(
      'both hosts serve',
      async () => (await armature.metrics()).filter(({ name }) => name === 'armature_limit').length === 2,
      20_000,
    );
    using clients = new DisposableStack();
    const answers: Answer[] = [];
    for (let i = 0; i < STREAMS; i++) {
      const client = clients.use(await RawClient.open(armature.gatewayPort));
      answers.push(client.request({ ...stream, body: chatBody({ stream: true, max_tokens: 300 }) }));
    }
    await Promise.all(answers.map((answer) => answer.until((so) => so.events.length >= 2, 30_000)));
    const through = (backend: string) =>
      answers.filter((answer) => answer.header('x-armature-backend') === backend);
    expect(through('s1').length + through('s2').length).toBe(STREAMS);
    expect(through('s1').length).toBeGreaterThan(STREAMS / 4);

    const dead = armature.kill('host-s1');
    await Promise.all(through('s1').map((answer) => answer.whole()));
    for (const answer of through('s1'))
      expect([answer.done, answer.error?.code]).toEqual([false, 'backend_error']);
    expect(through('s2').filter((answer) => answer.ended && !answer.done)).toEqual([]);
    for (let i = 0; i < 10; i++)
      expect((await armature.chat({ max_tokens: 2 }, [], 20_000)).status).toBe(200);
    await eventually(
      'the host is back',
      () => armature.parts().some(({ part, pid }) => part === 'host-s1' && pid !== dead),
      15_000,
    );
    await explainedDeath(armature, 'host-s1');
    await Promise.all(through('s2').map((answer) => answer.whole(60_000)));
    expect(through('s2').filter((answer) => !answer.done)).toEqual([]);
  });
});
