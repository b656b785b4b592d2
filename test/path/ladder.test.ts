import { describe, expect, it } from 'vitest';
import { replayedRandom } from '../../src/kernel/random.ts';
import { replayable } from '../../src/policies/register.ts';
import { type Engine, failing, NOTHING, status, VirtualGateway } from './virtual-gateway.ts';

/** Rungs of shorter answers: who takes them, what goes upstream, and how a route climbs back. */

const [A, B] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000'];

/** Two milliseconds for each token of the answer, 200 tokens unless it is told fewer. */
const generates: Engine = (served) => {
  const body = JSON.parse(String(served.request.body));
  const tokens = Math.min(200, body.max_tokens ?? 200, body.max_completion_tokens ?? 200);
  served.time.set(2 * tokens, () => {
    if (served.aborted) return;
    served.sink.onHead(200, { 'content-type': 'application/json' });
    const usage = { prompt_tokens: 10, completion_tokens: tokens, total_tokens: tokens + 10 };
    const choices = [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }];
    served.sink.onData(Buffer.from(JSON.stringify({ choices, usage })));
    served.sink.onEnd();
  });
};

function world(more: { route?: object; backend?: object; small?: object } = {}) {
  const gateway = new VirtualGateway({
    backends: {
      b1: {
        engine: 'vllm',
        model: 'm',
        endpoints: [`${A}/v1`],
        limits: { concurrency: 4 },
        ...more.backend,
      },
      b2: { engine: 'vllm', model: 'small', endpoints: [`${B}/v1`], ...more.small },
    },
    routes: {
      chat: {
        targets: [{ backend: 'b1' }],
        deadline: '800ms',
        ladder: [{ output: { tokensMax: 20 } }, { answer: 'busy' }],
        ...more.route,
      },
    },
  });
  for (const origin of [A, B]) gateway.engines.set(origin, generates);
  return gateway;
}

/** Sends requests at an even rate, so many times what the backend can answer in full; tells the rungs of their answers. */
async function offer(
  gateway: VirtualGateway,
  load: number,
  seconds: number,
  restMs = 1_000,
): Promise<(string | undefined)[]> {
  const callers = [];
  const gapMs = 400 / 4 / load;
  for (let ms = 0; ms < seconds * 1000; ms += gapMs) {
    callers.push(gateway.chat());
    await gateway.time.advance(gapMs);
  }
  await gateway.time.advance(restMs);
  if (restMs > 0) for (const { status } of callers) expect(status).toBe(200);
  return callers.map((caller) => caller.answerHeader('x-armature-degraded'));
}

const changes = (rungs: unknown[]) => rungs.filter((rung, at) => at > 0 && rung !== rungs[at - 1]).length;
const bodies = (gateway: VirtualGateway) =>
  gateway.served.map(({ request }) => JSON.parse(String(request.body)));

