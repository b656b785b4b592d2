import { describe, expect, it } from 'vitest';
import { type Evidence, MARKS } from '../../src/events/contracts.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { embeddings } from './batching-world.ts';
import { armIn, NEXT, OLD, ReleaseGateway, sessionOf, total } from './release-world.ts';
import { chatAnswer, chatStream, type Engine, NOTHING, never, status } from './virtual-gateway.ts';

/** What counts of requests that have company: that share answers, are given kept ones, go together, or are asked twice. */

const ARMS = ['canary', 'baseline', 'stable'] as const;
const SESSIONS = Array.from({ length: 40 }, (_, i) => `s${i}`);
const ZERO = { temperature: 0 };

/** All that is told once nothing more comes. */
async function told(it: ReleaseGateway): Promise<Evidence[]> {
  await it.time.advance(6_000);
  expect(it.taken).toEqual(NOTHING);
  expect(it.time.pending).toBe(0);
  return it.evidence;
}

const requestsOf = (batches: readonly Evidence[]) =>
  Object.fromEntries(ARMS.map((arm) => [arm, total(batches, arm).requests]));
const NONE = { canary: 0, baseline: 0, stable: 0 };

describe('the same question of many sessions at once', () => {
  const route = { singleFlight: true };

  it.each(ARMS)('counts once, for the arm that came first (%s), and again when that is over', async (arm) => {
    const it = new ReleaseGateway(0.3, { route });
    const others = SESSIONS.filter((session) => armIn(0.3, session) !== arm);
    for (let round = 1; round <= 2; round++) {
      const callers = [sessionOf(arm, 0.3), ...others].map((session) =>
        it.chat(ZERO, { 'x-armature-session': session }),
      );
      await it.time.advance(100);
      expect(callers.every((caller) => caller.status === 200)).toBe(true);
      expect(it.served).toHaveLength(3 * round);
      expect(requestsOf(await told(it))).toEqual({ ...NONE, [arm]: round });
    }
  });

  it('fails once where it fails for all', async () => {
    const it = new ReleaseGateway(0.3, { route: { ...route, retry: { attempts: 1, budget: 0 } } });
    for (const origin of [OLD, NEXT]) it.engines.set(origin!, status(500));
    const canary = SESSIONS.filter((session) => armIn(0.3, session) === 'canary');
    expect(canary.length).toBeGreaterThan(5);
    for (const session of canary) it.chat(ZERO, { 'x-armature-session': session });
    const batches = await told(it);
    expect(total(batches, 'canary')).toEqual({ requests: 1, failed: 1 });
    expect(batches.flatMap(({ marks }) => marks.map(([, , mark]) => mark))).toEqual([MARKS.failed]);
  });

  it('counts each time where they are not alike', async () => {
    const it = new ReleaseGateway(0.3, { route });
    for (const [seed, session] of SESSIONS.entries())
      it.chat({ ...ZERO, seed }, { 'x-armature-session': session });
    const expected = { ...NONE };
    for (const session of SESSIONS) expected[armIn(0.3, session) as keyof typeof NONE]++;
    expect(requestsOf(await told(it))).toEqual(expected);
  });
});

describe('a question whose answer is kept', () => {
  const route = { cache: { ttl: '1h' } };

  it('for one arm counts for none, also where another has to ask', async () => {
    const it = new ReleaseGateway(0.3, { route });
    expect(await it.askedAs(sessionOf('stable', 0.3), ZERO)).toBe('old');
    expect(await it.askedAs(sessionOf('canary', 0.3), ZERO)).toBe('next');
    expect(it.served).toHaveLength(2);
    expect(await it.askedAs(sessionOf('canary', 0.3), ZERO)).toBe('next');
    expect(await it.askedAs(sessionOf('baseline', 0.3), ZERO)).toBe('old');
    expect(it.served).toHaveLength(2);
    expect(requestsOf(await told(it))).toEqual({ ...NONE, stable: 1 });
  });

  it('counts where its caller wants a new one, or it has become too old', async () => {
    const it = new ReleaseGateway(0.3, { route });
    await it.askedAs(sessionOf('stable', 0.3), ZERO);
    const fresh = { 'x-armature-session': sessionOf('canary', 0.3), 'cache-control': 'no-cache' };
    it.chat(ZERO, fresh);
    await it.time.advance(3_700_000);
    await it.askedAs(sessionOf('baseline', 0.3), ZERO);
    expect(requestsOf(await told(it))).toEqual({ canary: 1, baseline: 1, stable: 1 });
  });
});

