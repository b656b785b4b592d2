import { describe, expect, it } from 'vitest';
import { A, B, codesOf, shedBy, stepsOf, tenantsWorld } from './tenants-world.ts';
import { chatAnswer, NOTHING } from './virtual-gateway.ts';

/** Whose turn it is, who gives way, and who is told at once that it would be too late. */

describe('whose turn it is', () => {
  it('goes to a tenant that has had less, whatever another has waiting', async () => {
    const { gateway, ask } = tenantsWorld();
    gateway.engines.set(A, chatAnswer('x', 10));
    const flood = Array.from({ length: 50 }, () => ask('flood'));
    const calm = [ask('calm'), ask('calm')];
    await gateway.time.advance(50);
    expect(calm.map(({ status }) => status)).toEqual([200, 200]);
    expect(flood.filter(({ ended }) => ended)).toHaveLength(3);
  });

  it('leaves batch its floor under a flood from above, and no more', async () => {
    const { gateway, ask } = tenantsWorld({ route: { queue: { max: 10_000 }, deadline: '1000s' } });
    gateway.engines.set(A, chatAnswer('x', 10));
    const batch = Array.from({ length: 100 }, () => ask('calm', 'batch'));
    for (let i = 0; i < 1_500; i++) ask('flood', 'interactive');
    await gateway.time.advance(10_000);
    const served = batch.filter(({ ended }) => ended).length;
    expect(served).toBeGreaterThanOrEqual(18);
    expect(served).toBeLessThanOrEqual(22);
  });

  it('comes to who was too large for what was free, before small ones have passed it for ever', async () => {
    const { gateway, ask } = tenantsWorld({ places: 8 });
    gateway.engines.set(A, chatAnswer('x', 100));
    // An endpoint that takes so many tokens at once, as an adaptive limit would have it.
    const endpoint = [...gateway.world.endpoints.values()][0]!;
    const take = endpoint.take.bind(endpoint);
    endpoint.take = (tokens, waiting) =>
      (endpoint.inflight === 0 || endpoint.tokensInFlight + tokens <= 400) && take(tokens, waiting);
    const small = () => ask('flood', 'standard', { max_tokens: 50 });
    for (let i = 0; i < 4; i++) small();
    const large = ask('calm', 'standard', { max_tokens: 250 });
    for (let at = 0; at < 400 && !large.ended; at++) {
      small();
      await gateway.time.advance(10);
    }
    expect(large.status).toBe(200);
    expect(gateway.time.mono()).toBeLessThan(2_000);
  });

  it('is not jumped by a newcomer who sees a place that others wait for', async () => {
    const { gateway, ask } = tenantsWorld({ endpoints: [A, B] });
    for (const origin of [A, B]) gateway.engines.set(origin, chatAnswer('x', 100));
    const endpoint = gateway.world.endpoints.get(`b1|${B}/v1`)!;
    endpoint.unwell = true;
    ask('flood');
    const waits = ask('calm', 'interactive');
    await gateway.time.advance(50);
    // A place that nobody was woken for.
    endpoint.unwell = false;
    const late = ask('calm', 'batch');
    expect(gateway.served).toHaveLength(2);
    await gateway.time.advance(100);
    expect([waits.status, late.status]).toEqual([200, undefined]);
    await gateway.time.advance(100);
    expect(late.status).toBe(200);
  });
});

