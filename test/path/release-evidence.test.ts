import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Evidence, MARKS } from '../../src/events/contracts.ts';
import { timeBucket } from '../../src/kernel/buckets.ts';
import { sessionHash } from '../../src/policies/canary-arm/index.ts';
import { armIn, NEXT, OLD, RELEASE, ReleaseGateway, sessionOf, total } from './release-world.ts';
import { chatAnswer, chatStream, type Engine, failing, NOTHING, never, status } from './virtual-gateway.ts';

/** What workers tell of a route under release. */

const hashOf = (session: string) => sessionHash(RELEASE, `open/${session}`);
const RETRIES = { retry: { attempts: 2, budget: 1 } };

/** All that is told once nothing more comes. */
async function told(it: ReleaseGateway): Promise<Evidence[]> {
  await it.time.advance(6_000);
  return it.evidence;
}

/** One request of a session of the canary, whose engine does this. */
async function askCanary(engine: Engine, more: object = {}, route: object = {}) {
  const it = new ReleaseGateway(0.5, { route: { ...RETRIES, ...route } });
  it.engines.set(NEXT!, engine);
  const session = sessionOf('canary', 0.5);
  const caller = it.chat(more, { 'x-armature-session': session });
  await it.time.advance(5_000);
  return { it, caller, session, batches: await told(it) };
}

