import { describe, expect, it } from 'vitest';
import type { HostReading } from '../../src/links/messages.ts';
import { chatAnswer, failing, NOTHING, type VirtualCaller, VirtualGateway } from './virtual-gateway.ts';

/** Requests for a backend whose host is starting, idle, or gone for a moment. */

const HOST = 'http://127.0.0.1:4001';
const NEXT = 'http://127.0.0.1:4002';

function world(route: object = {}, backends: object = {}) {
  const config = {
    backends: { near: { engine: 'sim' }, ...backends },
    routes: { chat: { targets: [{ backend: 'near' }], deadline: '10s', ...route } },
  };
  const gateway = new VirtualGateway(config);
  const woken: string[] = [];
  gateway.world.onWake = (backend, cause) => woken.push(`${backend} ${cause}`);
  const host = (reading: HostReading, backend = 'near') =>
    gateway.world.read({ hosts: { [backend]: reading } });
  const serves = (origin: string) => gateway.load(config, { near: [`${origin}/v1`] });
  for (const origin of [HOST, NEXT]) gateway.engines.set(origin, chatAnswer('Hello', 10));
  return { gateway, config, woken, host, serves };
}

const codes = (gateway: VirtualGateway, at = -1) => gateway.records.at(at)!.steps.map(({ code }) => code);
const statuses = (callers: VirtualCaller[]) => callers.map(({ status }) => status);

