import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { replayable } from '../../src/policies/register.ts';
import { json } from './sessions-world.ts';
import { backendOf, long, ORIGINS, TiersGateway, tiersConfig } from './tiers-world.ts';
import { chatAnswer, failing, NOTHING, status } from './virtual-gateway.ts';

const LARGE = { tier: 'large' };
const ASKED = { tier: 'asked' };

describe('a rule', () => {
  it('for a priority', async () => {
    const it = new TiersGateway([{ tier: 'edge', when: { priority: ['batch'] } }, LARGE]);
    expect(await it.answers()).toBe('big');
    expect(await it.answers({}, { 'x-armature-priority': 'batch' })).toBe('small');
    expect(it.chosen()).toMatchObject({
      code: 'tier-by-rule',
      figures: { tier: 'edge', rule: 0 },
      setting: 'routes.chat.tiers[0]',
    });
    expect(it.taken).toEqual(NOTHING);
  });

  it('for lengths', async () => {
    const it = new TiersGateway([
      { tier: 'edge', when: { promptTokensMax: 500 } },
      { tier: 'mid', when: { promptTokensMax: 2000 } },
      LARGE,
    ]);
    expect(await it.answers(long(100))).toBe('small');
    expect(await it.answers(long(1000))).toBe('middle');
    expect(await it.answers(long(3000))).toBe('big');
  });

  it('for what is asked: by the request, else by its tenant', async () => {
    const it = new TiersGateway([ASKED, { tier: 'mid' }]);
    expect(await it.answers()).toBe('middle');
    expect(await it.answers({}, { 'x-armature-tier': 'edge' })).toBe('small');
    const keys = [{ hash: `sha256:${createHash('sha256').update('key').digest('hex')}` }];
    it.load(tiersConfig([ASKED, { tier: 'mid' }], {}, { tenants: { web: { tier: 'large', keys } } }));
    const known = { authorization: 'Bearer key' };
    expect(await it.answers({}, known)).toBe('big');
    expect(await it.answers({}, { ...known, 'x-armature-tier': 'edge' })).toBe('small');
  });

  it('for price: the cheapest with a place, a window and the time for it', async () => {
    const config = tiersConfig([{ tier: 'cheapest' }]);
    Object.assign(config.backends.small, { context: { window: 500 } });
    const it = new TiersGateway([{ tier: 'cheapest' }]);
    it.load(config);
    expect(await it.answers()).toBe('small');
    expect(await it.answers(long(1000))).toBe('middle');
  });

  it('for load: from it on, until that was below three quarters of it for two seconds', async () => {
    const it = new TiersGateway([ASKED, { tier: 'edge', when: { load: { large: 0.75 } } }, LARGE]);
    it.fill('large', 2, 1_000);
    expect(await it.answers()).toBe('big');
    it.fill('large', 1, 300);
    expect(await it.answers()).toBe('small');
    await it.time.advance(1_000);
    // Nothing is in flight there any more; it holds for two seconds yet.
    expect(await it.answers()).toBe('small');
    await it.time.advance(1_000);
    expect(await it.answers()).toBe('small');
    await it.time.advance(1_000);
    expect(await it.answers()).toBe('big');
    expect(await it.answers()).toBe('big');
  });

  it('decides what it decided then, when it is replayed', async () => {
    const it = new TiersGateway([{ tier: 'edge', when: { priority: ['batch'] } }, { tier: 'cheapest' }]);
    it.engines.set(ORIGINS.edge, failing());
    for (const priority of ['batch', 'critical']) await it.answers({}, { 'x-armature-priority': priority });
    const taken = it.records.flatMap(({ steps }) => steps.filter(({ policy }) => policy === 'tier-choice@1'));
    expect(taken.length).toBeGreaterThan(2);
    for (const { input, code, figures } of taken) {
      const read: unknown = JSON.parse(JSON.stringify(input));
      expect(replayable.get('tier-choice')!.replay(read, seededRandom(1))).toMatchObject({
        reason: { code, figures },
      });
    }
  });
});

