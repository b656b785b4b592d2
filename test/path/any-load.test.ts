import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { weightOf } from '../../src/gateway/cost.ts';
import { priorities, rankOf } from '../../src/kernel/priorities.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { floorsOf } from '../../src/policies/priority-floors/index.ts';
import { A, B, C, stepsOf, TENANTS, tenantsWorld } from './tenants-world.ts';
import { type Engine, NOTHING } from './virtual-gateway.ts';

describe('any load', () => {
  /** Takes a millisecond for each token, and says that answers are long: what a request is reckoned at is its most. */
  const drawn: Engine = (served) => {
    const { sink, time, request } = served;
    const { max_tokens: tokens } = JSON.parse(String(request.body)) as { max_tokens: number };
    const message = { role: 'assistant', content: 'x' };
    const usage = { prompt_tokens: 10, completion_tokens: 10_000, total_tokens: 10_010 };
    const answer = { choices: [{ index: 0, message, finish_reason: 'stop' }], usage };
    time.set(tokens, () => {
      if (served.aborted) return;
      sink.onHead(200, { 'content-type': 'application/json' });
      sink.onData(Buffer.from(JSON.stringify(answer)));
      sink.onEnd();
    });
  };

  const engine = { engine: 'openai', model: 'm' };
  const rungs = { none: [], answer: [{ answer: 'Busy.' }], backend: [{ backend: 'b2' }] };

  interface Arrival {
    tenant: string;
    rank: number;
    tokens: number;
    afterMs: number;
    deadlineMs: number;
    leavesAfterMs: number | undefined;
  }

  const arrival: fc.Arbitrary<Arrival> = fc.record({
    tenant: fc.constantFrom(...TENANTS),
    rank: fc.nat(3),
    tokens: fc.integer({ min: 1, max: 200 }),
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60 })),
    deadlineMs: fc.integer({ min: 20, max: 4_000 }),
    leavesAfterMs: fc.option(fc.integer({ min: 1, max: 500 }), { nil: undefined, freq: 8 }),
  });

  it('is answered in time to the last caller, with nobody lost and no one before its turn beyond the floors', () => {
    const config = fc.record({
      places: fc.constantFrom(1, 2, 4, 12),
      both: fc.boolean(),
      max: fc.constantFrom(0, 3, 20, 100),
      rung: fc.constantFrom('none', 'answer', 'backend'),
    });
    fc.assert(
      fc.property(
        fc.array(arrival, { minLength: 1, maxLength: 120 }),
        config,
        (arrivals, { places, both, max, rung }) => {
          const { gateway, ask } = tenantsWorld({
            places,
            endpoints: both ? [A, B] : [A],
            route: { queue: { max }, ladder: rungs[rung as keyof typeof rungs] },
            backends: { b2: { ...engine, endpoints: [`${C}/v1`], limits: { concurrency: 1 } } },
          });
          const floors = floorsOf([0, 0.1, 0.05, 0.02]);
          const work: Record<string, { contested: number[]; early: number[] }> = {
            b1: { contested: [0, 0, 0, 0], early: [0, 0, 0, 0] },
            b2: { contested: [0, 0, 0, 0], early: [0, 0, 0, 0] },
          };
          const judge: Engine = (served) => {
            const [sent] = [...gateway.path.running]
              .filter((x) => x.attempt?.startedAt === gateway.time.mono())
              .slice(-1);
            const rank = rankOf(sent!.priority);
            const tokens = weightOf(sent!.cost);
            const { contested, early } = work[sent!.backend!.name]!;
            const { line } = sent!.backend!;
            for (let at = 0; at < 4; at++)
              if (at === rank || line.waitingAt(at) > 0) contested[at]! += tokens;
            if (priorities.some((_, at) => at < rank && line.waitingAt(at) > 0)) {
              early[rank]! += tokens;
              expect(early[rank]).toBeLessThanOrEqual(floors[rank]! * contested[rank]! + 1e-6);
            }
            drawn(served);
          };
          for (const origin of [A, B, C]) gateway.engines.set(origin, judge);
          const callers = arrivals.map((one) => {
            gateway.time.run(one.afterMs);
            const caller = ask(one.tenant, priorities[one.rank], { max_tokens: one.tokens }, one.deadlineMs);
            const since = gateway.time.mono();
            const state = { one, caller, tookMs: 0, left: false };
            caller.whenClosed(() => {
              state.tookMs = gateway.time.mono() - since;
            });
            if (one.leavesAfterMs !== undefined)
              gateway.time.set(one.leavesAfterMs, () => {
                if (caller.ended) return;
                state.left = true;
                caller.leave();
              });
            for (const endpoint of gateway.world.endpoints.values())
              expect(endpoint.inflight).toBeLessThanOrEqual(places);
            expect(gateway.world.routes.get('chat')!.waiting.count).toBeLessThanOrEqual(max);
            return state;
          });
          gateway.time.run(10_000);
          for (const { one, caller, tookMs, left } of callers) {
            if (left) continue;
            expect(caller.ended).toBe(true);
            expect([200, 503, 504]).toContain(caller.status);
            expect(tookMs).toBeLessThanOrEqual(one.deadlineMs + 1);
            if (caller.status !== 200) expect(stepsOf(gateway, caller).length).toBeGreaterThan(1);
          }
          expect(gateway.taken).toEqual(NOTHING);
        },
      ),
      { numRuns: 150 },
    );
  });

  it('gives tenants that all ask for too much the same tokens, whatever the size of their requests', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer({ min: 1, max: 5 }), (seed, places) => {
        const random = seededRandom(seed);
        const { gateway, ask } = tenantsWorld({ places, route: { queue: { max: 40 }, deadline: '60s' } });
        gateway.engines.set(A, drawn);
        const got: Record<string, number> = { flood: 0, calm: 0, other: 0 };
        const sizes: Record<string, number> = { flood: 60, calm: 90, other: 200 };
        for (let at = 0; at < 1_500; at++) {
          for (const tenant of TENANTS) {
            if (random.next() > 0.2 * places) continue;
            const tokens = Math.ceil(sizes[tenant]! * (0.5 + random.next()));
            const caller = ask(tenant, 'standard', { max_tokens: tokens });
            caller.whenClosed(() => {
              if (caller.status === 200) got[tenant]! += tokens + 20;
            });
          }
          gateway.time.run(10);
        }
        const all = Object.values(got);
        expect(Math.max(...all) / Math.min(...all)).toBeLessThan(1.2);
      }),
      { numRuns: 5 },
    );
  });
});
