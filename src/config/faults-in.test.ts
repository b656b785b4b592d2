import { expect, it } from 'vitest';
import { z } from 'zod';
import { faultsIn } from './faults-in.ts';

const asked = z.strictObject({
  route: z.string(),
  plan: z.array(z.number({ error: 'expected a percentage' })),
  limit: z.number().min(1).optional(),
});

const faultsOf = (value: unknown) => faultsIn(asked.safeParse(value).error!);

it('tells every fault with its place, in the words of the configuration', () => {
  expect(faultsOf({ route: 7, plan: [5, 'x'], limit: 0, to: 'b' })).toEqual([
    'route: expected a text',
    'plan[1]: expected a percentage',
    'limit: expected a number of at least 1',
    'unknown key "to"',
  ]);
  expect(faultsOf({})).toEqual(['route: is missing: expected a text', 'plan: is missing: expected a list']);
  expect(faultsOf([])).toEqual(['expected a map']);
});
