import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HostFault } from '../fault.ts';
import { parseEmbedding } from './embedding-request.ts';

const model = { dimensions: 384, vocabulary: 30_522 };

test('texts and tokens are told apart, alone and in lists', () => {
  const inputs = (input: unknown) => parseEmbedding({ input }, model).inputs;
  expect(inputs('a')).toEqual(['a']);
  expect(inputs(['a', 'b'])).toEqual(['a', 'b']);
  expect(inputs([1, 2])).toEqual([[1, 2]]);
  expect(inputs([[1], [2, 3]])).toEqual([[1], [2, 3]]);
});

test('whatever comes is read or refused with its reason', () => {
  const bodies = fc.record(
    { input: fc.jsonValue(), encoding_format: fc.jsonValue(), dimensions: fc.jsonValue() },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(bodies, (body) => {
      try {
        const { inputs } = parseEmbedding(body, model);
        expect(inputs.length).toBeGreaterThan(0);
        expect(inputs.every((input) => input.length > 0)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(HostFault);
        expect((error as HostFault).status).toBe(400);
      }
    }),
    { numRuns: 500 },
  );
});
