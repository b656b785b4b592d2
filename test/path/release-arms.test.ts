import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { armIn, config, NEXT, OLD, ReleaseGateway, sessionOf } from './release-world.ts';
import { chatAnswer, failing, NOTHING, never, status } from './virtual-gateway.ts';

/** Who answers whom while a route is under release. */

const SESSIONS = Array.from({ length: 40 }, (_, i) => `s${i}`);
const codes = (it: ReleaseGateway) => it.records.at(-1)!.steps.map(({ code }) => code);

describe('a session of a route under release', () => {
  it.each(['none', 'session'])(
    'goes to the backend of its arm, whatever the affinity (%s)',
    async (affinity) => {
      const it = new ReleaseGateway(0.3, { affinity });
      for (const session of SESSIONS) {
        const arm = armIn(0.3, session);
        expect(await it.askedAs(session)).toBe(arm === 'canary' ? 'next' : 'old');
        expect(codes(it)).toContain(`${arm}-by-session`);
      }
    },
  );

  it('of the baseline goes to the backend that is named for it, also where that is no target', async () => {
    const it = new ReleaseGateway(0.3, {}, { baseline: 'base' });
    for (const session of SESSIONS) {
      const to = { canary: 'next', baseline: 'base', stable: 'old' }[armIn(0.3, session)];
      expect(await it.askedAs(session)).toBe(to);
    }
  });

  it('that sends no session is another one each time', async () => {
    const it = new ReleaseGateway(0.5);
    const seen = new Set<string | undefined>();
    for (let i = 0; i < 40; i++) seen.add(await it.askedAs(undefined));
    expect(seen).toEqual(new Set(['old', 'next']));
  });

  it('stays with the canary as its share grows, and goes back by a rollback alone (traps 20, 21)', async () => {
    const share = fc.double({ min: 0.01, max: 1, noNaN: true });
    await fc.assert(
      fc.asyncProperty(fc.array(share, { minLength: 1, maxLength: 6 }), async (shares) => {
        const it = new ReleaseGateway(0);
        const atCanary = new Set<string>();
        for (const each of shares) {
          it.step(each); // also where that is less than before
          for (const session of SESSIONS) {
            const answered = await it.askedAs(session);
            if (atCanary.has(session) || armIn(each, session) === 'canary') expect(answered).toBe('next');
            if (answered === 'next') atCanary.add(session);
          }
        }
        it.rollBack();
        for (const session of SESSIONS) expect(await it.askedAs(session)).toBe('old');
      }),
      { numRuns: 20 },
    );
  });

  it('moves to the canary and back, and each move is told with its reason', async () => {
    const it = new ReleaseGateway(0, { affinity: 'session' });
    const session = sessionOf('canary', 0.2);
    await it.askedAs(session);
    it.step(0.2);
    await it.askedAs(session);
    expect(it.moves().at(-1)!.data).toMatchObject({ from: 'old', to: 'next', reason: 'canary-share' });
    it.rollBack();
    await it.askedAs(session);
    expect(it.moves().at(-1)!.data).toMatchObject({ from: 'next', to: 'old', reason: 'rolled-back' });
  });

  it('goes back by a rollback also where the canary keeps the weight that it had before', async () => {
    const it = new ReleaseGateway(0.05, { affinity: 'session' });
    it.step(0.6);
    const sessions = SESSIONS.filter((session) => armIn(0.6, session) === 'canary');
    for (const session of sessions) expect(await it.askedAs(session)).toBe('next');
    it.rollBack(0.05);
    const after = await Promise.all(sessions.map((session) => it.askedAs(session)));
    expect(after.filter((to) => to === 'next').length).toBeLessThan(sessions.length / 2);
  });

  it('stays with the canary once that is promoted', async () => {
    const it = new ReleaseGateway(0.4, { affinity: 'session' });
    const session = sessionOf('canary', 0.4);
    expect(await it.askedAs(session)).toBe('next');
    it.rollBack(1);
    expect(await it.askedAs(session)).toBe('next');
  });

  it('has nothing of the canary at a share of 0', async () => {
    const it = new ReleaseGateway(0);
    for (const session of SESSIONS) expect(await it.askedAs(session)).toBe('old');
    it.engines.set(OLD!, failing());
    await it.askedAs('s1');
    expect(it.served.some(({ request }) => request.body!.toString().includes('m2'))).toBe(false);
  });

  it('follows a rollback while it waits for a place at the canary', async () => {
    const one = {
      engine: 'openai',
      model: 'm2',
      endpoints: [`${NEXT}/v1`],
      limits: { concurrency: 1, adaptive: 'off' },
    };
    const it = new ReleaseGateway(1e-9, { backends: { next: one } });
    it.step(0.5);
    it.engines.set(NEXT!, chatAnswer('slow', 500));
    const session = sessionOf('canary', 0.5);
    const first = it.chat({}, { 'x-armature-session': session });
    const second = it.chat({}, { 'x-armature-session': session });
    await it.time.advance(10);
    expect(it.taken.waiting).toBe(2); // in its route's queue, and in the canary's line
    it.rollBack();
    await it.time.advance(10);
    expect([first.status, second.status]).toEqual([undefined, 200]); // however long the canary takes
    await it.time.advance(2_000);
    expect([first, second].map((caller) => caller.status)).toEqual([200, 200]);
    expect([first, second].map((caller) => caller.answerHeader('x-armature-backend'))).toEqual([
      'next',
      'old',
    ]);
    expect(it.taken).toEqual(NOTHING);
  });
});