describe('a rung of shorter answers', () => {
  it('is taken where a full answer would be late, by prediction, labelled, and by what is told upstream', async () => {
    const gateway = world();
    const calm = await offer(gateway, 0.5, 5);
    expect(calm.every((rung) => rung === undefined)).toBe(true);
    const before = gateway.served.length;
    const rungs = await offer(gateway, 3, 10);
    expect(rungs.filter((rung) => rung === 'answer').length).toBeLessThan(rungs.length * 0.05);
    const sent = bodies(gateway).slice(before);
    expect(sent.filter(({ max_tokens }) => max_tokens === 20).length).toBe(
      rungs.filter((rung) => rung === 'output').length,
    );
    expect(rungs.filter((rung) => rung === 'output').length).toBeGreaterThan(rungs.length * 0.8);
    const taken = gateway.records.find(({ steps }) => steps.some(({ code }) => code === 'shorter-answer'))!;
    expect(gateway.records.at(-1)).toMatchObject({ outcome: 'degraded', rung: 'output' });
    expect(taken.steps.find(({ code }) => code === 'shorter-answer')).toMatchObject({
      what: 'rung',
      figures: { rung: 0, tokensMax: 20, for: 'would-miss-deadline' },
      setting: 'routes.chat.ladder[0]',
    });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is held, so that the room it makes does not bring the full answers back, and left when the load is gone', async () => {
    const gateway = world();
    await offer(gateway, 0.5, 3);
    const spike = await offer(gateway, 1.5, 30);
    expect(changes(spike)).toBeLessThanOrEqual(8); // half a minute, with two tries of full answers
    expect(spike.filter((rung) => rung === 'output').length).toBeGreaterThan(spike.length * 0.8);
    const after = await offer(gateway, 0.4, 8);
    expect(changes(after)).toBe(1);
    const degraded = after.filter((rung) => rung !== undefined).length;
    expect(degraded / (0.4 * 10)).toBeLessThan(5); // seconds
    const steps = gateway.records.flatMap((record) => record.steps);
    expect(steps.filter(({ code }) => code === 'rung-left').length).toBeGreaterThanOrEqual(1);
    for (const step of steps.filter(({ policy }) => policy?.startsWith('ladder-hold'))) {
      const again = replayable
        .get('ladder-hold')!
        .replay(JSON.parse(JSON.stringify(step.input)), replayedRandom(step.draws!)) as { reason: object };
      expect(again.reason).toEqual({ code: step.code, figures: step.figures });
    }
  });

  it('holds its own priority alone', async () => {
    const gateway = world({ route: { queue: { max: 0 } } });
    await offer(gateway, 2, 3, 0);
    const critical = gateway.chat({}, { 'x-armature-priority': 'critical' });
    const standard = gateway.chat();
    await gateway.time.advance(1_000);
    expect(critical.answerHeader('x-armature-degraded')).toBeUndefined();
    expect(standard.answerHeader('x-armature-degraded')).toBe('output');
  });

  it('lowers what the caller allows, and is passed over by those who ask for as little', async () => {
    const gateway = world({ route: { queue: { max: 0 } } });
    await offer(gateway, 2, 3, 0);
    const before = gateway.served.length;
    const callers = [
      { max_tokens: 100 },
      { max_completion_tokens: 21 },
      { max_tokens: 20 },
      { max_tokens: 7 },
    ].map((more) => gateway.chat(more));
    await gateway.time.advance(1_000);
    expect(callers.map((caller) => caller.answerHeader('x-armature-degraded'))).toEqual([
      'output',
      'output',
      undefined,
      undefined,
    ]);
    expect(bodies(gateway).slice(before)).toMatchObject([
      { max_tokens: 20 },
      { max_completion_tokens: 20 },
      { max_tokens: 20 },
      { max_tokens: 7 },
    ]);
  });

  it('helps against want of room, not against engines that fail, refuse or are dead', async () => {
    for (const engine of [failing(), status(500), status(429, {}, { 'retry-after': '3' })]) {
      const gateway = world();
      gateway.engines.set(A, engine);
      const callers = Array.from({ length: 8 }, () => gateway.chat());
      await gateway.time.advance(1_000);
      for (const caller of callers) {
        expect(caller.answerHeader('x-armature-degraded')).toBe('answer');
      }
      const codes = gateway.records.flatMap(({ steps }) => steps.map(({ code }) => code));
      expect(codes).not.toContain('shorter-answer');
    }
  });

  it('leaves retries as they are', async () => {
    const gateway = world({
      route: { queue: { max: 0 }, retry: { attempts: 2, budget: 1 } },
      backend: { endpoints: [`${A}/v1`, `${B}/v1`], limits: { concurrency: 2 } },
    });
    await offer(gateway, 2, 3, 0);
    let failures = 1;
    const failsOnce: Engine = (served) => (failures-- > 0 ? status(500) : generates)(served);
    for (const origin of [A, B]) gateway.engines.set(origin, failsOnce);
    const caller = gateway.chat();
    await gateway.time.advance(1_000);
    expect([caller.status, caller.answerHeader('x-armature-degraded')]).toEqual([200, 'output']);
    expect(gateway.records.at(-1)!.attempts).toBe(2);
  });

  it('is not gone straight to while a backend above it has room', async () => {
    const ladder = [{ backend: 'b2' }, { output: { tokensMax: 20 } }, { answer: 'busy' }];
    const gateway = world({ route: { queue: { max: 0 }, ladder } });
    gateway.world.read({ health: { [`b2|${B}/v1`]: 'unwell' } });
    await offer(gateway, 2, 3, 0); // held
    gateway.world.read({ health: { [`b2|${B}/v1`]: 'well' } });
    const next = gateway.chat();
    await gateway.time.advance(1_000);
    expect(next.answerHeader('x-armature-degraded')).toBe('backend');
    expect(gateway.records.find(({ id }) => id === next.answerHeader('x-armature-id'))!.steps).toContainEqual(
      expect.objectContaining({ code: 'rung-held' }),
    );
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is undone where another backend is the next rung', async () => {
    const ladder = [{ output: { tokensMax: 20 } }, { backend: 'b2' }];
    const gateway = world({ route: { queue: { max: 0 }, ladder, retry: { attempts: 1 } } });
    await offer(gateway, 2, 3, 0);
    gateway.engines.set(A, status(500));
    const caller = gateway.chat();
    await gateway.time.advance(1_000);
    expect([caller.status, caller.answerHeader('x-armature-degraded')]).toEqual([200, 'backend']);
    expect(bodies(gateway).slice(-2)).toMatchObject([{ model: 'm', max_tokens: 20 }, { model: 'small' }]);
    expect(bodies(gateway).at(-1)).not.toHaveProperty('max_tokens');
  });

  it('comes after the rungs above it, also while it is held', async () => {
    const ladder = [{ backend: 'b2' }, { output: { tokensMax: 20 } }, { answer: 'busy' }];
    const gateway = world({
      route: { queue: { max: 0 }, ladder },
      small: { limits: { concurrency: 2, adaptive: 'off' } },
    });
    const rungs = await offer(gateway, 3, 5, 0);
    const late = rungs.slice(-60, -20); // the last are not answered yet
    expect(new Set(late)).toEqual(new Set(['backend', 'output']));
    const small = gateway.world.endpoints.get(`b2|${B}/v1`)!;
    const before = gateway.served.length;
    while (small.hasRoom) gateway.chat();
    gateway.chat();
    expect(bodies(gateway).slice(before).at(-1)).toMatchObject({ model: 'm', max_tokens: 20 });
    await gateway.time.advance(1_000);
    expect(
      gateway.records.some(({ steps }) => steps.some(({ figures }) => figures['for'] === 'rung-held')),
    ).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is not for embeddings and tensors', async () => {
    const gateway = world({ route: { queue: { max: 0 } } });
    await offer(gateway, 2, 3, 0);
    const caller = gateway.send('POST', '/v1/embeddings', { model: 'chat', input: 'x' });
    await gateway.time.advance(1_000);
    expect(caller.answerHeader('x-armature-degraded')).toBeUndefined();
    expect(bodies(gateway).at(-1)).toEqual({ model: 'm', input: 'x' });
  });
});