describe('what is asked for', () => {
  it('is refused where no backend stands in such a tier, and where it is said twice', async () => {
    const it = new TiersGateway([ASKED, LARGE]);
    const caller = it.chat({}, { 'x-armature-tier': 'lagre' });
    expect(caller.status).toBe(400);
    expect(json(caller).error).toMatchObject({ param: 'x-armature-tier', code: 'invalid_request' });
    expect(json(caller).error.message).toContain('edge, mid, large');
  });

  it('is nothing to a route without tiers', async () => {
    const config = tiersConfig([LARGE]);
    const { tiers: _, ...route } = config.routes.chat;
    const it = new TiersGateway([LARGE]);
    it.load({ ...config, routes: { chat: route } });
    expect(await it.answers({}, { 'x-armature-tier': 'lagre' })).toMatch(/big|middle|small/);
    expect(it.chosen()).toBeUndefined();
  });

  it('is told apart by the cache', async () => {
    const it = new TiersGateway([ASKED, LARGE], { cache: {} });
    const asked = (tier: string) => it.answers({ temperature: 0 }, { 'x-armature-tier': tier });
    expect([await asked('edge'), await asked('large'), await asked('edge')]).toEqual([
      'small',
      'big',
      'small',
    ]);
    expect(it.served.length).toBe(2);
  });
});

describe('a tier that cannot take a request', () => {
  it('is passed over when no endpoint of it is well, and the step says so', async () => {
    const it = new TiersGateway([{ tier: 'edge' }, LARGE]);
    for (const endpoint of it.world.backends.get('small')!.endpoints) endpoint.unwell = true;
    expect(await it.answers()).toBe('big');
    expect(it.chosen()).toMatchObject({
      code: 'tier-stands-in',
      figures: { tier: 'large', wanted: 'edge', passed: 'unwell', rule: 0 },
    });
    for (const endpoint of it.world.backends.get('big')!.endpoints) endpoint.unwell = true;
    expect(await it.answers()).toBe('middle');
    expect(it.chosen()!.figures['tier']).toBe('mid');
  });

  it('is passed over when it is full, without a label', async () => {
    const it = new TiersGateway([ASKED, { tier: 'edge' }]);
    it.fill('edge', 4);
    const caller = it.chat();
    await it.time.advance(200);
    expect(backendOf(caller)).toBe('big');
    expect(caller.answerHeader('x-armature-degraded')).toBeUndefined();
    expect(it.chosen()).toMatchObject({ figures: { wanted: 'edge', passed: 'full', load: 1 } });
  });

  it.each([
    ['refuses connections', failing()],
    ['breaks off', failing({ kind: 'reset', unsent: false })],
    ['is overloaded', status(503)],
    ['fails', status(500)],
  ])('is passed over when its engine %s', async (_, engine) => {
    const it = new TiersGateway([{ tier: 'edge' }, LARGE]);
    it.engines.set(ORIGINS.edge, engine);
    for (let i = 0; i < 5; i++) expect(await it.answers()).toBe('big');
    expect(it.taken).toEqual(NOTHING);
  });

  it('leaves to the next whom it cannot serve in time, and who would wait in vain', async () => {
    const it = new TiersGateway([ASKED, { tier: 'edge' }], { deadline: '1s' });
    it.engines.set(ORIGINS.edge, chatAnswer('Hello', 900));
    for (let i = 0; i < 4; i++) {
      await it.answers();
      await it.time.advance(1_000);
    }
    it.fill('edge', 4, 900);
    it.fill('mid', 4, 300);
    it.fill('large', 4, 300);
    const callers = Array.from({ length: 4 }, () => it.chat());
    await it.time.advance(3_000);
    expect(callers.map(backendOf)).toEqual(['big', 'big', 'big', 'big']);
    const id = callers[3]!.answerHeader('x-armature-id');
    const codes = it.records.find((record) => record.id === id)!.steps.map(({ code }) => code);
    for (const code of ['tier-by-rule', 'would-miss-deadline', 'tier-stands-in', 'waited']) {
      expect(codes).toContain(code);
    }
    expect(it.taken).toEqual(NOTHING);
  });

  it('is waited for as long as its rule says', async () => {
    const it = new TiersGateway([ASKED, { tier: 'edge', waitMax: '2s' }]);
    for (let i = 0; i < 8; i++) await it.answers({}, { 'x-armature-tier': 'edge' });
    it.fill('edge', 4, 150);
    const caller = it.chat();
    await it.time.advance(500);
    expect(backendOf(caller)).toBe('small');
    expect(it.records.at(-1)!.steps.map(({ code }) => code)).toContain('waited');
  });

  it('is not tried again by one that it turned away, and the last refusal is the answer', async () => {
    const it = new TiersGateway([ASKED, { tier: 'edge' }], { queue: { max: 0 } });
    for (const tier of ['edge', 'mid', 'large'] as const) it.fill(tier, 4, 1_000);
    const caller = it.chat();
    expect(caller.status).toBe(503);
    const left = it.records.at(-1)!.steps.filter(({ code }) => code === 'tier-stands-in');
    expect(left.map(({ figures }) => figures['tier'])).toEqual(['large', 'mid']);
    await it.time.advance(2_000);
    expect(it.taken).toEqual(NOTHING);
  });

  it('leaves a request whose prompt is too long for its window to the others', async () => {
    const it = new TiersGateway([{ tier: 'edge' }, LARGE]);
    const config = tiersConfig([{ tier: 'edge' }, LARGE], { context: { fit: true } });
    Object.assign(config.backends.small, { context: { window: 200 } });
    it.load(config);
    const text = 'a word and another '.repeat(400);
    expect(await it.answers({ messages: [{ role: 'user', content: text }] })).toBe('big');
  });

  it('falls to the ladder when all are unwell', async () => {
    const it = new TiersGateway([{ tier: 'edge' }], { ladder: [{ answer: 'busy' }] });
    for (const { endpoints } of it.world.backends.values())
      for (const endpoint of endpoints) endpoint.unwell = true;
    const caller = it.chat();
    expect(caller.answerHeader('x-armature-degraded')).toBe('answer');
    expect(it.chosen()).toMatchObject({ code: 'no-tier' });
  });
});