describe('where an arm cannot answer', () => {
  it('another target stands in for a canary none of whose endpoints is well, and it is told', async () => {
    const it = new ReleaseGateway(0.5, { affinity: 'session' });
    const session = sessionOf('canary', 0.5);
    expect(await it.askedAs(session)).toBe('next');
    const [endpoint] = it.world.backends.get('next')!.endpoints;
    endpoint!.unwell = true;
    expect(await it.askedAs(session)).toBe('old');
    expect(codes(it)).toContain('arm-stands-in');
    expect(it.moves().at(-1)!.data).toMatchObject({ from: 'next', to: 'old', reason: 'endpoints-unwell' });
    endpoint!.unwell = false;
    expect(await it.askedAs(session)).toBe('next');
  });

  it('a request that the canary fails is answered by stable', async () => {
    const it = new ReleaseGateway(0.5, { route: { retry: { attempts: 2, budget: 1 } } });
    for (const engine of [failing(), status(500), failing({ kind: 'reset', unsent: false })]) {
      it.engines.set(NEXT!, engine);
      expect(await it.askedAs(sessionOf('canary', 0.5))).toBe('old');
      await it.time.advance(10_000);
    }
  });

  it('what a promoted backend has replaced answers where that cannot, while it may be gone back to', async () => {
    const it = new ReleaseGateway(0.5, { affinity: 'session', stable: [1, 1] });
    it.step(1);
    for (const engine of [failing(), status(500)]) {
      it.engines.set(NEXT!, engine);
      expect(['old', 'other']).toContain(await it.askedAs('s1'));
    }
    it.engines.set(NEXT!, chatAnswer('x', 1));
    await it.time.advance(120_000);
    expect(await it.askedAs('s1')).toBe('next');
    it.rollBack(1);
    it.engines.set(NEXT!, status(500));
    expect(await it.askedAs('s1')).toBeUndefined(); // a weight of 0 is one again
  });

  it('the canary stands in for a stable that is broken, while it has a share (trap 12)', async () => {
    const it = new ReleaseGateway(0.1);
    const session = sessionOf('stable', 0.1);
    it.world.read({ health: { [`old|${OLD}/v1`]: 'unwell' } });
    expect(await it.askedAs(session)).toBe('next');
    it.step(0);
    expect(await it.askedAs(session)).toBe(undefined);
  });

  it('waits for a host of the canary that starts in time, rather than to count as failed', async () => {
    const next = { engine: 'sim', model: 'm2' };
    const it = new ReleaseGateway(1e-9, { backends: { next }, route: { deadline: '5s' } });
    it.step(0.5);
    it.world.read({ hosts: { next: { state: 'starting', startingMs: 500, expectedMs: 1_000 } } });
    const caller = it.chat({}, { 'x-armature-session': sessionOf('canary', 0.5) });
    await it.time.advance(10);
    expect(caller.status).toBe(undefined);
    const running = config(0.5, { backends: { next }, route: { deadline: '5s' } });
    it.load(running, { next: [`${NEXT}/v1`] }, { chat: { id: 'rel_1', canary: 'next', share: 0.5 } });
    it.world.read({ hosts: { next: { state: 'running' } } });
    await it.time.advance(100);
    expect(caller.answerHeader('x-armature-backend')).toBe('next');
  });
});

