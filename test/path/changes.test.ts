import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Engine, failing, NOTHING, never, status, VirtualGateway } from './virtual-gateway.ts';

/** Settings, health and engines change while requests run, wait and come again. */

const ORIGINS = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000', 'http://10.0.0.3:8000'];

function tensors(afterMs: number): Engine {
  return (served) => {
    const { sink, time } = served;
    time.set(afterMs, () => {
      if (served.aborted) return;
      sink.onHead(200, { 'content-type': 'application/json' });
      sink.onData(Buffer.from('{"model_name":"m","outputs":[]}'));
      sink.onEnd();
    });
  };
}

/** Settings as they may be written: who is named, how many each takes, what stands below. */
const settings = fc.record({
  first: fc.subarray(ORIGINS, { minLength: 1 }),
  second: fc.subarray(ORIGINS, { minLength: 1 }),
  concurrency: fc.integer({ min: 1, max: 3 }),
  queue: fc.integer({ min: 0, max: 6 }),
  weights: fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 2 })),
  affinity: fc.constantFrom('none', 'session'),
  ladder: fc.boolean(),
  gone: fc.boolean(),
});
type Written = typeof settings extends fc.Arbitrary<infer T> ? T : never;

function configOf(of: Written): object {
  const backend = (endpoints: string[]) => ({
    engine: 'triton',
    model: 'm',
    endpoints,
    limits: { concurrency: of.concurrency },
    timeouts: { total: '900ms' },
  });
  const route = {
    targets: [
      { backend: 'b1', weight: of.weights[0] },
      { backend: 'b2', weight: of.weights[1] },
    ],
    deadline: '1500ms',
    affinity: of.affinity,
    queue: { max: of.queue },
    ladder: of.ladder ? [{ backend: 'b1' }] : [],
    retry: { attempts: 3, budget: 1 },
  };
  return {
    backends: { b1: backend(of.first), b2: backend(of.second) },
    routes: { counter: route, ...(of.gone ? {} : { other: { ...route, ladder: [] } }) },
  };
}

const request = fc.record({
  do: fc.constant('request' as const),
  route: fc.constantFrom('counter', 'counter', 'other'),
  sequence: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined, freq: 2 }),
  pinned: fc.boolean(),
  priority: fc.constantFrom('critical', 'standard', 'batch'),
  leavesAfterMs: fc.option(fc.integer({ min: 0, max: 1200 }), { nil: undefined, freq: 5 }),
});
const event = fc.oneof(
  { weight: 12, arbitrary: request },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('settings' as const), settings }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('engine' as const), at: fc.nat(2), behaviour: fc.nat(7) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('health' as const),
      unwell: fc.subarray(ORIGINS.flatMap((origin) => [`b1|${origin}`, `b2|${origin}`])),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(400) }) },
);

const BEHAVIOURS: Engine[] = [
  tensors(5),
  tensors(80),
  tensors(400),
  failing(),
  failing({ kind: 'reset', unsent: false }, 30),
  failing({ kind: 'reset', unsent: false, stale: true }),
  status(503, { error: 'busy' }, { 'retry-after': '1' }),
  never,
];

it('everybody is answered once, everything is given back, caps hold, and no sequence ever moves', async () => {
  await fc.assert(
    fc.asyncProperty(
      settings,
      fc.array(event, { minLength: 5, maxLength: 60 }),
      fc.nat(),
      async (start, events, seed) => {
        const gateway = new VirtualGateway(configOf(start), seed);
        const behaviours: Engine[] = ORIGINS.map(() => BEHAVIOURS[0]!);
        /** By route and number: where its requests went. */
        const sequences = new Map<string, Set<string>>();
        const sentBy = new Map<string, string[]>();
        ORIGINS.forEach((origin, at) => {
          gateway.engines.set(origin, (served) => {
            const { id } = JSON.parse(String(served.request.body)) as { id: string };
            sentBy.set(id, [...(sentBy.get(id) ?? []), origin]);
            behaviours[at]!(served);
          });
        });
        let requests = 0;
        let cap = start.concurrency;
        const begun = new Set<string>();
        const callers = [];
        for (const each of events) {
          if (each.do === 'wait') await gateway.time.advance(each.ms);
          else if (each.do === 'engine') behaviours[each.at] = BEHAVIOURS[each.behaviour]!;
          else if (each.do === 'health') {
            const health = Object.fromEntries(each.unwell.map((key) => [key, 'unwell' as const]));
            gateway.world.read({ health });
          } else if (each.do === 'settings') {
            cap = Math.max(cap, each.settings.concurrency);
            gateway.load(configOf(each.settings));
          } else {
            const { sequence, route, leavesAfterMs } = each;
            const id = `${route}/${sequence ?? ''}/${requests++}`;
            const name = `${route}/${sequence}`;
            const sequence_start = !begun.has(name);
            begun.add(name);
            const parameters = sequence === undefined ? {} : { sequence_id: sequence, sequence_start };
            const pin = each.pinned && sequence === undefined ? '/versions/2' : '';
            const caller = gateway.send(
              'POST',
              `/v2/models/${route}${pin}/infer`,
              { id, inputs: [], parameters },
              { 'x-armature-priority': each.priority, 'x-armature-session': String(requests % 5) },
            );
            if (leavesAfterMs !== undefined) gateway.time.set(leavesAfterMs, () => caller.leave());
            callers.push({ id, caller, left: leavesAfterMs !== undefined, pinned: pin !== '' });
          }
          for (const endpoint of gateway.world.endpoints.values()) {
            expect(endpoint.inflight).toBeLessThanOrEqual(cap);
          }
        }
        await gateway.time.advance(60_000);
        for (const { id, caller, left, pinned } of callers) {
          expect([id, caller.ended || left]).toEqual([id, true]);
          const sent = sentBy.get(id) ?? [];
          const [route, sequence] = id.split('/');
          if (sequence !== '') {
            const places = sequences.get(`${route}/${sequence}`) ?? new Set();
            sequences.set(`${route}/${sequence}`, places);
            for (const origin of sent) places.add(origin);
            expect(sent.length).toBeLessThanOrEqual(1);
          }
          // A pin goes to one endpoint alone, if need be over a fresh connection.
          if (pinned) expect(new Set(sent).size).toBeLessThanOrEqual(1);
        }
        for (const [name, places] of sequences) expect([name, places.size <= 1]).toEqual([name, true]);
        expect(gateway.records).toHaveLength(callers.length);
        expect(gateway.taken).toEqual(NOTHING);
      },
    ),
    { numRuns: 150 },
  );
});
