import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { config, gateway, json } from './sessions-world.ts';
import { chatAnswer, VirtualGateway } from './virtual-gateway.ts';

/** Targets of one route as versions of a model: a session is answered by newer ones only. */

const ORIGINS = ['http://a:1', 'http://b:1', 'http://c:1'];
const SESSIONS = Array.from({ length: 30 }, (_, i) => `conversation-${i}`);

/** Weights of the versions; undefined: not in the file. */
function versions(weights: readonly (number | undefined)[], affinity = 'session') {
  const backends = Object.fromEntries(
    ORIGINS.map((origin, at) => [
      `v${at + 1}`,
      { engine: 'openai', model: `model-${at + 1}`, endpoints: [`${origin}/v1`] },
    ]),
  );
  const targets = weights.flatMap((weight, at) =>
    weight === undefined ? [] : [{ backend: `v${at + 1}`, weight }],
  );
  return { backends, routes: { chat: { targets, affinity } } };
}

function world(...weights: (number | undefined)[]) {
  const it = new VirtualGateway(versions(weights));
  for (const origin of ORIGINS) it.engines.set(origin, chatAnswer('x', 1));
  const versionOf = async (session: string) => {
    const caller = it.chat({}, { 'x-armature-session': session });
    await it.time.advance(5);
    return Number(caller.answerHeader('x-armature-backend')!.slice(1));
  };
  const all = async () => {
    const answered = [];
    for (const session of SESSIONS) answered.push(await versionOf(session));
    return answered;
  };
  const set = (...to: (number | undefined)[]) => it.load(versions(to));
  const moves = () => it.events('session-moved');
  return { it, all, set, moves };
}

describe('a session, while weights change', () => {
  it('goes forward as the newer version is given more, and not back as it is given less', async () => {
    const { it, all, set, moves } = world(100, 0);
    expect(new Set(await all())).toEqual(new Set([1]));
    set(70, 30);
    const some = await all();
    set(30, 70);
    const more = await all();
    for (const [at, version] of some.entries()) expect(more[at]).toBeGreaterThanOrEqual(version);
    set(95, 5);
    expect(await all()).toEqual(more);
    expect(it.records.at(-1)!.steps.map(({ code }) => code)).toContain(
      more.at(-1) === 2 ? 'target-not-earlier' : 'target-by-session',
    );
    expect(moves().every(({ data }) => data['from'] === 'v1' && data['to'] === 'v2')).toBe(true);
    expect(moves().every(({ data }) => data['reason'] === 'weights')).toBe(true);
    await it.time.advance(1_000);
    // A rollback takes them all back, and says so.
    set(100, 0);
    expect(new Set(await all())).toEqual(new Set([1]));
    expect(moves().at(-1)!.data).toMatchObject({ from: 'v2', to: 'v1', reason: 'weight-zero' });
  });

  it('that begins at the newer version stays there as well', async () => {
    const { all, set } = world(100, undefined);
    set(50, 50);
    const first = await all();
    set(99, 1);
    expect(await all()).toEqual(first);
  });

  it('goes back when no endpoint of the newer one is well, which is told, and forward again', async () => {
    const { it, all, set, moves } = world(100, 0);
    set(50, 50);
    const first = await all();
    const [endpoint] = it.world.backends.get('v2')!.endpoints;
    endpoint!.unwell = true;
    expect(new Set(await all())).toEqual(new Set([1]));
    expect(moves().at(-1)!.data).toMatchObject({ from: 'v2', to: 'v1', reason: 'endpoints-unwell' });
    endpoint!.unwell = false;
    expect(await all()).toEqual(first);
  });

  it('that was answered by the newer one as the older was unwell stays there', async () => {
    const { it, all, set } = world(100, 0);
    set(50, 50);
    const [endpoint] = it.world.backends.get('v1')!.endpoints;
    endpoint!.unwell = true;
    expect(new Set(await all())).toEqual(new Set([2]));
    endpoint!.unwell = false;
    expect(new Set(await all())).toEqual(new Set([2]));
  });

  it('of versions that are of one age returns to its own when that is well again', async () => {
    const { it, all } = world(50, 50);
    const first = await all();
    const [endpoint] = it.world.backends.get('v1')!.endpoints;
    endpoint!.unwell = true;
    expect(new Set(await all())).toEqual(new Set([2]));
    endpoint!.unwell = false;
    expect(await all()).toEqual(first);
  });

  it('never goes back, whatever is done to the weights of three versions that came one after the other', async () => {
    const weight = fc.integer({ min: 1, max: 100 });
    const steps = fc.array(fc.tuple(weight, weight, weight), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(steps, steps, async (two, three) => {
        const { all, set } = world(1, undefined, undefined);
        let last = await all();
        const forward = async () => {
          const next = await all();
          for (const [at, version] of next.entries()) expect(version).toBeGreaterThanOrEqual(last[at]!);
          last = next;
        };
        for (const [first, second] of two) {
          set(first, second, undefined);
          await forward();
        }
        for (const weights of three) {
          set(...weights);
          await forward();
        }
      }),
      { numRuns: 30 },
    );
  });
});

it('a conversation goes by what is kept with its turns, in a worker that never saw it', async () => {
  const route = (one: number, two: number) => ({
    affinity: 'session',
    targets: [
      { backend: 'b1', weight: one },
      { backend: 'b2', weight: two },
    ],
  });
  const it = gateway(chatAnswer('Hello'), route(1, 0));
  for (let i = 0; i < 10; i++) {
    const { id } = json(await it.call('POST', '/v1/conversations'));
    it.load(config(route(1, 1_000_000)));
    const turn = async () => (await it.turn({ conversation: id })).answerHeader('x-armature-backend');
    expect(await turn()).toBe('b2');
    it.world.sessionPlaces.put(`chat\u0000open/${id}`, undefined as never);
    it.load(config(route(1_000_000, 1)));
    expect(await turn()).toBe('b2');
  }
});
