import { z } from 'zod';
import { compare } from './compare.ts';
import { stress } from './stress.ts';
import { duration, durationAboveZero, name, whole } from './values.ts';

const share = (says: string) =>
  z
    .number({ error: 'expected a share above 0 and below 1' })
    .gt(0, 'expected a share above 0 and below 1')
    .lt(1, 'expected a share above 0 and below 1')
    .describe(says);

const percent = z
  .number({ error: 'expected a percentage above 0 and of at most 100' })
  .gt(0, 'expected a percentage above 0 and of at most 100')
  .max(100, 'expected a percentage above 0 and of at most 100');

/** What can be certified of a canary before it is promoted. */
const RELEASE_METRICS = ['errors', 'latency', 'cost', 'quality'] as const;

/** How a route is moved to another backend where whoever starts the release says nothing else. */
export const release = z
  .strictObject({
    plan: z
      .union([z.literal('auto'), z.array(percent).min(1, 'expected one step or more').max(50)], {
        error: 'expected auto or percentages such as [1, 5, 25, 50, 100]',
      })
      .default([1, 5, 25, 50, 100])
      .describe(
        'Percent of the sessions that the canary answers, step by step, the last 100; auto: as fast as the evidence allows.',
      ),
    shadow: z
      .number({ error: 'expected a percentage of 0 to 100' })
      .min(0, 'expected a percentage of 0 to 100')
      .max(100, 'expected a percentage of 0 to 100')
      .default(0)
      .describe('How many of a hundred requests are copied to the canary before callers meet it; 0: none.'),
    pairsMin: whole(1)
      .default(100)
      .describe('Answers to copies that have to be compared before callers meet the canary.'),
    compare: compare
      .describe(
        'How answers to those copies are compared with those that callers got. Default: word by word.',
      )
      .optional(),
    stress: stress.optional(),
    deadline: durationAboveZero
      .prefault('24h')
      .describe('All of it; what is not certified by then is rolled back.'),
    phases: z
      .strictObject({
        gates: durationAboveZero
          .optional()
          .describe('The load test, and the certificates that the route demands.'),
        shadow: durationAboveZero.optional().describe('Answers to copies.'),
        canary: durationAboveZero.optional().describe('All steps of the plan.'),
      })
      .prefault({})
      .describe(
        'What a phase may take where that is less than what is left of the deadline; what is not through by then is rolled back.',
      ),
    alpha: share(
      'The chance of a false abort in the life of a release, however often it is looked at.',
    ).default(0.05),
    baseline: name
      .optional()
      .describe(
        'The backend that answers the arm which the canary is compared with. Default: the targets that it replaces.',
      ),
    step: z
      .strictObject({
        sessionsMin: whole(1).default(100).describe('Sessions that the canary has to have met.'),
        timeMin: duration.prefault('10m').describe('How long it lasts at least.'),
      })
      .prefault({})
      .describe('What each step takes at least, whatever the evidence.'),
    metrics: z
      .array(z.literal(RELEASE_METRICS, { error: `expected some of ${RELEASE_METRICS.join(', ')}` }))
      .min(1, 'expected one metric or more')
      .default(['errors', 'latency'])
      .describe('What has to be certified before it is promoted.'),
    ratioMax: z
      .number({ error: 'expected a ratio above 1' })
      .gt(1, 'expected a ratio above 1')
      .max(100)
      .default(2)
      .describe('The canary is certified to do worse less than so many times as often.'),
    errorRateMax: share(
      'Where stable has no errors to compare with, the canary is certified to fail less often than this.',
    ).default(0.01),
    watch: duration
      .prefault('30m')
      .describe('How long a promoted backend is watched, and what it replaced can be gone back to.'),
  })
  .describe('What releases of this route begin with: see `armature release start`.');
