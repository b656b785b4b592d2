import { describe, expect, it } from 'vitest';
import { replayedRandom } from '../../src/kernel/random.ts';
import { replayable } from '../../src/policies/register.ts';
import { chatAnswer, type Engine, failing, NOTHING, status, VirtualGateway } from './virtual-gateway.ts';

/** When another attempt is made: at once elsewhere, after a pause at the same endpoint, never where it would be too late. */

const [A, B] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000'];

function world(more: { route?: object; endpoints?: string[]; seed?: number } = {}) {
  const gateway = new VirtualGateway(
    {
      backends: {
        b1: {
          engine: 'vllm',
          model: 'm',
          endpoints: (more.endpoints ?? [A, B]).map((origin) => `${origin}/v1`),
        },
      },
      routes: {
        chat: {
          targets: [{ backend: 'b1' }],
          deadline: '2s',
          retry: { attempts: 2, budget: 1 },
          ...more.route,
        },
      },
    },
    more.seed,
  );
  const askedAt: number[] = [];
  const serve =
    (engine: Engine): Engine =>
    (served) => {
      askedAt.push(served.time.mono());
      engine(served);
    };
  const engines = (...list: Engine[]) => {
    for (const [at, origin] of [A, B].entries())
      gateway.engines.set(origin, serve(list[Math.min(at, list.length - 1)]!));
  };
  return { gateway, askedAt, engines };
}

const stepsOf = (gateway: VirtualGateway) => gateway.records.at(-1)!.steps;

describe('another attempt', () => {
  it('goes to the next endpoint at once', async () => {
    for (let seed = 0; seed < 20; seed++) {
      const { gateway, askedAt, engines } = world({ seed });
      engines(status(500), chatAnswer('b'));
      const caller = gateway.chat();
      await gateway.time.advance(100);
      expect(caller.status).toBe(200);
      expect(askedAt.every((at) => at <= 1)).toBe(true);
    }
  });

  it('at the same endpoint comes after a pause, each its own, and holds nothing meanwhile', async () => {
    const pauses = [];
    for (let seed = 0; seed < 40; seed++) {
      const { gateway, askedAt, engines } = world({ endpoints: [A], seed });
      engines(status(500, {}, {}, 5));
      const caller = gateway.chat();
      await gateway.time.advance(5);
      if (askedAt.length === 1) expect(gateway.taken).toEqual({ ...NOTHING, running: 1 });
      await gateway.time.advance(100);
      expect([caller.status, askedAt.length]).toEqual([502, 2]);
      pauses.push(askedAt[1]! - 5);
      const step = stepsOf(gateway).find(({ code }) => code === 'retry-after-pause')!;
      const again = replayable
        .get('retry-timing')!
        .replay(JSON.parse(JSON.stringify(step.input)), replayedRandom(step.draws!)) as { reason: object };
      expect(again.reason).toEqual({ code: step.code, figures: step.figures });
    }
    expect(new Set(pauses.map(Math.round)).size).toBeGreaterThan(15);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(50);
  });

  it('advances through the list first, and comes back to it after a pause', async () => {
    const { gateway, askedAt, engines } = world({ route: { retry: { attempts: 4, budget: 1 } }, seed: 3 });
    engines(status(500, {}, {}, 0));
    gateway.chat();
    await gateway.time.advance(1_000);
    expect(askedAt.length).toBe(4);
    expect(askedAt[1]).toBe(0);
    expect(askedAt[2]).toBeGreaterThan(0);
    expect(askedAt[3]).toBeGreaterThan(askedAt[2]!);
  });

  it('is not made where the usual time of an answer is not left', async () => {
    const { gateway, askedAt, engines } = world({ route: { deadline: '1s' } });
    engines(chatAnswer('x', 400));
    for (let i = 0; i < 25; i++) {
      gateway.chat();
      await gateway.time.advance(500);
    }
    for (const [failsAfterMs, attempts] of [
      [590, 2],
      [610, 1],
    ] as const) {
      askedAt.length = 0;
      engines(status(500, {}, {}, failsAfterMs));
      gateway.chat();
      await gateway.time.advance(2_000);
      expect([failsAfterMs, askedAt.length]).toEqual([failsAfterMs, attempts]);
    }
    expect(stepsOf(gateway).find(({ code }) => code === 'retry-too-late')).toMatchObject({
      figures: { leftMs: 390, usualMs: 400 },
      setting: 'routes.chat.deadline',
    });
  });

  it('does not come when the caller leaves, the deadline passes or the worker drains in the pause', async () => {
    const ends: [(gateway: VirtualGateway, leave: () => void) => void, string][] = [
      [(_, leave) => leave(), 'aborted'],
      [(gateway) => gateway.path.endAll(), 'refused'],
    ];
    for (const [end, outcome] of ends) {
      let seed = 0;
      let paused = false;
      while (!paused) {
        const { gateway, askedAt, engines } = world({ endpoints: [A], seed: seed++ });
        engines(status(500, {}, {}, 5));
        const caller = gateway.chat();
        await gateway.time.advance(6);
        paused = askedAt.length === 1;
        if (!paused) continue;
        end(gateway, () => caller.leave());
        await gateway.time.advance(1_000);
        expect([askedAt.length, gateway.records[0]!.outcome]).toEqual([1, outcome]);
        expect(gateway.taken).toEqual(NOTHING);
        expect(gateway.time.pending).toBe(0);
      }
    }
  });

  it('with one endpoint that asked to be left alone comes to an end at once, with the time to come again', async () => {
    const { gateway, askedAt, engines } = world({ endpoints: [A] });
    const date = new Date(gateway.time.wall() + 7_000).toUTCString();
    engines(status(429, {}, { 'retry-after': date }));
    const caller = gateway.chat();
    await gateway.time.advance(1);
    expect([caller.status, caller.answerHeader('retry-after'), askedAt.length]).toEqual([503, '7', 1]);
  });

  it('costs nothing where the endpoint was being tried out', async () => {
    const { gateway, askedAt, engines } = world({ route: { retry: { attempts: 2, budget: 0 } } });
    engines(status(500), chatAnswer('b'));
    for (let i = 0; i < 40; i++) {
      gateway.chat();
      await gateway.time.advance(20);
    }
    const [a] = gateway.world.endpoints.values();
    expect(a!.breaker.state).toBe('open');
    await gateway.time.advance(2_000);
    let trials = 0;
    for (let i = 0; i < 20 && trials === 0; i++) {
      askedAt.length = 0;
      const caller = gateway.chat();
      await gateway.time.advance(100);
      expect(caller.status).toBe(200);
      trials += stepsOf(gateway).filter(({ code }) => code === 'trial').length;
    }
    expect([trials, askedAt.length, a!.breaker.state]).toEqual([1, 2, 'open']);
  });

  it('costs nothing where a kept connection had died', async () => {
    const { gateway, engines } = world({ route: { retry: { attempts: 2, budget: 0 } } });
    let stale = true;
    const dead = failing({ kind: 'reset', unsent: false, stale: true });
    engines((served) => {
      const engine = stale ? dead : chatAnswer('x');
      stale = false;
      engine(served);
    });
    const caller = gateway.chat();
    await gateway.time.advance(50);
    expect([caller.status, gateway.served.length, gateway.served[1]!.request.fresh]).toEqual([200, 2, true]);
  });
});
