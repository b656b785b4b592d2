import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StageItem } from '../kinds/contracts.ts';
import { cosine } from '../kinds/cosine.ts';
import type { TemplateScope } from '../templates.ts';
import { Template } from '../templates.ts';
import { compute } from './compute.ts';
import { Expression } from './expressions.ts';
import { FanOut } from './fan-out.ts';
import { mergedByRank, mergedByScore, rankedByNearness } from './lists.ts';

const item = fc.record(
  {
    text: fc.string({ maxLength: 3 }),
    id: fc.nat(5),
    score: fc.double({ noNaN: true, noDefaultInfinity: true }),
  },
  { requiredKeys: ['text'] },
) as fc.Arbitrary<StageItem>;
const lists = fc.array(fc.array(item, { maxLength: 12 }), { maxLength: 4 });
const keyOf = ({ id, text }: StageItem) => JSON.stringify(id ?? text);

describe('merged lists', () => {
  it('have each item once, the best first, and none that was in no list', () => {
    fc.assert(
      fc.property(lists, fc.integer({ min: 1, max: 100 }), (all, k) => {
        const expected = new Set(all.flat().map(keyOf));
        for (const merged of [mergedByRank(all, k), mergedByScore(all)]) {
          expect(merged.map(keyOf).toSorted()).toEqual([...expected].toSorted());
          const scores = merged.map(({ score }) => score ?? Number.NEGATIVE_INFINITY);
          expect(scores).toEqual(scores.toSorted((a, b) => (a === b ? 0 : b - a)));
        }
      }),
    );
  });

  it('by rank score 1 / (k + place) for each list', () => {
    const merged = mergedByRank([[{ text: 'a' }, { text: 'b' }, { text: 'b' }], [{ text: 'b' }]], 60);
    expect(merged).toEqual([
      { text: 'b', score: 1 / 62 + 1 / 61 },
      { text: 'a', score: 1 / 61 },
    ]);
    const scored = mergedByRank(
      [
        [
          { text: 'a', score: 1 },
          { text: 'b', score: 2 },
        ],
      ],
      60,
    );
    expect(scored[0]).toMatchObject({ text: 'b' });
  });

  it('leave the lists that they are made of as they were', () => {
    const list = [
      { text: 'a', score: 1 },
      { text: 'b', score: 2 },
    ];
    const before = structuredClone(list);
    mergedByRank([list, list], 60);
    mergedByScore([list, list]);
    rankedByNearness({ text: '', vectors: [[1]] }, { text: '', items: list, vectors: [[1], [2]] });
    expect(list).toEqual(before);
  });
});

describe('nearness', () => {
  it('is a cosine', () => {
    const vector = fc.array(fc.double({ noNaN: true, min: -1e6, max: 1e6 }), { minLength: 3, maxLength: 3 });
    fc.assert(
      fc.property(vector, vector, (a, b) => {
        const near = cosine(a, b);
        expect(Math.abs(near)).toBeLessThanOrEqual(1 + 1e-9);
        expect(near).toBeCloseTo(cosine(b, a), 9);
      }),
    );
    expect(cosine([0, 0], [1, 1])).toBe(0);
    expect(cosine([1e300, 1e300], [1e300, 0])).toBe(0); // too long to be told
  });

  it('is not told of vectors that cannot be compared', () => {
    const query = { text: '', vectors: [[1, 2]] };
    const items = [{ text: 'a' }];
    expect(rankedByNearness(query, { text: '', items, vectors: [[1]] })).toBeUndefined();
    expect(rankedByNearness(query, { text: '', items, vectors: [] })).toBeUndefined();
    expect(rankedByNearness({ text: '' }, { text: '', items, vectors: [[1, 2]] })).toBeUndefined();
    expect(rankedByNearness({ text: '' }, { text: '', items: [], vectors: [] })).toEqual([]);
  });
});

describe('the first of several stages', () => {
  it('is the first that has a text', () => {
    const found: Record<string, { text: string }> = { a: { text: '' }, b: { text: 'B' }, c: { text: 'C' } };
    const of = (first: string[]) => compute({ first } as never, (name) => found[name]);
    expect(of(['a', 'b', 'c'])).toEqual({ text: 'B' });
    expect(of(['x', 'a'])).toBeUndefined();
  });
});

