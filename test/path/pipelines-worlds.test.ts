import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { drawWhy } from '../../src/cli/why-tree.ts';
import { eventOf } from '../../src/events/facts.ts';
import { why } from '../../src/events/why.ts';
import { memoryStore } from '../../src/store/memory/index.ts';
import { config, echo, open, origins, textOf } from './pipelines-world.ts';
import { chatAnswer, chatStream, NOTHING, never, status, VirtualGateway } from './virtual-gateway.ts';

describe('why', () => {
  it('tells the chain stage by stage, with what each decided and cost', async () => {
    const settings = config({
      intent: { route: 'r1', input: 'a', budget: '60ms', onFailure: { use: 'general' } },
      summary: { route: 'r2', after: ['intent'], input: 'b', onFailure: 'skip' },
      answer: { route: 'r3', after: ['summary'], input: 'c' },
    });
    Object.assign(settings.backends['b3']!, { price: { in: 100, out: 1000 } });
    const gateway = new VirtualGateway(settings);
    for (const [i, engine] of [never, status(400), echo(20)].entries())
      gateway.engines.set(origins[i]!, engine);
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(200);
    const store = memoryStore();
    const id = caller.answerHeader('x-armature-id')!;
    const [fact] = gateway.facts;
    await store.ledger.append([eventOf(fact!, () => 'ev_none')]);
    const told = await why({ store, find: async (each) => store.ledger.event(each) }, id);
    const drawn = drawWhy(told!, false);
    expect(drawn).toContain(
      'Stage intent gave no answer: deadline_exceeded (504) after 60ms, of 60ms that it had, from r1.',
    );
    expect(drawn).toContain('The fixed text of stage intent stood in for its answer.');
    expect(drawn).toContain('summary: The engine refused the request with 400');
    expect(drawn).toContain('Stage summary was skipped');
    expect(drawn).toContain('answer: Sent to http://r3:1/v1 of b3, attempt 1');
    expect(drawn).toMatch(/Stage answer answered after 20ms.*, by b3, at a cost of 0.0023/);
    const stages = told!.steps.filter(({ what }) => what === 'stage').map(({ figures }) => figures['stage']);
    expect(stages).toEqual(['answer', 'summary', 'summary', 'intent', 'intent']);
  });

  it('stays within its bounds, however many stages there are', async () => {
    const stages: Record<string, object> = {};
    for (let i = 0; i < 100; i++) stages[`s${i}`] = { route: 'r1', input: `${i}` };
    stages['end'] = { route: 'r2', after: Object.keys(stages), input: 'end' };
    const gateway = open(stages, [echo(), echo()]);
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(3000);
    expect(textOf(caller)).toBe('<end>');
    const { steps } = gateway.records[0]!;
    expect(steps.filter(({ code }) => code === 'stage-answered')).toHaveLength(101);
    expect(steps.length).toBeLessThan(320);
  });
});

describe('whatever the stages and whatever becomes of them', () => {
  const DEADLINE_MS = 1000;
  const engine = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 700 }).map(echo) },
    { weight: 1, arbitrary: fc.constant(never) },
    { weight: 1, arbitrary: fc.constantFrom(status(400), status(500), status(503), status(429)) },
    { weight: 1, arbitrary: fc.constant(chatAnswer(undefined as never)) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 200 }).map((gap) => chatStream(['a', 'b', 'c'], gap)) },
  );
  const onFailure = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('skip', 'fail', { use: 'used' }) },
    { weight: 1, arbitrary: fc.constantFrom({ route: 'r1' }, { route: 'r4' }) },
  );
  const stage = fc.record({
    route: fc.constantFrom('r1', 'r2', 'r3', 'r4'),
    budget: fc.constantFrom(undefined, 'auto', '50ms', '200ms'),
    onFailure,
    after: fc.array(fc.nat(5), { maxLength: 3 }),
  });
  const world = fc.record({
    engines: fc.tuple(engine, engine, engine, engine),
    ladders: fc.array(fc.constantFrom([], [{ answer: 'rung' }], [{ backend: 'b2' }]), {
      minLength: 4,
      maxLength: 4,
    }),
    stages: fc.array(stage, { minLength: 1, maxLength: 6 }),
    stream: fc.boolean(),
    callers: fc.array(
      fc.record({
        at: fc.nat(300),
        stream: fc.boolean(),
        leavesAfter: fc.option(fc.nat(1200)),
        completion: fc.boolean(),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    places: fc.constantFrom(1, 64),
  });

  it('answers everybody once, by the deadline, and keeps nothing', async () => {
    await fc.assert(
      fc.asyncProperty(world, async ({ engines, ladders, stages, stream, callers, places }) => {
        const named: Record<string, object> = {};
        for (const [i, { after, budget, ...more }] of stages.entries()) {
          const before = [...new Set(after.filter((each) => each < i).map((each) => `s${each}`))];
          named[`s${i}`] = {
            ...more,
            ...(budget && { budget }),
            after: before,
            input: 'x {{ request.text }}',
          };
        }
        const names = Object.keys(named);
        named['end'] = {
          route: 'r4',
          after: names,
          input: names.map((name) => `{{ ${name} }}`).join(),
          stream,
          onFailure: stages[0]!.onFailure,
        };
        const settings = config(named, {
          deadline: `${DEADLINE_MS}ms`,
          routes: Object.fromEntries(ladders.map((ladder, i) => [`r${i + 1}`, { ladder }])),
        });
        for (const backend of Object.values(settings.backends))
          Object.assign(backend, { limits: { concurrency: places, adaptive: 'off' } });
        const gateway = new VirtualGateway(settings);
        for (const [i, each] of engines.entries()) gateway.engines.set(origins[i]!, each);
        let goOn = 0;
        const asked: {
          caller: ReturnType<VirtualGateway['chat']>;
          left: boolean;
          doneAt: number | undefined;
          startedAt: number;
        }[] = [];
        for (const { at, stream, leavesAfter, completion } of callers) {
          gateway.time.set(at, () => {
            const caller = completion
              ? gateway.send('POST', '/v1/completions', { model: 'search', prompt: 'Hi', stream })
              : gateway.chat({ model: 'search', stream });
            const one = {
              caller,
              left: false,
              doneAt: caller.ended ? gateway.time.mono() : undefined,
              startedAt: gateway.time.mono(),
            };
            caller.whenClosed(() => {
              one.doneAt ??= gateway.time.mono();
              gateway.time.set(0, () => (goOn += gateway.path.running.size));
            });
            asked.push(one);
            if (leavesAfter === null) return;
            gateway.time.set(leavesAfter, () => {
              if (caller.ended) return;
              one.left = true;
              caller.leave();
            });
          });
        }
        await gateway.time.advance(6000);
        // With the only caller everything that was done for it ends at once.
        if (callers.length === 1) expect(goOn).toBe(0);
        for (const { caller, left, doneAt, startedAt } of asked) {
          if (left) continue;
          expect(caller.ended).toBe(true);
          // A stream that has begun by then may go on.
          if (caller.status !== 200 || !caller.text.startsWith('data:'))
            expect(doneAt! - startedAt).toBeLessThanOrEqual(DEADLINE_MS + 2);
          if (caller.status === 200) expect(caller.text).not.toBe('');
          else expect(JSON.parse(caller.text).error.code).toBeTypeOf('string');
        }
        expect(gateway.records).toHaveLength(callers.length);
        expect(gateway.taken).toEqual(NOTHING);
        expect(gateway.path.running.size).toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});