describe('a request of the canary', () => {
  it('that is answered counts once, with its time, its tokens and as the first of its session', async () => {
    const { batches, session } = await askCanary(chatAnswer('x', 40));
    expect(batches).toHaveLength(1);
    const [batch] = batches;
    expect(batch).toMatchObject({ release: RELEASE, route: 'chat', worker: 0, snapshot: 2, share: 0.5 });
    expect(batch!.arms.canary).toMatchObject({ requests: 1, failed: 0, tokensIn: 3, tokensOut: 2, cost: 2 });
    expect(batch!.arms.canary.times).toEqual({ 'chat/256': [[timeBucket(40), 1]] });
    expect(batch!.firsts).toEqual([[hashOf(session), 0, 0]]);
    expect(batch!.marks).toEqual([]);
    expect([batch!.firstsBelow, batch!.marksBelow]).toEqual([2 ** 32, 2 ** 32]);
    expect(batch!.toMs - batch!.fromMs).toBeLessThanOrEqual(5_001);
    expect(batch!.arms.stable.requests + batch!.arms.baseline.requests).toBe(0);
  });

  it.each<[string, Engine]>([
    ['refuses connections', failing()],
    ['answers 500', status(500)],
    ['answers 503', status(503)],
    ['answers 401', status(401)],
    ['breaks off', failing({ kind: 'reset', unsent: false })],
    ['says an error in its first event', (served) => status(200, { error: { message: 'no' } })(served)],
  ])('that fails (%s) is failed, though stable answers it (traps 14, 22)', async (_, engine) => {
    const { it, batches, session } = await askCanary(engine);
    expect(total(batches, 'canary')).toEqual({ requests: 1, failed: 1 });
    expect(total(batches, 'stable')).toEqual({ requests: 0, failed: 0 });
    expect(batches[0]!.marks).toEqual([[hashOf(session), 0, MARKS.failed]]);
    expect(batches[0]!.firsts).toEqual([[hashOf(session), 0, MARKS.failed]]);
    expect(it.taken).toEqual(NOTHING);
  });

  it('that never answers, or breaks off in the middle of a stream, is failed', async () => {
    const hung = await askCanary(never, {}, { deadline: '1s' });
    expect(hung.caller.status).toBe(504);
    expect(total(hung.batches, 'canary')).toEqual({ requests: 1, failed: 1 });
    const cut = await askCanary(
      (served) => {
        served.time.set(10, () => {
          served.sink.onHead(200, { 'content-type': 'text/event-stream' });
          served.sink.onData(Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'));
        });
        served.time.set(30, () =>
          served.sink.onError({ kind: 'reset', message: 'gone', unsent: false, stale: false }),
        );
      },
      { stream: true },
    );
    expect(cut.caller.status).toBe(200);
    expect(total(cut.batches, 'canary')).toEqual({ requests: 1, failed: 1 });
    // Its first content came in time all the same.
    expect(cut.batches[0]!.arms.canary.times).toEqual({ 'chat-stream/16': [[timeBucket(10), 1]] });
  });

  it('that its engine says is wrong has not failed, and is marked as refused', async () => {
    const { caller, batches, session } = await askCanary(status(400));
    expect(caller.status).toBe(400);
    expect(total(batches, 'canary')).toEqual({ requests: 1, failed: 0 });
    expect(batches[0]!.marks).toEqual([[hashOf(session), 0, MARKS.refused]]);
    expect(batches[0]!.firsts).toEqual([[hashOf(session), 0, MARKS.refused]]);
  });

  it.each([
    [10, 0],
    [60, MARKS.slowP95],
    [200, MARKS.slowP95 | MARKS.slowP99],
  ])(
    'whose caller leaves after %i ms, before there is an answer, has not failed, but was slow',
    async (afterMs, marks) => {
      const edges = { times: { 'chat/256': { p95: 50, p99: 100 } } };
      const it = new ReleaseGateway(0.5, {}, { edges });
      it.engines.set(NEXT!, chatAnswer('x', 1_000));
      const session = sessionOf('canary', 0.5);
      const caller = it.chat({}, { 'x-armature-session': session });
      await it.time.advance(afterMs);
      caller.leave();
      const [batch] = await told(it);
      expect(batch!.arms.canary).toMatchObject({ requests: 1, failed: 0, times: {} });
      expect(batch!.firsts).toEqual([[hashOf(session), 0, marks]]);
    },
  );

  it('that a rung answers is failed; so is one for which another target stands in', async () => {
    const rung = await askCanary(
      status(500),
      {},
      { retry: { attempts: 1, budget: 0 }, ladder: [{ answer: 'busy' }] },
    );
    expect(rung.caller.answerHeader('x-armature-degraded')).toBe('answer');
    expect(total(rung.batches, 'canary')).toEqual({ requests: 1, failed: 1 });
    expect(rung.batches[0]!.arms.canary.times).toEqual({});

    const it = new ReleaseGateway(0.5);
    it.world.read({ health: { [`next|${NEXT}/v1`]: 'unwell' } });
    expect(await it.askedAs(sessionOf('canary', 0.5))).toBe('old');
    expect(total(await told(it), 'canary')).toEqual({ requests: 1, failed: 1 });
  });

  it('that a limit of its tenant refuses says nothing', async () => {
    const it = new ReleaseGateway(1);
    it.path.draining = true;
    it.chat();
    expect(await told(it)).toEqual([]);
  });
});

describe('times', () => {
  it('of a stream are those to its first content, beyond frozen edges they are marks: not of stable', async () => {
    const edges = { times: { 'chat-stream/16': { p95: 20, p99: 100 } } };
    const share = 0.3;
    const it = new ReleaseGateway(share, {}, { edges });
    const slow: Engine = (served) => served.time.set(25, () => chatStream(['a', 'b'], 10)(served));
    for (const origin of [OLD!, NEXT!]) it.engines.set(origin, slow);
    const sessions = ['canary', 'baseline', 'stable'].map((arm) => sessionOf(arm, share));
    for (const session of sessions) it.chat({ stream: true }, { 'x-armature-session': session });
    const [batch] = await told(it);
    for (const arm of ['canary', 'baseline'] as const)
      expect(batch!.arms[arm].times).toEqual({ 'chat-stream/16': [[timeBucket(45), 1]] });
    expect(batch!.arms.stable).toMatchObject({ requests: 1, times: {}, costs: [] }); // what edges are frozen from is known
    expect(batch!.marks).toEqual(
      sessions
        .slice(0, 2)
        .map((session, arm) => [hashOf(session), arm, MARKS.slowP95])
        .sort(([a], [b]) => (a as number) - (b as number)),
    );
  });

  it('hang on no arm: the class of a request is that of what it asks', async () => {
    const it = new ReleaseGateway(0.5);
    for (let i = 0; i < 40; i++) await it.askedAs(`s${i}`, { max_tokens: i < 20 ? 10 : 1_000 });
    for (const batch of await told(it))
      for (const arm of ['canary', 'baseline'] as const)
        expect(['chat/4', 'chat/256']).toEqual(expect.arrayContaining(Object.keys(batch.arms[arm].times)));
  });
});

describe('costs', () => {
  const price = (each: object) => ({
    old: {
      engine: 'openai',
      model: 'm1',
      endpoints: [`${OLD}/v1`],
      price: { in: 1_000_000, out: 2_000_000 },
    },
    next: { engine: 'openai', model: 'm2', endpoints: [`${NEXT}/v1`], ...each },
    other: { engine: 'openai', model: 'm1', endpoints: ['http://o:1/v1'], price: { in: 1, out: 1 } },
  });

  it('go by prices where every backend has one, and else by tokens of answers', async () => {
    const priced = new ReleaseGateway(
      0.5,
      { backends: price({ price: { in: 2_000_000, out: 3_000_000 } }) },
      { edges: { times: {}, cost: 9 } },
    );
    for (const arm of ['canary', 'baseline']) await priced.askedAs(sessionOf(arm, 0.5));
    const [batch] = await told(priced);
    expect([batch!.arms.baseline.cost, batch!.arms.canary.cost]).toEqual([7, 12]); // 3 tokens in, 2 out
    expect(batch!.marks.map(([, arm, marks]) => [arm, marks])).toEqual([[0, MARKS.dearP95]]);
    const unpriced = new ReleaseGateway(0.5, { backends: price({}) });
    for (const arm of ['canary', 'baseline']) await unpriced.askedAs(sessionOf(arm, 0.5));
    const [other] = await told(unpriced);
    expect([other!.arms.baseline.cost, other!.arms.canary.cost]).toEqual([2, 2]);
  });
});

describe('a session', () => {
  it('is told as new once by a worker, with the marks of its first request; its other marks come when they do', async () => {
    const it = new ReleaseGateway(0.5, { route: RETRIES });
    const session = sessionOf('canary', 0.5);
    await it.askedAs(session);
    await told(it);
    it.engines.set(NEXT!, status(500));
    for (let i = 0; i < 3; i++) await it.askedAs(session);
    const batches = await told(it);
    expect(batches.flatMap(({ firsts }) => firsts)).toEqual([[hashOf(session), 0, 0]]);
    expect(batches.flatMap(({ marks }) => marks)).toEqual([[hashOf(session), 0, MARKS.failed]]);
    expect(total(batches, 'canary')).toEqual({ requests: 4, failed: 3 });
  });

  it('that is kept at the canary counts by its arm', async () => {
    const it = new ReleaseGateway(0.5);
    const session = sessionOf('canary', 0.5);
    const share = 0.001;
    expect(armIn(share, session)).toBe('stable');
    await it.askedAs(session);
    it.step(share);
    expect(await it.askedAs(session)).toBe('next');
    const batches = await told(it);
    expect(
      total(
        batches.filter((batch) => batch.share === share),
        'stable',
      ).requests,
    ).toBe(1);
  });
});

describe('evidence is told', () => {
  it('within a second where something failed, of whichever arm, else within five', async () => {
    const it = new ReleaseGateway(0.5, { route: RETRIES });
    await it.askedAs(sessionOf('canary', 0.5));
    await it.time.advance(4_900);
    expect(it.evidence).toHaveLength(0);
    await it.time.advance(100);
    expect(it.evidence).toHaveLength(1);
    it.engines.set(NEXT!, status(500));
    await it.askedAs(sessionOf('canary', 0.5));
    await it.time.advance(1_000);
    expect(it.evidence).toHaveLength(2);
    it.engines.set(OLD!, status(500));
    await it.askedAs(sessionOf('baseline', 0.5));
    await it.time.advance(1_000);
    expect(it.evidence).toHaveLength(3);
  });

  it('at once when the snapshot changes; what ends later counts to the share that it was divided by', async () => {
    const it = new ReleaseGateway(0.3);
    it.engines.set(NEXT!, chatAnswer('x', 400));
    const session = sessionOf('canary', 0.3);
    await it.askedAs(sessionOf('stable', 0.3));
    it.chat({}, { 'x-armature-session': session });
    await it.time.advance(10);
    it.step(0.6);
    expect(it.evidence.map(({ share, snapshot }) => [share, snapshot])).toEqual([[0.3, 2]]);
    await it.askedAs(sessionOf('canary', 0.6));
    const batches = await told(it);
    expect(
      batches.slice(1).map(({ share, snapshot, arms }) => [share, snapshot, arms.canary.requests]),
    ).toEqual(
      expect.arrayContaining([
        [0.3, 2, 1],
        [0.6, 3, 1],
      ]),
    );
  });

  it('before a worker leaves, also of what a drain ends', async () => {
    const it = new ReleaseGateway(0.5);
    it.engines.set(NEXT!, never);
    it.chat({}, { 'x-armature-session': sessionOf('canary', 0.5) });
    await it.askedAs(sessionOf('baseline', 0.5));
    it.path.draining = true;
    it.path.endAll();
    it.gatherer.flush();
    expect(total(it.evidence, 'baseline').requests).toBe(1);
    expect(total(it.evidence, 'canary').failed).toBe(0); // the worker ended it, not the canary
    expect(it.time.pending).toBe(0);
  });

  it('not at all where nothing comes, and no timer runs', async () => {
    const it = new ReleaseGateway(0.5);
    await it.time.advance(60_000);
    expect(it.evidence).toEqual([]);
    expect(it.time.pending).toBe(0);
    await it.askedAs('a');
    await told(it);
    expect(it.time.pending).toBe(0);
  });

  it('in batches of bounded size, and sessions that are left out are told by their hashes alone', async () => {
    const it = new ReleaseGateway(0.5, { route: { retry: { attempts: 1, budget: 0 }, deadline: '30ms' } });
    it.engines.set(NEXT!, never);
    it.engines.set(OLD!, never);
    for (let i = 0; i < 3_000; i++) {
      it.chat({}, { 'x-armature-session': `s${i}` });
      it.time.run(0.2);
    }
    const batches = await told(it);
    for (const { firsts, marks, firstsBelow, marksBelow } of batches) {
      expect(firsts.length).toBeLessThanOrEqual(250);
      expect(marks.length).toBeLessThanOrEqual(500);
      for (const [hash] of firsts) expect(hash).toBeLessThanOrEqual(firstsBelow);
      for (const [hash] of marks) expect(hash).toBeLessThanOrEqual(marksBelow);
    }
    // What was told below the least bound is all there was.
    const below = Math.min(...batches.map(({ firstsBelow }) => firstsBelow));
    const seen = new Set(
      batches.flatMap(({ firsts }) => firsts.map(([hash]) => hash)).filter((hash) => hash <= below),
    );
    const there = Array.from({ length: 3_000 }, (_, i) => `s${i}`)
      .filter((session) => armIn(0.5, session) !== 'stable')
      .map(hashOf)
      .filter((hash) => hash <= below);
    expect(seen).toEqual(new Set(there));
    expect(below).toBeLessThan(2 ** 32);
  });
});

it('of two workers adds up: requests are told once, and sessions that both have seen by the same hash', async () => {
  const workers = [new ReleaseGateway(0.3, {}, {}, 1), new ReleaseGateway(0.3, {}, {}, 2)];
  const sessions = Array.from({ length: 40 }, (_, i) => `s${i}`);
  for (const session of sessions) for (const worker of workers) await worker.askedAs(session);
  const batches = (await Promise.all(workers.map(told))).flat();
  for (const arm of ['canary', 'baseline', 'stable'] as const) {
    const own = sessions.filter((session) => armIn(0.3, session) === arm);
    expect(total(batches, arm)).toEqual({ requests: 2 * own.length, failed: 0 });
    if (arm === 'stable') continue;
    const seen = batches
      .flatMap(({ firsts }) => firsts)
      .filter(([, of]) => of === (arm === 'canary' ? 0 : 1));
    expect(seen).toHaveLength(2 * own.length);
    expect(new Set(seen.map(([hash]) => hash))).toEqual(new Set(own.map(hashOf)));
  }
});

it('counts every request once, whatever happens, and leaves nothing taken', async () => {
  const engines: Engine[] = [
    chatAnswer('x', 20),
    chatAnswer('x', 300),
    status(500),
    status(429, {}, { 'retry-after': '1' }),
    status(400),
    failing(),
    failing({ kind: 'reset', unsent: false }, 40),
    never,
  ];
  const event = fc.record({
    next: fc.nat(engines.length - 1),
    old: fc.nat(engines.length - 1),
    session: fc.option(fc.nat(12), { nil: undefined }),
    gapMs: fc.nat(1_500),
    leavesAfterMs: fc.option(fc.nat(100), { nil: undefined, freq: 5 }),
    share: fc.option(fc.constantFrom(0, 0.1, 0.5, 1), { nil: undefined, freq: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 20 }), async (events) => {
      const it = new ReleaseGateway(0.5, { route: { ...RETRIES, deadline: '2s' } });
      for (const { next, old, session, gapMs, leavesAfterMs, share } of events) {
        it.engines.set(NEXT!, engines[next]!);
        it.engines.set(OLD!, engines[old]!);
        if (share !== undefined) it.step(share);
        const caller = it.chat({}, session === undefined ? {} : { 'x-armature-session': `s${session}` });
        if (leavesAfterMs !== undefined) it.time.set(leavesAfterMs, () => caller.leave());
        await it.time.advance(gapMs);
      }
      await it.time.advance(20_000);
      const arms = ['canary', 'baseline', 'stable'] as const;
      const told = arms.reduce((sum, arm) => sum + total(it.evidence, arm).requests, 0);
      expect(told).toBe(events.length);
      for (const { arms: seen, firsts } of it.evidence) {
        for (const arm of arms) expect(seen[arm].failed).toBeLessThanOrEqual(seen[arm].requests);
        expect(firsts.length).toBeLessThanOrEqual(seen.canary.requests + seen.baseline.requests);
      }
      expect(it.taken).toEqual(NOTHING);
      expect(it.time.pending).toBe(0);
    }),
    { numRuns: 100 },
  );
});