describe('what requests are made of', () => {
  it('tiers are chosen among the targets of an arm', async () => {
    const backends = {
      old: { engine: 'openai', model: 'm1', endpoints: [`${OLD}/v1`], tier: 'large' },
      next: { engine: 'openai', model: 'm2', endpoints: [`${NEXT}/v1`], tier: 'large' },
    };
    const it = new ReleaseGateway(0.3, { backends, stable: [1, 0], route: { tiers: [{ tier: 'large' }] } });
    for (const session of SESSIONS)
      expect(await it.askedAs(session)).toBe(armIn(0.3, session) === 'canary' ? 'next' : 'old');
  });

  it('requests of several arms share no answer that is in the air, and have kept ones of their own arm', async () => {
    const it = new ReleaseGateway(0.5, { route: { singleFlight: true, cache: { ttl: '1m' } } });
    it.engines.set(OLD!, chatAnswer('from old', 20));
    it.engines.set(NEXT!, chatAnswer('from next', 20));
    for (let round = 0; round < 2; round++) {
      const callers = SESSIONS.map((session) => ({
        session,
        caller: it.chat({ temperature: 0 }, { 'x-armature-session': session }),
      }));
      await it.time.advance(100);
      for (const { session, caller } of callers) {
        const to = armIn(0.5, session) === 'canary' ? 'next' : 'old';
        expect([caller.answerHeader('x-armature-backend'), caller.text]).toEqual([
          to,
          expect.stringContaining(`from ${to}`),
        ]);
      }
    }
    expect(it.served.length).toBeLessThanOrEqual(3);
  });

  it('sequences go by weight as ever, and so do named versions', async () => {
    const triton = (origin: string) => ({ engine: 'triton', model: origin, endpoints: [origin] });
    const it = new ReleaseGateway(0.5, {
      backends: { old: triton(OLD!), next: triton(NEXT!), other: triton('http://o:1') },
    });
    const infer = (path: string, parameters = {}) =>
      it.send('POST', `/v2/models/chat${path}/infer`, { inputs: [], parameters });
    infer('', { sequence_id: 1, sequence_start: true });
    infer('/versions/2');
    infer('');
    await it.time.advance(50);
    expect(it.records).toHaveLength(3);
    const arms = it.records.map(({ steps }) => steps.some(({ policy }) => policy === 'canary-arm@1'));
    expect(arms.filter(Boolean)).toHaveLength(1);
  });

  it('hedges stay within an arm', async () => {
    const it = new ReleaseGateway(0.5, { route: { hedge: { after: '20ms', budget: 1 }, deadline: '10s' } });
    it.engines.set(NEXT!, never);
    const caller = it.chat({ stream: true }, { 'x-armature-session': sessionOf('canary', 0.5) });
    await it.time.advance(1_000);
    expect(it.served.map(({ request }) => request.body!.toString().includes('m2'))).toEqual([true]);
    caller.leave();
  });
});
