import { z } from 'zod';
import { duration, file, name, whole } from './values.ts';

const golden = file.describe('Golden prompts, one JSON object a line, 1 MiB at most: docs/parity.md.');

const share = (fallback: number, says: string) =>
  z
    .number({ error: 'expected a share above 0 and below 0.5' })
    .gt(0, 'expected a share above 0 and below 0.5')
    .lt(0.5, 'expected a share above 0 and below 0.5')
    .default(fallback)
    .describe(says);

/** What a target of a route has to have shown before it may answer callers. */
export const parity = z
  .strictObject({
    golden,
    reference: name
      .optional()
      .describe('The backend that others are compared with. Default: the first of the targets.'),
    flipsMax: share(0.03, 'The bound of decisions that differ from the reference, beyond its own floor.'),
    require: z
      .literal(['refuse', 'flag'], { error: 'expected refuse or flag' })
      .default('refuse')
      .describe('What becomes of a move to a target without a valid certificate: refused, or told aloud.'),
  })
  .describe('Demands a certificate of parity of each target. Default: none.');

/** Golden prompts that go to the endpoints of a route while they serve. */
export const sentinel = z
  .strictObject({
    golden,
    every: duration
      .refine((ms) => ms >= 100, 'expected 100ms or more')
      .prefault('10s')
      .describe('How often each endpoint is asked one golden prompt, where it has room.'),
    usual: share(0.01, 'The rate of decisions that may be other than an endpoint once gave.'),
    apart: share(0.03, 'The rate of decisions that targets may differ by from the first of them.'),
    runLength: whole(100)
      .default(20_000)
      .describe('Prompts until a false alarm, on average at least, where nothing has changed.'),
  })
  .describe('Notices an engine that was changed in silence. Default: nothing is sent.');