describe('a session', () => {
  const mine = { 'x-armature-session': 'mine' };

  it('stays in its tier while a rule allows that, and tells when it leaves it', async () => {
    const it = new TiersGateway([{ tier: 'edge', when: { promptTokensMax: 400 } }, LARGE]);
    const at = (tokens: number) => it.answers(long(tokens), mine);
    expect([await at(300), await at(460), await at(600), await at(100)]).toEqual([
      'small',
      'small',
      'big',
      'big',
    ]);
    expect(it.events('session-moved')).toMatchObject([
      {
        subject: 'session:mine',
        causes: [it.records[2]!.id],
        data: {
          tenant: 'open',
          route: 'chat',
          from: 'small',
          to: 'big',
          fromTier: 'edge',
          toTier: 'large',
          reason: 'tier-by-rule',
          setting: 'routes.chat.tiers[1]',
        },
      },
    ]);
    expect(it.records[2]!.steps.at(-1)).toMatchObject({
      code: 'moved',
      figures: { from: 'small', to: 'big' },
    });
  });

  it('does not flap with the load: those in a busy tier stay, and those who had to begin elsewhere come when it is calm', async () => {
    const it = new TiersGateway([{ tier: 'edge', when: { load: { large: 0.75 } } }, LARGE]);
    it.engines.set(ORIGINS.large, chatAnswer('Hello', 400));
    const turn = async (sessions: string[]) => {
      const callers = [];
      for (const session of sessions) {
        callers.push(it.chat({}, { 'x-armature-session': session }));
        await it.time.advance(50);
      }
      await it.time.advance(3_000);
      return callers.map(backendOf);
    };
    // The fourth comes while three are at the large tier.
    const sessions = ['s1', 's2', 's3', 's4', 's5'];
    for (let i = 0; i < 20; i++) {
      expect(await turn(sessions)).toEqual(['big', 'big', 'big', 'small', 'small']);
    }
    expect(it.events('session-moved')).toEqual([]);
    expect(await turn(['s5'])).toEqual(['small']);
    expect(await turn(['s5'])).toEqual(['big']);
    expect(it.events('session-moved')).toMatchObject([
      { subject: 'session:s5', data: { reason: 'tier-by-rule' } },
    ]);
  });

  it('is back in its own tier when that is well again', async () => {
    const it = new TiersGateway([{ tier: 'edge' }, LARGE]);
    const [endpoint] = it.world.backends.get('small')!.endpoints;
    expect(await it.answers({}, mine)).toBe('small');
    endpoint!.unwell = true;
    expect(await it.answers({}, mine)).toBe('big');
    endpoint!.unwell = false;
    expect(await it.answers({}, mine)).toBe('small');
    expect(it.events('session-moved').map(({ data }) => data['reason'])).toEqual([
      'tier-unwell',
      'tier-back',
    ]);
  });

  it('moves where it asks to', async () => {
    const it = new TiersGateway([ASKED, LARGE]);
    expect(await it.answers({}, mine)).toBe('big');
    expect(await it.answers({}, { ...mine, 'x-armature-tier': 'edge' })).toBe('small');
    expect(await it.answers({}, mine)).toBe('big');
    expect(it.events('session-moved').map(({ data }) => data['reason'])).toEqual([
      'tier-by-rule',
      'tier-by-rule',
    ]);
  });

  it('of another tenant or route is another one', async () => {
    const it = new TiersGateway([ASKED, LARGE]);
    expect(await it.answers({}, { 'x-armature-session': 'one', 'x-armature-tier': 'edge' })).toBe('small');
    expect(await it.answers({}, { 'x-armature-session': 'two' })).toBe('big');
    expect(it.events('session-moved')).toEqual([]);
  });

  it('tells no more than twenty moves a second one by one, and the number of the rest', async () => {
    const it = new TiersGateway([{ tier: 'edge' }, LARGE]);
    const config = tiersConfig([{ tier: 'edge' }, LARGE]);
    for (const backend of Object.values(config.backends)) backend.limits.concurrency = 100;
    it.load(config);
    const all = () => Array.from({ length: 50 }, (_, i) => it.chat({}, { 'x-armature-session': `s${i}` }));
    all();
    await it.time.advance(200);
    for (const endpoint of it.world.backends.get('small')!.endpoints) endpoint.unwell = true;
    all();
    await it.time.advance(2_000);
    expect(it.events('session-moved').length).toBe(20);
    expect(it.events('sessions-moved')).toMatchObject([{ subject: 'route:chat', data: { count: 30 } }]);
  });

  it('that is kept moves between tiers turn by turn, in this worker and in another that knows its last turn alone', async () => {
    const it = new TiersGateway([ASKED, { tier: 'edge', when: { promptTokensMax: 400 } }, LARGE]);
    const { id } = json(await it.call('POST', '/v1/conversations'));
    const turn = async (words: number, headers?: Record<string, string>) =>
      backendOf(await it.turn({ conversation: id, input: 'word'.repeat(words) }, headers));
    expect(await turn(100)).toBe('small');
    expect(await turn(100)).toBe('small');
    expect(await turn(400)).toBe('big');
    expect(await turn(1)).toBe('big');
    expect(await turn(1, { 'x-armature-tier': 'mid' })).toBe('middle');
    it.world.sessionPlaces.put(`chat\u0000open/${id}`, undefined as never);
    expect(await turn(1)).toBe('big');
    expect(
      it
        .events('session-moved')
        .map(({ subject, data: { from, to, reason } }) => ({ subject, from, to, reason })),
    ).toEqual([
      { subject: `session:${id}`, from: 'small', to: 'big', reason: 'tier-by-rule' },
      { subject: `session:${id}`, from: 'big', to: 'middle', reason: 'tier-by-rule' },
      { subject: `session:${id}`, from: 'middle', to: 'big', reason: 'tier-by-rule' },
    ]);
  });
});

it('nobody is refused whom another tier could answer, whatever fails', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const random = seededRandom(seed);
    const it = new TiersGateway([
      ASKED,
      { tier: 'edge', when: { load: { large: 0.5 } } },
      { tier: 'cheapest' },
    ]);
    const names = Object.keys(ORIGINS) as (keyof typeof ORIGINS)[];
    const well = names[Math.floor(random.next() * 3)]!;
    const troubles = [failing(), status(503), status(429), chatAnswer('Hello', 50)];
    for (const name of names)
      if (name !== well) it.engines.set(ORIGINS[name], troubles[Math.floor(random.next() * 4)]!);
    for (let i = 0; i < 20; i++) {
      const asked = names[Math.floor(random.next() * 3)]!;
      const caller = it.chat({}, random.next() < 0.5 ? { 'x-armature-tier': asked } : {});
      await it.time.advance(300);
      expect([seed, i, caller.status]).toEqual([seed, i, 200]);
    }
    expect(it.taken).toEqual(NOTHING);
  }
});
