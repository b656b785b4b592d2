import { describe, expect, it } from 'vitest';
import type { SpreadFamily } from '../../src/telemetry/tally.ts';
import { A, B, C, codeOf, codesOf, hedgesOf, inTurn, later, stepsOf, words, world } from './hedged.ts';
import {
  chatAnswer,
  chatStream,
  type Engine,
  failing,
  NOTHING,
  never,
  status,
  type VirtualGateway,
} from './virtual-gateway.ts';

/** A second attempt beside a slow first one: every order in which the two, the caller and the clock can come. */

describe('a hedge', () => {
  it('wins: the caller gets the second answer, the first attempt ends at once and is held against nobody', async () => {
    const gateway = world();
    inTurn(gateway, later(words('slow'), 300), words('fast ', 'words'));
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(99);
    expect(gateway.served).toHaveLength(1);
    await gateway.time.advance(20);
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([false, false]);
    expect(gateway.taken.slots).toBe(2);
    await gateway.time.advance(2);
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([true, false]);
    expect(gateway.taken.slots).toBe(1);
    await gateway.time.advance(500);
    expect(caller.text).toContain('"fast "');
    expect(caller.text).not.toContain('slow');
    expect(caller.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(codesOf(gateway)).toEqual(['sent', 'hedge-granted', 'sent', 'hedge-won', 'committed', 'answered']);
    expect(stepsOf(gateway).find(({ code }) => code === 'hedge-won')!.figures).toMatchObject({ tookMs: 120 });
    expect(gateway.records[0]).toMatchObject({ outcome: 'ok', attempts: 2, firstContentMs: 120 });
    expect(gateway.records[0]!.endpoint).toBe(`${gateway.served[1] && otherOf(gateway)}/v1`);
    for (const { breaker } of gateway.world.endpoints.values())
      expect(breaker.figures()).toMatchObject({ inARow: 0, failures: 0 });
    expect(await hedgesOf(gateway)).toEqual({ won: 1 });
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it('that wins tells those who choose endpoints how slow the other one is at least', async () => {
    const gateway = world();
    inTurn(gateway, never, words('fast'));
    gateway.chat({ stream: true });
    await gateway.time.advance(200);
    const speeds = [...gateway.world.endpoints.values()].map(({ speed }) => speed.firstToken.value);
    expect(speeds.sort()).toEqual([120, 20]);
  });

  it('is not sent when the first content comes in time, nor after it', async () => {
    const gateway = world();
    inTurn(gateway, chatStream(['a', 'b', 'c', 'd', 'e', 'f'], 49));
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(1_000);
    expect([caller.status, gateway.served.length]).toEqual([200, 1]);
    expect(await hedgesOf(gateway)).toEqual({});
  });

  it('loses when the first attempt answers first: its own ends at once', async () => {
    const gateway = world();
    inTurn(gateway, later(words('first'), 110), later(words('second'), 300));
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(131);
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([false, true]);
    await gateway.time.advance(500);
    expect(caller.text).toContain('"first"');
    expect(codesOf(gateway)).toContain('hedge-lost');
    expect(await hedgesOf(gateway)).toEqual({ lost: 1 });
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it.each([
    ['fails', status(500), 'engine-failed'],
    ['is told to come again', status(429, {}, { 'retry-after': '5' }), 'engine-busy'],
    ['loses its connection', failing({ kind: 'reset', unsent: false }), 'connection-lost'],
    ['was on a dead connection', failing({ kind: 'reset', unsent: false, stale: true }), 'stale-connection'],
    ['reached nobody', failing(), 'connection-refused'],
  ])('stands in when the first attempt %s: nothing is retried while it runs', async (_, engine, code) => {
    const gateway = world({ endpoints: [A, B, C], route: { retry: { attempts: 5, budget: 1 } } });
    inTurn(gateway, later(engine, 110), later(words('second'), 100), words('third'));
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(150);
    expect([gateway.served.length, gateway.taken.slots]).toEqual([2, 1]);
    await gateway.time.advance(500);
    expect(caller.text).toContain('"second"');
    expect(codesOf(gateway)).toEqual(['sent', 'hedge-granted', 'sent', code, 'committed', 'answered']);
    expect(gateway.records[0]!.endpoint).not.toBe(undefined);
    expect(await hedgesOf(gateway)).toEqual({ won: 1 });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it.each([
    ['fails', status(500)],
    ['is told to come again', status(503, {}, { 'retry-after': '5' })],
    ['reached nobody', failing()],
    ['was on a dead connection', failing({ kind: 'reset', unsent: false, stale: true })],
  ])('that %s leaves the first attempt as the only one', async (_, engine) => {
    const gateway = world({ endpoints: [A, B, C] });
    inTurn(gateway, later(words('first'), 200), engine, words('third'));
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(190);
    expect([gateway.served.length, gateway.taken.slots]).toEqual([2, 1]);
    await gateway.time.advance(500);
    expect(caller.text).toContain('"first"');
    expect(gateway.served).toHaveLength(2);
    expect(await hedgesOf(gateway)).toEqual({ failed: 1 });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it.each(['first', 'second'])(
    'both fail, the %s last: it is recovered once, within the attempts',
    async (last) => {
      for (const [attempts, served, code] of [
        [2, 2, 502],
        [3, 3, 200],
      ] as const) {
        const gateway = world({ endpoints: [A, B, C], route: { retry: { attempts, budget: 1 } } });
        const [one, two] = last === 'first' ? [200, 20] : [110, 50];
        inTurn(gateway, later(status(500), one), later(status(500), two), words('third'));
        const caller = gateway.chat({ stream: true });
        await gateway.time.advance(1_000);
        expect([caller.status, gateway.served.length]).toEqual([code, served]);
        expect(await hedgesOf(gateway)).toEqual({ failed: 1 });
        expect(gateway.taken).toEqual(NOTHING);
      }
    },
  );

  it('is not sent after the first attempt has failed: that is a retry', async () => {
    const gateway = world({ endpoints: [A, B, C] });
    inTurn(gateway, later(status(500), 50), later(words('second'), 300), words('third'));
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(1_000);
    expect([caller.status, gateway.served.length]).toEqual([200, 2]);
    expect(await hedgesOf(gateway)).toEqual({});
  });

  it('is armed again where the first attempt reached nobody', async () => {
    const gateway = world({ endpoints: [A, B, C] });
    inTurn(gateway, failing(), later(words('second'), 300), words('third'));
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(1_000);
    expect(caller.text).toContain('"third"');
    expect(gateway.served).toHaveLength(3);
  });

  it.each([0, 1])(
    'ends with the request when an engine says that the request is wrong (%i)',
    async (which) => {
      const gateway = world();
      const bad = later(status(400, { error: { message: 'no such role' } }), which === 0 ? 110 : 10);
      inTurn(gateway, ...(which === 0 ? [bad, never] : [never, bad]));
      const caller = gateway.chat({ stream: true });
      await gateway.time.advance(112);
      expect([caller.status, JSON.parse(caller.text).error.message]).toEqual([400, 'no such role']);
      expect(gateway.served[1 - which]!.aborted).toBe(true);
      expect(await hedgesOf(gateway)).toEqual({ abandoned: 1 });
      expect(gateway.taken).toEqual(NOTHING);
    },
  );

  it('ends when the caller leaves, the deadline passes or the worker drains: both attempts are cancelled', async () => {
    const ends: [(gateway: VirtualGateway, leave: () => void) => Promise<void> | void, string][] = [
      [(_, leave) => leave(), 'aborted'],
      [(gateway) => gateway.time.advance(900), 'failed'],
      [(gateway) => gateway.path.endAll(), 'refused'],
    ];
    for (const [end, outcome] of ends) {
      const gateway = world({ backend: { timeouts: { firstByte: '5s', total: '10s' } } });
      inTurn(gateway, never);
      const caller = gateway.chat({ stream: true });
      await gateway.time.advance(150);
      expect(gateway.served.map(({ aborted }) => aborted)).toEqual([false, false]);
      await end(gateway, () => caller.leave());
      expect(gateway.served.map(({ aborted }) => aborted)).toEqual([true, true]);
      expect(gateway.records[0]!.outcome).toBe(outcome);
      expect(await hedgesOf(gateway)).toEqual({ abandoned: 1 });
      expect(gateway.taken).toEqual(NOTHING);
      expect(gateway.time.pending).toBe(0);
    }
  });

  it('has time limits of its own, from when it was sent', async () => {
    const gateway = world({ route: { deadline: '10s', retry: { attempts: 1 } } });
    inTurn(gateway, never);
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(500);
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([true, false]);
    await gateway.time.advance(99);
    expect(caller.ended).toBe(false);
    await gateway.time.advance(1);
    expect([caller.status, codeOf(caller.text)]).toEqual([504, 'deadline_exceeded']);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('that won is held to its own idle limit, and the first attempt to none', async () => {
    const gateway = world({ route: { deadline: '10s' } });
    const halting: Engine = (served) => {
      chatStream(['one', ...Array(60).fill('more')], 10)(served);
      served.time.set(70, () => {
        served.aborted = true; // it falls silent
      });
    };
    inTurn(gateway, never, halting);
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(130);
    expect(caller.status).toBe(200);
    await gateway.time.advance(400);
    expect(caller.ended).toBe(true);
    expect(codeOf(caller.text.trimEnd().split('data: ').at(-1)!)).toBe('deadline_exceeded');
    expect(gateway.records[0]!.durationMs).toBe(470);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('counts time upstream once, though two engines were at work', async () => {
    const gateway = world();
    inTurn(gateway, later(words('slow'), 400), later(words('fast'), 100));
    gateway.chat({ stream: true });
    await gateway.time.advance(1_000);
    const overhead = gateway.registry.getSingleMetric('armature_overhead_seconds') as unknown as SpreadFamily;
    const { rows } = (await overhead.get()).spreads!;
    expect([rows.length, rows[0]!.counts.reduce((sum, count) => sum + count)]).toEqual([1, 1]);
    expect(rows[0]!.sum).toBeCloseTo(0, 6);
  });
});

describe('when and whether a hedge is sent', () => {
  it('after what 19 of 20 answers took: not before 20 are known', async () => {
    const gateway = world({ hedge: { after: 'p95' } });
    let slow = 0;
    const engine: Engine = (served) => later(words('x'), slow)(served);
    for (const origin of [A, B]) gateway.engines.set(origin, engine);
    for (let i = 0; i < 20; i++) {
      slow = i === 0 ? 380 : i; // one was slow, and so none is hedged before 20 are known
      gateway.chat({ stream: true });
      await gateway.time.advance(500);
    }
    expect(gateway.served).toHaveLength(20);
    slow = 700;
    gateway.chat({ stream: true });
    await gateway.time.advance(38);
    expect(gateway.served).toHaveLength(21);
    await gateway.time.advance(2);
    expect(gateway.served).toHaveLength(22); // 19 ms and two gaps of 10
  });

  it('a hedge that wins does not make slow answers look fast', async () => {
    const gateway = world({ hedge: { after: '100ms' } });
    for (let i = 0; i < 40; i++) {
      inTurn(gateway, never, words('x'));
      gateway.chat({ stream: true });
      await gateway.time.advance(400);
    }
    const route = gateway.world.routes.get('chat')!;
    const call = { protocol: 'openai', kind: 'chat', stream: true } as never;
    expect(route.times.quantile(call, 'b1', 0.5)).toBe(120);
  });

  it('within its share of traffic, and one more', async () => {
    const gateway = world({ hedge: { budget: 0.1 }, endpoints: [A, B, C] });
    for (let i = 0; i < 100; i++) {
      inTurn(gateway, later(words('x'), 200));
      gateway.chat({ stream: true });
      await gateway.time.advance(500);
    }
    const hedges = gateway.served.length - 100;
    expect(hedges).toBeGreaterThanOrEqual(10);
    expect(hedges).toBeLessThanOrEqual(11);
    expect(await hedgesOf(gateway)).toMatchObject({ withheld: 100 - hedges });
    expect(codesOf(gateway)).toContain('hedge-budget-spent');
  });

  it('never to the same endpoint, to one without a free place, or before those who wait', async () => {
    const alone = world({ endpoints: [A] });
    inTurn(alone, later(words('x'), 300));
    alone.chat({ stream: true });
    await alone.time.advance(800);
    expect([alone.served.length, codesOf(alone).includes('hedge-without-place')]).toEqual([1, true]);
    expect(await hedgesOf(alone)).toEqual({ withheld: 1 });

    const full = world({ backend: { limits: { concurrency: 1 } } });
    inTurn(full, later(words('x'), 300));
    for (let i = 0; i < 3; i++) full.chat({ stream: true });
    await full.time.advance(200);
    expect([full.served.length, full.taken]).toEqual([2, { running: 3, slots: 2, waiting: 2, bytes: 0 }]);
    await full.time.advance(2_000);
    expect(full.served).toHaveLength(4); // the last one had nobody behind it
    expect(full.taken).toEqual(NOTHING);
  });

  it('for streams and short answers; not for whole generated ones, sequences and named versions', async () => {
    const gateway = world({ backend: { engine: 'triton', endpoints: [A, B] }, endpoints: [A, B] });
    inTurn(gateway, never);
    const infer = (path: string, parameters = {}) =>
      gateway.send('POST', `/v2/models/chat${path}/infer`, { inputs: [], parameters });
    infer('', { sequence_id: 1, sequence_start: true });
    infer('/versions/2');
    gateway.send('GET', '/v2/models/chat', '');
    await gateway.time.advance(300);
    expect(gateway.served).toHaveLength(3);
    infer('');
    await gateway.time.advance(300);
    expect(gateway.served).toHaveLength(5);

    const openai = world();
    inTurn(openai, later(chatAnswer('x'), 300));
    openai.chat();
    await openai.time.advance(800);
    expect(openai.served).toHaveLength(1);
    inTurn(openai, never, status(200, { data: [] }));
    const caller = openai.send('POST', '/v1/embeddings', { model: 'chat', input: 'x' });
    await openai.time.advance(150);
    expect([caller.status, openai.served.length]).toEqual([200, 3]);
    expect(await hedgesOf(openai)).toEqual({ won: 1 });
  });

  it('not where the route does not ask for it, and not below a full answer', async () => {
    const plain = world({ route: { hedge: undefined } });
    inTurn(plain, later(words('x'), 300));
    plain.chat({ stream: true });
    await plain.time.advance(500);
    expect(plain.served).toHaveLength(1);
  });
});

/** The origin that was asked second. */
function otherOf(gateway: VirtualGateway): string {
  const sent = stepsOf(gateway).filter(({ code }) => code === 'sent');
  return String(sent[1]!.figures['endpoint']).replace(/\/v1$/, '');
}
