import { z } from 'zod';
import { durationAboveZero, name } from './values.ts';

/** How two answers to one request may be held against each other. */
const COMPARISONS = ['exact', 'structured', 'numeric', 'decision', 'embedding', 'judge'] as const;

const part = (says: string) =>
  z
    .number({ error: 'expected a number of 0 or more' })
    .min(0, 'expected a number of 0 or more')
    .default(0)
    .describe(says);

/** How the answer to a copy is compared with the one that the caller got; `by` says what the other keys are for. */
export const compare = z
  .strictObject({
    by: z
      .literal(COMPARISONS, { error: `expected one of ${COMPARISONS.join(', ')}` })
      .describe(
        'What counts as another answer. `exact`: other words. `structured`: other members or tool calls, of answers in JSON. `numeric`: numbers beyond `tolerance`. `decision`: another place of the largest score. `embedding`: the distance of both texts as `route` embeds them. `judge`: what the model of `route` says.',
      ),
    route: name
      .optional()
      .describe(
        'Of `embedding` and `judge`: the route that is asked, at the priority batch; nobody is charged.',
      ),
    budget: durationAboveZero
      .prefault('60s')
      .describe('Of `embedding` and `judge`: how long that may take, waiting included.'),
    whitespace: z
      .literal(['exact', 'ignored'], { error: 'expected exact or ignored' })
      .default('exact')
      .describe('Of `exact`: whether runs of spaces and line breaks are told from one another.'),
    tolerance: z
      .strictObject({
        relative: part("Share of the caller's number."),
        absolute: part('Added to that.'),
      })
      .prefault({})
      .describe('Of `numeric`: how far numbers may be apart.'),
    margin: z
      .number({ error: 'expected a margin from 0 to 1' })
      .min(0, 'expected a margin from 0 to 1')
      .max(1, 'expected a margin from 0 to 1')
      .default(0.05)
      .describe(
        'How much worse answers may be, 1 being as bad as can be: of a pair, and of a release on average.',
      ),
  })
  .describe('How answers to copies are compared with those that callers got. Default: they are not.');

export type CompareSettings = z.output<typeof compare>;