describe('fan-out', () => {
  it('does every item once, no more at once than it may, whatever the order they are done in', () => {
    fc.assert(
      fc.property(
        fc.nat(30),
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.nat(), { maxLength: 60 }),
        (count, concurrency, order) => {
          const waiting: { index: number; done: (result: number) => void }[] = [];
          let over = 0;
          let most = 0;
          const fan: FanOut<number> = new FanOut<number>(
            count,
            concurrency,
            (index, done) => {
              if (index % 3 === 0) done(index);
              else waiting.push({ index, done });
              most = Math.max(most, fan.running);
              return () => undefined;
            },
            () => over++,
          );
          fan.start();
          for (let turn = 0; waiting.length > 0; turn++) {
            const [one] = waiting.splice((order[turn] ?? 0) % waiting.length, 1);
            one!.done(one!.index);
            one!.done(-1); // twice: has no effect
          }
          expect(over).toBe(1);
          expect(most).toBeLessThanOrEqual(concurrency);
          expect(fan.results).toEqual(Array.from({ length: count }, (_, i) => i));
        },
      ),
    );
  });

  it('that is cut begins nothing more, and leaves what runs', () => {
    const left: number[] = [];
    let begun = 0;
    const fan = new FanOut<number>(
      9,
      2,
      (index) => {
        begun++;
        return () => left.push(index);
      },
      () => expect.unreachable(),
    );
    fan.start();
    fan.cut();
    expect([begun, left, fan.running]).toEqual([2, [0, 1], 0]);
  });
});

describe('an expression', () => {
  const scope = (values: Record<string, unknown>): TemplateScope => ({ get: (name) => values[name] });
  const of = (text: string, values: Record<string, unknown> = {}) =>
    new Expression(text).value(scope(values));

  it('gives plain data', () => {
    const stages = { found: { text: 't', items: [{ text: 'a', score: 0.5 }, { text: 'b' }] } };
    expect(of('stages.found.items', { stages })).toEqual(stages.found.items);
    expect(of('stages["found"].items[0].text', { stages })).toBe('a');
    expect(of('request.text.split("\\n")', { request: { text: 'a\nb' } })).toEqual(['a', 'b']);
    expect(of('stages.none.items', { stages })).toBeUndefined();
    expect(of('request.body.items', { request: { body: {} } })).toBeUndefined();
    expect(of('{"__proto__": {"x": 1}}')).toEqual(JSON.parse('{"__proto__": {"x": 1}}'));
    expect(new Expression('stages.a.class == "x" and request.text | trim').roots.toSorted()).toEqual([
      'request',
      'stages',
    ]);
  });

  it('holds, does not hold, or cannot be told', () => {
    const holds = (text: string, values: Record<string, unknown>) =>
      new Expression(text).holds(scope(values));
    expect(holds('stages.a.score > 0.5', { stages: { a: { score: 0.6 } } })).toBe(true);
    expect(holds('stages.a.items', { stages: { a: { items: [] } } })).toBe(false);
    expect(holds('not a', { a: '' })).toBe(true);
    expect(() => holds('stages.a.score > 0.5', { stages: { a: {} } })).toThrow();
  });

  it('and a template never evaluate what a caller or a stage has said', () => {
    const sign = fc.constantFrom(
      '{{',
      '}}',
      '{%',
      '%}',
      '{#',
      '#}',
      '7*7',
      'request',
      "''",
      '\\',
      '"',
      '\n',
      '${',
      'raw',
      'endraw',
    );
    const text = fc
      .array(fc.oneof(sign, fc.string({ maxLength: 4 })), { maxLength: 10 })
      .map((pieces) => pieces.join(' '));
    fc.assert(
      fc.property(text, text, (said, other) => {
        const values = scope({
          request: { text: said, body: { documents: [said, other] } },
          stages: { a: { text: other } },
          a: other,
        });
        expect(new Template('{{ request.text }}|{{ a }}|{{ stages.a.text }}').render(values)).toBe(
          `${said}|${other}|${other}`,
        );
        expect(new Template('{% if true %}{{ request.text }}{% endif %}').render(values)).toBe(said);
        expect(new Expression('request.body.documents').value(values)).toEqual([said, other]);
        expect(new Expression('request.text').value(values)).toBe(said);
        expect(new Expression('request.text == a').value(values)).toBe(said === other);
      }),
      { numRuns: 500 },
    );
  });
});