describe('a host that is starting', () => {
  it('has its callers held, and answers them all as soon as it serves', async () => {
    const { gateway, host, serves } = world();
    host({ state: 'starting', startingMs: 100, expectedMs: 3000 });
    const callers = Array.from({ length: 5 }, () => gateway.chat());
    await gateway.time.advance(2900);
    expect(statuses(callers)).toEqual(new Array(5).fill(undefined));
    host({ state: 'running' });
    serves(HOST);
    await gateway.time.advance(10);
    expect(statuses(callers)).toEqual(new Array(5).fill(200));
    expect(gateway.records[0]!.steps.find(({ code }) => code === 'held-for-start')).toMatchObject({
      figures: {
        backend: 'near',
        state: 'starting',
        startingMs: 100,
        expectedMs: 3000,
        leftMs: 2900,
        deadlineMs: 10_000,
      },
      setting: 'routes.chat.deadline',
    });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('holds no more of them than the queue has places', async () => {
    const { gateway, host } = world({ queue: { max: 2 } });
    host({ state: 'starting', startingMs: 0, expectedMs: 3000 });
    const callers = Array.from({ length: 3 }, () => gateway.chat());
    await gateway.time.advance(0);
    expect(statuses(callers)).toEqual([undefined, undefined, 503]);
    expect(callers[2]!.answerHeader('retry-after')).toBe('3');
  });

  it('tells those whose deadline it cannot meet at once, with the time that is left', async () => {
    const { gateway, host } = world();
    host({ state: 'starting', startingMs: 1000, expectedMs: 6500 });
    const caller = gateway.chat({}, { 'x-armature-deadline-ms': '5000' });
    expect([caller.status, caller.answerHeader('retry-after')]).toEqual([503, '6']);
    expect(JSON.parse(caller.text).error).toMatchObject({ code: 'overloaded' });
    expect(codes(gateway)).toContain('start-too-long');
    const patient = gateway.chat();
    expect(patient.status).toBeUndefined();
    expect(gateway.taken).toMatchObject({ running: 1, waiting: 2 });
  });

  it('sends those down the ladder whose deadline it cannot meet', async () => {
    const { gateway, host } = world({ deadline: '2s', ladder: [{ answer: 'Later' }] });
    host({ state: 'starting', startingMs: 0, expectedMs: 3000 });
    const caller = gateway.chat();
    expect([caller.status, caller.answerHeader('x-armature-degraded')]).toEqual([200, 'answer']);
  });

  it('turns away those who wait when its next start lies too far ahead', async () => {
    const { gateway, host } = world();
    host({ state: 'starting', startingMs: 0, expectedMs: 2000, cause: 'ev_died' });
    const caller = gateway.chat();
    await gateway.time.advance(1000);
    expect(caller.status).toBeUndefined();
    host({ state: 'starting', startingMs: -16_000, expectedMs: 2000, cause: 'ev_died' });
    expect([caller.status, caller.answerHeader('retry-after')]).toEqual([503, '18']);
    expect(gateway.records[0]!.steps.find(({ code }) => code === 'start-too-long')).toMatchObject({
      causes: ['ev_died'],
    });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('holds nobody while it fetches its files', async () => {
    const { gateway, host } = world({ ladder: [{ answer: 'Later' }] });
    host({ state: 'fetching', startingMs: 3000 });
    expect(gateway.chat().answerHeader('x-armature-degraded')).toBe('answer');
    host({ state: 'starting', startingMs: 0, expectedMs: 2000 });
    expect(gateway.chat().status).toBeUndefined();
  });

  it('lets nobody wait beyond the deadline', async () => {
    const { gateway, host } = world();
    host({ state: 'starting', startingMs: 0, expectedMs: 9000 });
    const caller = gateway.chat();
    await gateway.time.advance(10_000);
    expect(caller.status).toBe(504);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is not waited for where another target can answer', async () => {
    const far = { engine: 'openai', model: 'm', endpoints: [`${NEXT}/v1`] };
    const { gateway, host } = world({ targets: [{ backend: 'near' }, { backend: 'far' }] }, { far });
    host({ state: 'starting', startingMs: 0, expectedMs: 3000 });
    const caller = gateway.chat();
    await gateway.time.advance(10);
    expect([caller.status, caller.answerHeader('x-armature-backend')]).toEqual([200, 'far']);
  });

  it('is held for before control has said anything', async () => {
    const { gateway, serves } = world();
    const caller = gateway.chat();
    await gateway.time.advance(500);
    serves(HOST);
    await gateway.time.advance(10);
    expect(caller.status).toBe(200);
  });
});

describe('a host that is idle', () => {
  it('is woken once, by the first who comes, and held for', async () => {
    const { gateway, host, serves, woken } = world();
    host({ state: 'idle', expectedMs: 800, cause: 'ev_idle' });
    const callers = Array.from({ length: 3 }, () => gateway.chat());
    expect(woken).toHaveLength(1);
    host({ state: 'starting', startingMs: 0, expectedMs: 800, cause: 'ev_woken' });
    await gateway.time.advance(800);
    serves(HOST);
    await gateway.time.advance(10);
    expect(statuses(callers)).toEqual([200, 200, 200]);
    expect(woken[0]).toBe(`near ${gateway.records[0]!.id}`);
    expect(woken).toHaveLength(1);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is asked for again by those who wait, when a control that knows nothing of it says that it is idle', async () => {
    const { gateway, host, woken } = world();
    host({ state: 'idle', expectedMs: 800 });
    gateway.chat();
    host({ state: 'idle', expectedMs: 800 });
    expect(woken).toHaveLength(2);
    expect(new Set(woken).size).toBe(1);
  });

  it('is woken also by one who cannot wait for it', async () => {
    const { gateway, host, woken } = world({ deadline: '500ms' });
    host({ state: 'idle', expectedMs: 800 });
    const caller = gateway.chat();
    expect([caller.status, caller.answerHeader('retry-after')]).toEqual([503, '1']);
    expect(woken).toHaveLength(1);
  });

  it('is woken by those who would have gone there by its weight, while others answer', async () => {
    const far = { engine: 'openai', model: 'm', endpoints: [`${NEXT}/v1`] };
    const { gateway, host, woken } = world(
      {
        targets: [
          { backend: 'near', weight: 5 },
          { backend: 'far', weight: 95 },
        ],
      },
      { far },
    );
    host({ state: 'idle', expectedMs: 800 });
    const callers: VirtualCaller[] = [];
    while (woken.length === 0) callers.push(gateway.chat());
    await gateway.time.advance(100);
    expect(callers.length).toBeGreaterThan(1);
    expect(callers.map((caller) => caller.answerHeader('x-armature-backend'))).toEqual(
      callers.map(() => 'far'),
    );
  });

  it('is woken by a copy for it, which is dropped', async () => {
    const far = { engine: 'openai', model: 'm', endpoints: [`${NEXT}/v1`] };
    const shadow = [{ backend: 'near', percent: 100 }];
    const { gateway, host, woken } = world({ targets: [{ backend: 'far' }], shadow }, { far });
    host({ state: 'idle', expectedMs: 800 });
    const caller = gateway.chat();
    await gateway.time.advance(20);
    expect([caller.status, woken.length]).toEqual([200, 1]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is woken where it is a rung, and waited for where that is in time', async () => {
    const far = { engine: 'openai', model: 'm', endpoints: ['http://10.0.0.9:1/v1'] };
    const ladder = [{ backend: 'near' }, { answer: 'Later' }];
    const { gateway, host, serves, woken } = world(
      { targets: [{ backend: 'far' }], ladder, deadline: '2s' },
      { far },
    );
    gateway.engines.set('http://10.0.0.9:1', failing());
    host({ state: 'idle', expectedMs: 3000 });
    const early = gateway.chat();
    await gateway.time.advance(5);
    expect([early.answerHeader('x-armature-degraded'), woken.length]).toEqual(['answer', 1]);
    host({ state: 'starting', startingMs: 2000, expectedMs: 3000 });
    const later = gateway.chat();
    await gateway.time.advance(1000);
    expect(later.status).toBeUndefined();
    serves(HOST);
    await gateway.time.advance(10);
    expect([later.status, later.answerHeader('x-armature-degraded')]).toEqual([200, 'backend']);
    expect(gateway.taken).toEqual(NOTHING);
  });
});

describe('a host that died', () => {
  it('loses nobody whose answer had not begun: they are held before control tells of it, and answered by the next', async () => {
    const { gateway, host, serves } = world();
    host({ state: 'running', expectedMs: 300 });
    serves(HOST);
    gateway.engines.set(HOST, failing({ kind: 'reset', unsent: false }, 5));
    const running = gateway.chat();
    await gateway.time.advance(5);
    gateway.engines.set(HOST, failing());
    await gateway.time.advance(50);
    const later = gateway.chat();
    await gateway.time.advance(50);
    host({ state: 'starting', startingMs: 0, expectedMs: 300 });
    gateway.load({
      backends: { near: { engine: 'sim' } },
      routes: { chat: { targets: [{ backend: 'near' }], deadline: '10s' } },
    });
    await gateway.time.advance(300);
    expect(statuses([running, later])).toEqual([undefined, undefined]);
    serves(NEXT);
    await gateway.time.advance(10);
    expect(statuses([running, later])).toEqual([200, 200]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is not waited for any longer than a moment when control says nothing of its death', async () => {
    const { gateway, host, serves } = world();
    host({ state: 'running', expectedMs: 300 });
    serves(HOST);
    gateway.engines.set(HOST, failing({}, 1));
    const caller = gateway.chat();
    await gateway.time.advance(10_000);
    expect([502, 504]).toContain(caller.status);
    expect(gateway.taken).toEqual(NOTHING);
  });
});