describe('the last places', () => {
  it('are kept for critical requests while there are any, and for nobody else', async () => {
    const { gateway, ask } = tenantsWorld({ places: 64 });
    gateway.engines.set(A, chatAnswer('x', 100));
    const inflight = () => [...gateway.world.endpoints.values()][0]!.inflight;
    const flood = () => Array.from({ length: 100 }, () => ask('flood'));
    flood();
    expect(inflight()).toBe(64);
    await gateway.time.advance(1_000);
    ask('calm', 'critical');
    await gateway.time.advance(1_000);
    flood();
    expect(inflight()).toBe(62);
    const critical = [ask('calm', 'critical'), ask('calm', 'critical'), ask('calm', 'critical')];
    expect(inflight()).toBe(64);
    await gateway.time.advance(100);
    expect(critical.map(({ status }) => status)).toEqual([200, 200, undefined]);
    await gateway.time.advance(20_000);
    flood();
    expect(inflight()).toBe(64);
    await gateway.time.advance(1_000);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('are half of them at most, so that nobody waits beside an idle engine', async () => {
    const { gateway, ask } = tenantsWorld({ places: 4 });
    gateway.engines.set(A, chatAnswer('x', 100));
    gateway.world.backends.get('b1')!.line.kept.share = 1;
    ask('flood', 'critical');
    await gateway.time.advance(100);
    const plain = Array.from({ length: 6 }, () => ask('flood'));
    await gateway.time.advance(300);
    expect(plain.map(({ status }) => status)).toEqual(new Array(6).fill(200));
  });

  it("are nobody's own where there are too few to go round", () => {
    const { gateway, ask } = tenantsWorld({ places: 31 });
    ask('flood', 'critical');
    for (let i = 0; i < 40; i++) ask('flood');
    expect([...gateway.world.endpoints.values()][0]!.inflight).toBe(31);
  });

  it('are found free by a tenant that has less than its share, beside one that floods', async () => {
    const { gateway, ask } = tenantsWorld({ places: 16, route: { queue: { max: 64 } } });
    gateway.engines.set(A, chatAnswer('x', 100));
    ask('calm');
    const tookMs: number[] = [];
    for (let at = 0; at < 500; at++) {
      for (let i = 0; i < 10; i++) ask('flood');
      if (at % 13 === 12) {
        const since = gateway.time.mono();
        const calm = ask('calm');
        calm.whenClosed(() => tookMs.push(gateway.time.mono() - since));
      }
      await gateway.time.advance(10);
    }
    // All places of the flood come free together, each 100 ms: nobody has to wait for that.
    expect(tookMs.length).toBeGreaterThan(35);
    expect(Math.max(...tookMs)).toBeLessThan(110);
    expect([...gateway.world.endpoints.values()][0]!.inflight).toBeGreaterThanOrEqual(15);
    await gateway.time.advance(30_000);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('are for everybody again once there is one tenant only', async () => {
    const { gateway, ask } = tenantsWorld({ places: 16 });
    gateway.engines.set(A, chatAnswer('x', 100));
    ask('calm');
    const inflight = () => [...gateway.world.endpoints.values()][0]!.inflight;
    for (let i = 0; i < 40; i++) ask('flood');
    expect(inflight()).toBe(15);
    await gateway.time.advance(100);
    expect(inflight()).toBe(15);
    await gateway.time.advance(10_000);
    for (let i = 0; i < 40; i++) ask('flood');
    expect(inflight()).toBe(16);
  });
});

describe('a full queue', () => {
  it('makes room for a tenant that has less in it: the newest of the one with most gives way', async () => {
    const { gateway, ask } = tenantsWorld({ route: { queue: { max: 20 } } });
    gateway.engines.set(A, chatAnswer('x', 10));
    const flood = Array.from({ length: 30 }, () => ask('flood'));
    expect(flood.map(({ status }) => status)).toEqual([
      ...new Array(21).fill(undefined),
      ...new Array(9).fill(503),
    ]);
    const calm = ask('calm');
    expect(calm.status).toBe(undefined);
    expect(flood[20]!.status).toBe(503);
    expect(Number(flood[20]!.answerHeader('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(flood[20]!.answerHeader('x-should-retry')).toBe(undefined);
    expect(stepsOf(gateway, flood[20]!)).toContainEqual(
      expect.objectContaining({
        code: 'displaced',
        figures: expect.objectContaining({ rule: 'tenant-over-share', tenant: 'flood', max: 20 }),
        setting: 'routes.chat.queue.max',
      }),
    );
    await gateway.time.advance(1_000);
    expect(calm.status).toBe(200);
    expect(await shedBy(gateway)).toEqual({ 'queue-full': 9, displaced: 1 });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('makes room for a higher priority, and gives who gives way a rougher answer', async () => {
    const { gateway, ask } = tenantsWorld({ route: { queue: { max: 3 }, ladder: [{ answer: 'Busy.' }] } });
    gateway.engines.set(A, chatAnswer('x', 10));
    const low = Array.from({ length: 4 }, () => ask('flood', 'batch'));
    const high = ask('flood', 'critical');
    expect(low.map(({ status }) => status)).toEqual([undefined, undefined, undefined, 200]);
    expect(low[3]!.answerHeader('x-armature-degraded')).toBe('answer');
    expect(codesOf(gateway, low[3]!)).toContain('displaced');
    await gateway.time.advance(20);
    expect([high.status, low[1]!.status]).toEqual([200, undefined]);
    const refused = ask('flood', 'batch');
    expect(refused.status).toBe(undefined);
    await gateway.time.advance(1_000);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is divided among workers', () => {
    const { gateway, ask } = tenantsWorld({ route: { queue: { max: 5 } } });
    gateway.world.snapshot!.settings.gateway.workers = 2;
    const callers = Array.from({ length: 6 }, () => ask('flood'));
    expect(callers.filter(({ status }) => status === 503)).toHaveLength(2);
  });
});

describe('a deadline that cannot be kept', () => {
  async function warm(places = 1) {
    const { gateway, ask } = tenantsWorld({ places, route: { deadline: '10s' } });
    gateway.engines.set(A, chatAnswer('x', 500));
    for (let i = 0; i < 60; i++) {
      ask('other');
      await gateway.time.advance(500);
    }
    gateway.facts.length = 0;
    return { gateway, ask };
  }

  it('is said at once, with what it was judged by, and when to come again', async () => {
    const { gateway, ask } = await warm();
    const served = Array.from({ length: 10 }, () => ask('flood'));
    const late = ask('flood', 'standard', {}, 3_000);
    expect(late.status).toBe(503);
    const step = stepsOf(gateway, late).find(({ code }) => code === 'would-miss-deadline')!;
    expect(step).toMatchObject({
      what: 'wait',
      setting: 'routes.chat.deadline',
      figures: { leftMs: 3_000, serviceMs: 500, waiting: 9, places: 1 },
    });
    expect(step.figures['waitMs']).toBeGreaterThan(4_000);
    expect(step.figures['waitMs']).toBeLessThan(6_000);
    const again = Number(late.answerHeader('retry-after'));
    // 5 s of waiting and 0.5 s of service against 3 s: it would fit 2.5 s later.
    expect(again).toBeGreaterThanOrEqual(3);
    expect(again).toBeLessThanOrEqual(6);
    expect(await shedBy(gateway)).toEqual({ 'would-miss-deadline': 1 });
    await gateway.time.advance(20_000);
    expect(served.every(({ status }) => status === 200)).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is judged by its own turn: another tenant, or a higher priority, gets in', async () => {
    const { gateway, ask } = await warm();
    for (let i = 0; i < 10; i++) ask('flood');
    const [calm, high] = [ask('calm', 'standard', {}, 3_000), ask('flood', 'critical', {}, 3_000)];
    expect([calm.status, high.status]).toEqual([undefined, undefined]);
    await gateway.time.advance(2_000);
    expect([calm.status, high.status]).toEqual([200, 200]);
  });

  it('turns nobody away while there is a place, whatever was predicted', async () => {
    const { gateway, ask } = await warm(2);
    ask('flood');
    const hopeless = ask('flood', 'standard', {}, 50);
    expect(hopeless.status).toBe(undefined);
    expect(gateway.served).toHaveLength(62);
    expect(ask('flood', 'standard', {}, 50).status).toBe(503);
    await gateway.time.advance(50);
    expect(hopeless.status).toBe(504);
  });

  it('lets everybody in before anything is known', () => {
    const { gateway, ask } = tenantsWorld();
    gateway.engines.set(A, chatAnswer('x', 500));
    const callers = Array.from({ length: 20 }, () => ask('flood', 'standard', {}, 100));
    expect(callers.every(({ status }) => status === undefined)).toBe(true);
  });

  it('is found out at its turn, when the engine has become slower: it is not sent, and another is', async () => {
    const { gateway, ask } = await warm(2);
    gateway.engines.set(A, chatAnswer('x', 2_000));
    ask('flood');
    await gateway.time.advance(100);
    ask('flood');
    await gateway.time.advance(400);
    const first = ask('other', 'interactive');
    const [late, next] = [ask('calm', 'standard', {}, 2_300), ask('flood', 'standard', {}, 8_000)];
    expect([first.status, late.status, next.status]).toEqual([undefined, undefined, undefined]);
    await gateway.time.advance(1_599);
    expect(late.status).toBe(undefined);
    await gateway.time.advance(1);
    expect(late.status).toBe(503);
    expect(codesOf(gateway, late)).toContain('too-late-to-serve');
    await gateway.time.advance(4_000);
    expect(next.status).toBe(200);
    expect(gateway.served).toHaveLength(64);
    expect((await shedBy(gateway))['too-late-to-serve']).toBe(1);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('leaves time for the ladder: who waits in vain goes down it before its deadline', async () => {
    const { gateway, ask } = tenantsWorld({ route: { deadline: '1s', ladder: [{ answer: 'Busy.' }] } });
    gateway.engines.set(A, chatAnswer('x', 300));
    ask('other');
    await gateway.time.advance(300);
    gateway.engines.set(A, chatAnswer('x', 100_000));
    ask('flood');
    const waits = ask('calm');
    await gateway.time.advance(699);
    expect(waits.status).toBe(undefined);
    await gateway.time.advance(2);
    expect([waits.status, waits.answerHeader('x-armature-degraded')]).toEqual([200, 'answer']);
  });
});
