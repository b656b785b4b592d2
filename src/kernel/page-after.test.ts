import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pageAfter } from './page-after.ts';

test('pages one after the other are the whole list, each item once; behind a stranger there is no page', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string(), { maxLength: 20 }),
      fc.integer({ min: 1, max: 7 }),
      (all, limit) => {
        const seen: string[] = [];
        for (let after: string | undefined; ; ) {
          const page = pageAfter(all, (item) => item, { limit, after })!;
          expect(page.data.length).toBeLessThanOrEqual(limit);
          seen.push(...page.data);
          if (page.next === null) break;
          after = page.next;
        }
        expect(seen).toEqual(all);
      },
    ),
  );
  expect(pageAfter(['a'], (item) => item, { limit: 1, after: 'b' })).toBeUndefined();
});
