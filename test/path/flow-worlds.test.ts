import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatFaults } from '../../src/config/faults.ts';
import { filesInMemory } from '../../src/config/files-in-memory.ts';
import { loadConfig } from '../../src/config/load.ts';
import { chats, config, open, tensors, vectors } from './flow-world.ts';
import { chatStream, type Engine, NOTHING, never, status } from './virtual-gateway.ts';

/** Pipelines of every kind of stage, drawn at random, over engines that answer, hang, break, or say what is no answer. */

const DEADLINE_MS = 1000;

const afterMs = fc.integer({ min: 1, max: 400 });
const broken = fc.constantFrom<Engine>(
  never,
  status(400),
  status(500),
  status(503),
  status(200, {}),
  status(200, 'x'),
);
const mostly = (well: fc.Arbitrary<Engine>) =>
  fc.oneof({ weight: 5, arbitrary: well }, { weight: 1, arbitrary: broken });
const chatEngine = mostly(
  fc.oneof(
    afterMs.map((ms) => chats((text) => `<${text}>`, ms)),
    afterMs.map((ms) => chats((text) => (text.length % 2 ? 'yes' : 'no'), ms)),
    fc.integer({ min: 1, max: 150 }).map((gap) => chatStream(['a', 'b'], gap)),
  ),
);
const scores = tensors((inputs) => {
  const rows = inputs.find(({ name }) => name === 'texts')?.data.length ?? 1;
  return [
    {
      name: 's',
      datatype: 'FP32',
      shape: [rows, 2],
      data: Array.from({ length: rows * 2 }, (_, i) => i % 3),
    },
  ];
});
const engines = fc.record({
  chat: chatEngine,
  other: chatEngine,
  vectors: mostly(afterMs.map((ms) => vectors('v', ms))),
  tensors: mostly(fc.constant(scores)),
});

const onFailure = fc.constantFrom('skip', 'skip', { use: 'yes' }, 'fail', { route: 'other' });
const way = fc.record({
  onFailure: fc.constantFrom('skip', { use: 'yes' }, 'fail'),
  budget: fc.constantFrom('50ms', '300ms', 'auto', undefined),
});
const when = fc.constantFrom(
  undefined,
  undefined,
  'stages.class.class == "yes"',
  'stages.near.score > 0.5',
  'request.text',
  'not stages.near.items',
  'stages.judged.items | length > 1',
);
const written = (settings: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));

const pipeline = fc
  .record({
    ways: fc.array(way, { minLength: 5, maxLength: 5 }),
    out: fc.array(onFailure, { minLength: 3, maxLength: 3 }),
    when: fc.array(when, { minLength: 3, maxLength: 3 }),
    concurrency: fc.integer({ min: 1, max: 64 }),
    examples: fc.boolean(),
    stream: fc.boolean(),
    nested: fc.boolean(),
    by: fc.constantFrom('rank', 'score'),
  })
  .map(({ ways, out, when, concurrency, examples, stream, nested, by }) => {
    const all = ['class', 'near', 'judged'];
    const class_ = examples
      ? { route: 'vectors', kind: 'embeddings', classes: { yes: ['rain'], no: ['train'] } }
      : { route: 'chat', classes: ['yes', 'no'] };
    const stages: Record<string, object> = {
      class: { ...class_, input: '{{ request.text }}', ...ways[0] },
      query: { route: 'vectors', kind: 'embeddings', input: '{{ request.text }}', ...ways[1] },
      docs: { route: 'vectors', kind: 'embeddings', inputs: 'request.body.documents', ...ways[2] },
      near: { rank: { query: 'query', of: 'docs', top: 3 }, onFailure: ways[2]!.onFailure },
      judged: {
        route: 'tensors',
        after: ['near'],
        tensors: { texts: { texts: 'stages.near' } },
        labels: ['a', 'b'],
        ...ways[3],
      },
      each: {
        route: 'chat',
        after: ['judged'],
        each: 'stages.judged.items',
        concurrency,
        input: '{{ loop.index }} {{ item.text }} {{ item.class }}',
        onFailure: out[0],
        budget: ways[4]!.budget,
      },
      best: { merge: { of: ['near', 'judged', 'each'], by, top: 2 } },
      one: {
        route: 'chat',
        after: [...all, 'best'],
        when: when[0],
        input: '1{{ best }}',
        stream,
        onFailure: out[1],
      },
      two: { route: 'other', after: all, when: when[1], input: '2{{ near }}', stream, onFailure: out[2] },
      three: { route: 'other', after: all, when: when[2], input: '3', stream: !stream },
      ...(nested
        ? { both: { first: ['one', 'two'], onFailure: 'skip' }, end: { first: ['both', 'three'] } }
        : {}),
      ...(nested ? {} : { end: { first: ['one', 'two', 'three'], onFailure: { use: 'nothing' } } }),
    };
    return Object.fromEntries(Object.entries(stages).map(([name, stage]) => [name, written(stage as never)]));
  });

