import { z } from 'zod';
import { duration, size } from './values.ts';

export const sessions = z.strictObject({
  keep: z
    .strictObject({
      age: duration.prefault('30d').describe('Sessions that were not continued for so long are removed.'),
      size: size
        .prefault('2GiB')
        .describe(
          'Beyond it those of the tenant that has most are removed, not continued for longest first.',
        ),
    })
    .prefault({})
    .describe('How much of them is kept.'),
});
