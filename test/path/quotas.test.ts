import { describe, expect, it } from 'vitest';
import { replayable } from '../../src/policies/register.ts';
import { A, chat, left, refusal, usage, limitedWorld as world } from './limited-world.ts';
import { chatAnswer, chatStream, failing, NOTHING, never, status } from './virtual-gateway.ts';

/** What tenants may use: reserved before, settled after, given back on every way out. */

describe('requests', () => {
  it('may come at once as many as the rate says, then as time brings them', async () => {
    const { gateway } = world({ requests: '5/s' });
    const callers = Array.from({ length: 8 }, () => chat(gateway));
    await gateway.time.advance(20);
    expect(callers.map(({ status: of }) => of)).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
    expect(refusal(callers[5]!)).toEqual([429, 'quota_exceeded', '1']);
    await gateway.time.advance(379);
    expect(chat(gateway).status).toBeUndefined();
    expect(chat(gateway).status).toBe(429);
    await gateway.time.advance(1000);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('of a slow rate come one by one, and the promise of the next is kept', async () => {
    const { gateway } = world({ requests: '1/min' });
    expect(chat(gateway).status).toBeUndefined();
    await gateway.time.advance(20_000);
    const refused = chat(gateway);
    expect(refusal(refused)).toEqual([429, 'quota_exceeded', '40']);
    expect(refused.answerHeader('x-should-retry')).toBeUndefined();
    await gateway.time.advance(39_000);
    expect(refusal(chat(gateway))).toEqual([429, 'quota_exceeded', '1']);
    await gateway.time.advance(1000);
    const next = chat(gateway);
    await gateway.time.advance(10);
    expect(next.status).toBe(200);
  });

  it('are not to be tried again by clients that would not wait as long as it takes', async () => {
    const { gateway } = world({ requests: '1/h' });
    chat(gateway);
    await gateway.time.advance(1000);
    const refused = chat(gateway);
    expect([...refusal(refused), refused.answerHeader('x-should-retry')]).toEqual([
      429,
      'quota_exceeded',
      '3599',
      'false',
    ]);
  });

  it.each(['0.5/s', '30/min'])('at %s begin with what the rate says, or with one', async (requests) => {
    const { gateway } = world({ requests });
    const callers = Array.from({ length: 40 }, () => chat(gateway));
    await gateway.time.advance(20);
    expect(callers.filter(({ status: of }) => of === 200)).toHaveLength(requests === '0.5/s' ? 1 : 30);
    await gateway.time.advance(2000);
    expect([chat(gateway).status, chat(gateway).status]).toEqual([undefined, 429]);
  });

  it('of none are all refused', async () => {
    const { gateway } = world({ requests: '0/s' });
    const refused = chat(gateway);
    expect([refused.status, refused.answerHeader('x-should-retry')]).toEqual([429, 'false']);
    expect(Number(refused.answerHeader('retry-after'))).toBeGreaterThan(0);
  });

  it('that are never sent do not count, those that are do', async () => {
    const { gateway } = world(
      { requests: '2/min' },
      { backend: { limits: { concurrency: 1 } }, route: { queue: { max: 0 } } },
    );
    gateway.engines.set(A, never);
    const served = chat(gateway);
    for (let i = 0; i < 5; i++) expect(chat(gateway).status).toBe(503);
    served.leave();
    gateway.engines.set(A, status(500));
    const failed = chat(gateway);
    await gateway.time.advance(10);
    expect([failed.status, left(failed, 'requests')]).toEqual([502, 0]);
    expect(chat(gateway).status).toBe(429);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('of a connection that is refused do not count', async () => {
    const { gateway } = world({ requests: '1/min' });
    gateway.engines.set(A, failing());
    const failed = chat(gateway);
    await gateway.time.advance(10);
    expect([failed.status, left(failed, 'requests')]).toEqual([502, 1]);
  });
});

describe('requests at once', () => {
  it('are refused beyond the limit, and every way out gives the slot back', async () => {
    const { gateway } = world({ concurrency: 2 });
    gateway.engines.set(A, never);
    const [one, two, three] = [chat(gateway), chat(gateway, { stream: true }), chat(gateway)];
    expect(refusal(three!)).toEqual([429, 'quota_exceeded', '1']);
    one!.leave();
    const four = chat(gateway);
    expect([four.status, chat(gateway).status]).toEqual([undefined, 429]);
    await gateway.time.advance(3000);
    expect([two!.status, four.status]).toEqual([504, 504]);
    for (const engine of [status(500), failing(), status(400), chatAnswer('x'), chatStream(['a'])]) {
      gateway.engines.set(A, engine);
      const both = [chat(gateway, { stream: true }), chat(gateway, { stream: true })];
      await gateway.time.advance(2000);
      expect(both.map(({ ended }) => ended)).toEqual([true, true]);
      expect(both.map(({ status: of }) => of)).not.toContain(429);
    }
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.leases.used('|web')).toBe(0);
  });

  it('do not cost a request of the rate where they are refused', async () => {
    const { gateway } = world({ concurrency: 1, requests: '2/min' });
    gateway.engines.set(A, never);
    const one = chat(gateway);
    expect(left(chat(gateway), 'requests')).toBe(1);
    one.leave();
    expect([chat(gateway).status, chat(gateway).status]).toEqual([undefined, 429]);
  });
});

describe('limits of a route', () => {
  it('hold beside those of the tenant, and only there', async () => {
    const { gateway } = world({ requests: '4/min', routes: { chat: { requests: '1/min' } } });
    const on = (model: string) => chat(gateway, { model });
    const callers = [on('chat'), on('chat'), on('other'), on('other'), on('other'), on('other')];
    await gateway.time.advance(10);
    expect(callers.map(({ status: of }) => of)).toEqual([200, 429, 200, 200, 200, 429]);
    expect(callers[1]!.text).toContain("tenant 'web' on 'chat' is 1 requests/min");
    expect(callers[5]!.text).toContain("tenant 'web' is 4 requests/min");
    // Of two limits the one with less left is told.
    expect(callers[0]!.answerHeader('x-ratelimit-limit-requests')).toBe('1');
    expect(callers[2]!.answerHeader('x-ratelimit-limit-requests')).toBe('4');
  });

  it('hold alone where the tenant has no others', async () => {
    const { gateway } = world({ routes: { chat: { concurrency: 1, tokens: '1000/min' } } });
    gateway.engines.set(A, never);
    const on = (model: string) => chat(gateway, { model }).status;
    expect([on('chat'), on('chat'), on('other'), on('other')]).toEqual([
      undefined,
      429,
      undefined,
      undefined,
    ]);
  });
});

describe('a tenant', () => {
  it('whose limit is used up does not touch another one', async () => {
    const { gateway } = world({ requests: '1/min' });
    chat(gateway);
    expect(chat(gateway).status).toBe(429);
    gateway.world.tenants = undefined;
    const open = gateway.chat();
    await gateway.time.advance(10);
    expect([open.status, open.answerHeader('x-ratelimit-limit-requests')]).toEqual([200, undefined]);
  });

  it('is told in the record which limit it was, with its figures and its place in the configuration', async () => {
    const { gateway } = world({ routes: { chat: { tokens: '60000/min' } } });
    chat(gateway, { max_tokens: 50_000 });
    chat(gateway, { max_tokens: 50_000 });
    const [record] = gateway.records;
    expect([record!.outcome, record!.code]).toEqual(['refused', 'quota_exceeded']);
    const step = record!.steps.find(({ code }) => code === 'quota-short')!;
    expect(step).toMatchObject({
      what: 'admit',
      policy: 'token-bucket@1',
      setting: 'tenants.web.limits.routes.chat.tokens',
      figures: { asked: 50_020, there: 9980, max: 60_000, perSecond: 1000, retryAfterMs: 40_040 },
    });
    expect(replayable.get('token-bucket')!.replay(step.input, { next: () => 0 })).toEqual({
      choice: false,
      reason: { code: step.code, figures: step.figures },
    });
  });

  it('keeps its share when limits change, and nothing stays when they go', async () => {
    const { gateway, limit } = world({ requests: '10/min', concurrency: 2 });
    gateway.engines.set(A, never);
    const running = [chat(gateway), chat(gateway)];
    expect(chat(gateway).status).toBe(429);
    limit({ requests: '100/min', concurrency: 3 });
    const third = chat(gateway);
    expect([third.status, left(chat(gateway), 'requests')]).toEqual([undefined, 79]);
    limit({});
    expect(gateway.leases.held('|web')).toBe(3);
    expect(chat(gateway).status).toBeUndefined();
    for (const caller of [...running, third]) caller.leave();
    expect(gateway.leases.held('|web')).toBe(0);
    limit({ concurrency: 1 });
    expect([chat(gateway).status, chat(gateway).status]).toEqual([undefined, 429]);
    await gateway.time.advance(5000);
    expect([gateway.leases.used('|web'), gateway.taken]).toEqual([0, NOTHING]);
  });
});

it('tokens cost what the backend that used them asks', async () => {
  const { gateway } = world({}, { backend: { price: { in: 2, out: 10 } } });
  gateway.engines.set(A, usage(1000, 500));
  chat(gateway);
  await gateway.time.advance(10);
  gateway.engines.set(A, status(500));
  chat(gateway);
  await gateway.time.advance(10);
  const cost = await gateway.registry.getSingleMetric('armature_cost_total')!.get();
  expect(cost.values).toEqual([{ labels: { route: 'chat', tenant: 'web' }, value: 0.007 }]);
});
