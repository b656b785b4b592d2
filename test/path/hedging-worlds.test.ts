import fc from 'fast-check';
import { expect, it } from 'vitest';
import { A, B, C, hedgesOf, later, words } from './hedged.ts';
import { type Engine, failing, NOTHING, never, status, VirtualGateway } from './virtual-gateway.ts';

it('whatever engines, callers and clocks do: one answer for each, two attempts at once at most, nothing kept', async () => {
  const engines: Engine[] = [
    words('a', 'b'),
    later(words('a', 'b'), 120),
    later(words('a'), 250),
    later(status(500), 60),
    later(status(500), 150),
    status(429, {}, { 'retry-after': '1' }),
    later(status(400), 110),
    failing(),
    failing({ kind: 'reset', unsent: false }, 130),
    failing({ kind: 'reset', unsent: false, stale: true }, 101),
    never,
  ];
  const event = fc.record({
    engines: fc.array(fc.nat(engines.length - 1), { minLength: 3, maxLength: 3 }),
    gapMs: fc.nat(200),
    leavesAfterMs: fc.option(fc.nat(400), { nil: undefined, freq: 4 }),
    deadlineMs: fc.option(fc.integer({ min: 50, max: 600 }), { nil: undefined, freq: 2 }),
  });
  const input = fc.record({
    events: fc.array(event, { minLength: 1, maxLength: 20 }),
    concurrency: fc.integer({ min: 1, max: 3 }),
    share: fc.constantFrom(0.1, 1),
    attempts: fc.integer({ min: 1, max: 3 }),
    seed: fc.nat(),
  });
  await fc.assert(
    fc.asyncProperty(input, async ({ events, concurrency, share, attempts, seed }) => {
      const gateway = new VirtualGateway(
        {
          backends: {
            b1: {
              engine: 'vllm',
              model: 'm',
              endpoints: [A, B, C].map((origin) => `${origin}/v1`),
              limits: { concurrency },
              timeouts: { firstByte: '300ms', idle: '300ms', total: '1s' },
            },
          },
          routes: {
            chat: {
              targets: [{ backend: 'b1' }],
              deadline: '1s',
              hedge: { after: '100ms', budget: share },
              retry: { attempts, budget: 1 },
            },
          },
        },
        seed,
      );
      const callers = [];
      for (const each of events) {
        [A, B, C].forEach((origin, at) => {
          gateway.engines.set(origin, engines[each.engines[at]!]!);
        });
        const headers =
          each.deadlineMs === undefined ? {} : { 'x-armature-deadline-ms': String(each.deadlineMs) };
        const caller = gateway.chat({ stream: true }, headers);
        const { leavesAfterMs } = each;
        if (leavesAfterMs !== undefined) gateway.time.set(leavesAfterMs, () => caller.leave());
        callers.push({ caller, left: leavesAfterMs !== undefined });
        await gateway.time.advance(each.gapMs);
        for (const endpoint of gateway.world.endpoints.values())
          expect(endpoint.inflight).toBeLessThanOrEqual(concurrency);
        expect(gateway.taken.slots).toBeLessThanOrEqual(2 * gateway.taken.running);
      }
      await gateway.time.advance(60_000);
      for (const { caller, left } of callers) expect(caller.ended || left).toBe(true);
      expect(gateway.records).toHaveLength(events.length);
      const granted = gateway.records
        .flatMap(({ steps }) => steps)
        .filter(({ code }) => code === 'hedge-granted').length;
      const given = gateway.records
        .flatMap(({ steps }) => steps)
        .filter(({ code }) => code === 'hedge-without-place').length;
      const hedges = await hedgesOf(gateway);
      const sent = granted - given;
      expect(
        (hedges['won'] ?? 0) + (hedges['lost'] ?? 0) + (hedges['failed'] ?? 0) + (hedges['abandoned'] ?? 0),
      ).toBe(sent);
      for (const record of gateway.records)
        expect(record.attempts).toBeLessThanOrEqual(Math.max(2, attempts));
      expect(gateway.taken).toEqual(NOTHING);
      expect(gateway.time.pending).toBe(0);
    }),
    { numRuns: 200 },
  );
});
