import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { embeddingsPart, spread } from './embeddings.ts';

describe('shares of the tokens', () => {
  it('are whole, add up, and are within one of the exact share', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 10_000 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(fc.nat(1_000_000), weights, (total, list) => {
        const shares = spread(total, list);
        const sum = list.reduce((all, weight) => all + weight, 0);
        expect(shares.reduce((all, share) => all + share, 0)).toBe(total);
        for (const [at, share] of shares.entries()) {
          expect(Number.isInteger(share)).toBe(true);
          expect(Math.abs(share - (total * list[at]!) / sum)).toBeLessThan(1);
        }
      }),
    );
  });

  it('are exact where inputs came as tokens', () => {
    expect(spread(6, [1, 2, 3])).toEqual([1, 2, 3]);
  });
});

describe('what can be joined', () => {
  const count = (input: string) => embeddingsPart(Buffer.from(`{"model":"m","input":${input}}`))?.count;

  it.each([
    ['"a"', 1],
    ['["a"]', 1],
    ['["a","b"]', 2],
    ['[1,2,3]', 1],
    ['[[1,2],[3]]', 2],
  ])('counts the inputs of %s', (input, inputs) => {
    expect(count(input)).toBe(inputs);
  });

  it.each(['[]', '[[]]', 'null', '1', '{}', '["a",1]', '[1.5]', '[[1],"a"]', '["a",null]', '[1,[2]]'])(
    'leaves %s to the engine',
    (input) => {
      expect(count(input)).toBeUndefined();
    },
  );

  it.each([
    '{"model":"m"}',
    '{"model":"m","input":"a","input":"b"}',
    '{"model":"m","input":"a","x":1,"x":2}',
    `{"model":"m","input":"a","x":"${'x'.repeat(5000)}"}`,
  ])('leaves %s to the engine whole', (body) => {
    expect(embeddingsPart(Buffer.from(body))).toBeUndefined();
  });
});