/** Three requests of ten fail, by chance. */
function failingSome(seed: number): Engine {
  const random = seededRandom(seed);
  return (served) => (random.next() < 0.3 ? status(500)(served) : chatAnswer('x', 30)(served));
}

it('kept answers make no canary look worse that is no different', async () => {
  const share = 0.1;
  const it = new ReleaseGateway(share, {
    route: { cache: { ttl: '1h' }, retry: { attempts: 1, budget: 0 } },
  });
  it.engines.set(OLD!, failingSome(1));
  it.engines.set(NEXT!, failingSome(2));
  const random = seededRandom(3);
  // Questions come and go; each is asked some ten times within a short while.
  for (let i = 0; i < 6_000; i++) {
    const question = Math.floor(i / 100) * 10 + Math.floor(random.next() * 10);
    it.chat({ ...ZERO, seed: question }, { 'x-armature-session': `s${i}` });
    it.time.run(40);
  }
  const marked = (await told(it)).flatMap(({ marks }) => marks);
  expect(marked.length).toBeGreaterThan(200);
  const ofCanary = marked.filter(([, arm]) => arm === 0).length;
  // Of n marks n * share are the canary's where it is no different: within four standard deviations.
  const deviation = Math.sqrt(marked.length * share * (1 - share));
  expect(Math.abs(ofCanary - marked.length * share)).toBeLessThan(4 * deviation);
});

describe('requests that go upstream together', () => {
  const world = { route: { batch: { max: 64, delay: '5ms' }, retry: { attempts: 1, budget: 0 } } };
  const embed = (it: ReleaseGateway, session: string) =>
    it.send('POST', '/v1/embeddings', { model: 'chat', input: session }, { 'x-armature-session': session });

  it('are of one arm, and one of them counts', async () => {
    const it = new ReleaseGateway(0.3, world);
    for (const origin of [OLD, NEXT]) it.engines.set(origin!, embeddings);
    const callers = SESSIONS.map((session) => ({ session, caller: embed(it, session) }));
    await it.time.advance(100);
    for (const { session, caller } of callers)
      expect([caller.status, caller.answerHeader('x-armature-backend')]).toEqual([
        200,
        armIn(0.3, session) === 'canary' ? 'next' : 'old',
      ]);
    expect(it.served).toHaveLength(3);
    expect(requestsOf(await told(it))).toEqual({ ...NONE, [armIn(0.3, SESSIONS[0]!)]: 1 });
  });

  it('fail once where all of them fail', async () => {
    const it = new ReleaseGateway(0.3, world);
    it.engines.set(NEXT!, status(500));
    const canary = SESSIONS.filter((session) => armIn(0.3, session) === 'canary');
    const callers = canary.map((session) => embed(it, session));
    const batches = await told(it);
    expect(new Set(callers.map((caller) => caller.status))).toEqual(new Set([502]));
    expect(total(batches, 'canary')).toEqual({ requests: 1, failed: 1 });
  });
});

describe('a request that is asked twice at once', () => {
  const [FIRST, SECOND] = ['http://next-1:1', 'http://next-2:1'];
  const next = {
    engine: 'openai',
    model: 'm2',
    endpoints: [`${FIRST}/v1`, `${SECOND}/v1`],
  };
  const world = {
    backends: { next },
    route: { hedge: { after: '20ms', budget: 1 }, deadline: '2s', retry: { attempts: 1, budget: 0 } },
  };

  it('counts once, for its arm, and not as failed where the second one answers', async () => {
    const it = new ReleaseGateway(0.5, world);
    let asked = 0;
    const slowFirst: Engine = (served) => (++asked === 1 ? never : chatStream(['a', 'b']))(served);
    for (const origin of [FIRST, SECOND]) it.engines.set(origin!, slowFirst);
    const caller = it.chat({ stream: true }, { 'x-armature-session': sessionOf('canary', 0.5) });
    const batches = await told(it);
    expect([caller.status, asked]).toEqual([200, 2]);
    expect(it.served.every(({ request }) => request.body!.toString().includes('m2'))).toBe(true);
    expect(total(batches, 'canary')).toEqual({ requests: 1, failed: 0 });
    expect(requestsOf(batches)).toEqual({ ...NONE, canary: 1 });
  });

  it('fails once where neither answers', async () => {
    const it = new ReleaseGateway(0.5, world);
    const caller = it.chat({ stream: true }, { 'x-armature-session': sessionOf('canary', 0.5) });
    const batches = await told(it);
    expect([caller.status, it.served.length]).toEqual([504, 2]);
    expect(total(batches, 'canary')).toEqual({ requests: 1, failed: 1 });
    expect(requestsOf(batches)).toEqual({ ...NONE, canary: 1 });
  });
});
