import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import type { LedgerEvent } from '../../events/contracts.ts';
import { Callers, cameAtMs, isCall } from './calls.ts';
import type { Subject } from './contracts.ts';
import { drained, isDrained, referencesTo, restored, targetsWith } from './references.ts';

const backend = (more = {}) => ({ engine: 'openai', model: 'm', endpoints: ['http://x:1/v1'], ...more });
const settings = settingsSchema.parse({
  backends: { a: backend(), b: backend(), c: backend() },
  routes: {
    chat: {
      targets: [{ backend: 'a', weight: 3 }, { backend: 'b' }],
      ladder: [{ backend: 'c' }],
      shadow: [{ backend: 'c', percent: 5 }],
    },
    solo: { targets: [{ backend: 'a' }, { backend: 'b', weight: 0 }] },
  },
  pipelines: { search: { deadline: '1s', stages: { one: { route: 'solo', input: '{{ request.text }}' } } } },
  tenants: { t: { routes: ['solo', 'chat'], keys: [] } },
});
const of = (kind: Subject['kind'], name: string): Subject => ({ kind, name });

describe('what names it', () => {
  it('of a backend: where its share has somewhere to go, and where nothing else would answer', () => {
    expect(referencesTo(settings, of('backend', 'a')).map(({ path, blocks }) => [path, blocks])).toEqual([
      ['routes.chat.targets[0].backend', false],
      ['routes.solo.targets[0].backend', true],
    ]);
    expect(referencesTo(settings, of('backend', 'b')).map(({ blocks }) => blocks)).toEqual([false, false]);
    expect(referencesTo(settings, of('backend', 'c')).map(({ path, blocks }) => [path, blocks])).toEqual([
      ['routes.chat.ladder[0].backend', true],
      ['routes.chat.shadow[0].backend', true],
    ]);
  });

  it('of a route: pipelines keep it, tenants do not', () => {
    expect(referencesTo(settings, of('route', 'solo')).map(({ path, blocks }) => [path, blocks])).toEqual([
      ['tenants.t.routes[0]', false],
      ['pipelines.search.stages.one.route', true],
    ]);
  });
});

describe('draining', () => {
  it('takes a backend’s weight in every route that sends to it, and gives it back as it was', () => {
    const drains = targetsWith(settings, 'b');
    const subject = of('backend', 'b');
    expect(Object.keys(drains)).toEqual(['chat']);
    expect(drained(settings, subject)).toEqual({
      routes: {
        chat: {
          targets: [
            { backend: 'a', weight: 3 },
            { backend: 'b', weight: 0 },
          ],
        },
      },
    });
    const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ backend: name, weight: 1 }));
    const since = (targets: object[]) => ({
      ...settings,
      routes: { ...settings.routes, chat: { ...settings.routes['chat']!, targets } } as never,
    });
    const restoredTo = (targets: object[]) => restored(since(targets), subject, drains);
    expect(
      restoredTo([
        { ...a, weight: 3 },
        { ...b, weight: 0 },
      ]),
    ).toEqual({
      routes: { chat: { targets: drains['chat'] } },
    });
    // What others have changed since stays.
    expect(restoredTo([{ ...b, weight: 0 }, c!])).toEqual({ routes: { chat: { targets: [b, c] } } });
    expect(restoredTo([{ ...b, weight: 7 }, c!])).toBe(undefined);
    expect(restoredTo([c!])).toBe(undefined);
    expect(isDrained(settings, subject)).toBe(false);
    expect(isDrained(settings, of('backend', 'c'))).toBe(true);
  });

  it('has nothing to give back to a route that is gone by now', () => {
    const drains = targetsWith(settings, 'b');
    const without = { ...settings, routes: {} };
    expect(restored(without, of('backend', 'b'), drains)).toBe(undefined);
    expect(restored(without, of('route', 'solo'), {})).toBe(undefined);
    expect(drained(settings, of('route', 'solo'))).toEqual({ routes: { solo: { retired: true } } });
  });
});

const event = (type: string, data: object, id = 'req_1'): LedgerEvent => ({
  id,
  at: '2026-01-02T00:00:01.000Z',
  type,
  subject: `request:${id}`,
  actor: 'tenant:t',
  causes: [],
  data: { ...data },
});

describe('a call', () => {
  const asked = event('request-answered', {
    route: 'chat',
    tenant: 't',
    backend: 'b',
    wallMs: 1000,
    steps: [
      { what: 'attempt', code: 'engine-failed', figures: { backend: 'a' } },
      { what: 'rung', code: 'other-backend', figures: { backend: 'c' } },
    ],
  });
  const grouped = event('requests-grouped', { route: 'chat', tenant: 'u', second: 5, count: 7 });

  it.each([
    [asked, of('route', 'chat'), true],
    [asked, of('route', 'solo'), false],
    [asked, of('backend', 'b'), true],
    [asked, of('backend', 'a'), true], // it was tried there
    [asked, of('backend', 'c'), false],
    [grouped, of('route', 'chat'), true],
    [event('snapshot-published', { route: 'chat' }), of('route', 'chat'), false],
    [asked, of('version', 'm@1'), false],
  ])('is told from what is none (%#)', (told, subject, is) => {
    expect(isCall(told, subject)).toBe(is);
  });

  it('is counted to its tenant, with the last one that has a record', () => {
    const callers = new Callers();
    const later = event('request-failed', { route: 'chat', tenant: 't', wallMs: 9000 }, 'req_2');
    for (const each of [later, grouped, asked]) callers.add(each);
    expect(callers.list).toEqual([
      { tenant: 't', requests: 2, lastAt: '1970-01-01T00:00:09.000Z', lastRequest: 'req_2' },
      { tenant: 'u', requests: 7, lastAt: '1970-01-01T00:00:05.000Z' },
    ]);
    expect([cameAtMs(asked), cameAtMs(grouped)]).toEqual([1000, 5000]);
  });
});