const callers = fc.array(
  fc.record({
    at: fc.nat(200),
    stream: fc.boolean(),
    oip: fc.boolean(),
    leavesAfter: fc.option(fc.nat(1200)),
    documents: fc.oneof(
      fc.array(fc.constantFrom('rain', 'train {{ 1 }}', 'sun', ''), { maxLength: 6 }),
      fc.constant(undefined),
    ),
  }),
  { minLength: 1, maxLength: 4 },
);

describe('stages of every kind, whatever becomes of them', () => {
  it('answer everybody once, by the deadline, and keep nothing', async () => {
    await fc.assert(
      fc.asyncProperty(pipeline, engines, callers, async (stages, engines, callers) => {
        const settings = { deadline: `${DEADLINE_MS}ms` };
        const text = JSON.stringify(config(stages, settings));
        const loaded = loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text }));
        expect(loaded.ok ? '' : formatFaults(loaded.faults)).toBe('');
        const gateway = open(stages, engines, settings);
        const asked: { ended: () => boolean; startedAt: number; doneAt?: number; check: () => void }[] = [];
        for (const { at, stream, oip, leavesAfter, documents } of callers) {
          gateway.time.set(at, () => {
            const input = (name: string, data: string[]) => ({
              name,
              datatype: 'BYTES',
              shape: [data.length],
              data,
            });
            const inputs = [input('text', ['rain?']), ...(documents ? [input('documents', documents)] : [])];
            const caller = oip
              ? gateway.send('POST', '/v2/models/search/infer', { inputs })
              : gateway.chat({ model: 'search', stream, documents });
            let left = false;
            const one: (typeof asked)[number] = {
              startedAt: gateway.time.mono(),
              ended: () => caller.ended || left,
              check: () => {
                if (left || caller.text.startsWith('data:')) return;
                expect(one.doneAt! - one.startedAt).toBeLessThanOrEqual(DEADLINE_MS + 2);
                const answer = JSON.parse(caller.text);
                if (caller.status !== 200)
                  expect(oip ? answer.error : answer.error.code).toBeTypeOf('string');
                else if (oip) expect(answer.outputs[0]).toMatchObject({ name: 'text', datatype: 'BYTES' });
                else expect(answer.choices).toHaveLength(1);
              },
            };
            asked.push(one);
            if (caller.ended) one.doneAt = one.startedAt;
            else caller.whenClosed(() => (one.doneAt ??= gateway.time.mono()));
            if (leavesAfter === null) return;
            gateway.time.set(leavesAfter, () => {
              if (caller.ended) return;
              left = true;
              caller.leave();
            });
          });
        }
        // What is learnt for those to come goes on by itself, for so long at most.
        await gateway.time.advance(40_000);
        for (const one of asked) {
          expect(one.ended()).toBe(true);
          one.check();
        }
        expect(gateway.records).toHaveLength(callers.length);
        expect(gateway.taken).toEqual(NOTHING);
        expect(gateway.path.running.size).toBe(0);
      }),
      { numRuns: 150 },
    );
  });
});
