import { z } from 'zod';
import { priorities } from '../../kernel/priorities.ts';
import { duration, whole } from './values.ts';

const share = z
  .number({ error: 'expected a load above 0, such as 0.8' })
  .positive('expected a load above 0, such as 0.8')
  .max(100, 'expected a load of 100 at most');

/** Which tier of its targets a request goes to. */
export const tiers = z
  .array(
    z.strictObject({
      tier: z
        .string({ error: 'expected the tier of a target, asked or cheapest' })
        .min(1)
        .describe(
          'A tier of the targets; `asked`: the one that the request or its tenant asks for; `cheapest`: the cheapest with a free place that its window and time allow.',
        ),
      when: z
        .strictObject({
          priority: z
            .array(z.literal(priorities, { error: 'expected critical, interactive, standard or batch' }))
            .min(1, 'expected one priority or more')
            .optional()
            .describe('For requests of these priorities.'),
          promptTokensMin: whole(0)
            .optional()
            .describe('For prompts of at least so many tokens, as reckoned.'),
          promptTokensMax: whole(0)
            .optional()
            .describe('For prompts of at most so many tokens, as reckoned.'),
          load: z
            .record(z.string(), share)
            .refine((load) => Object.keys(load).length > 0, 'expected a tier and its load')
            .optional()
            .describe(
              'While these tiers are that busy: what is in flight and waits there, over its places, such as `{ large: 0.8 }`.',
            ),
        })
        .prefault({})
        .describe('All of it has to hold. Default: always.'),
      waitMax: duration
        .prefault('0ms')
        .describe(
          'Where the tier is full: how long its turn may be away before another tier takes the request.',
        ),
    }),
  )
  .min(1, 'expected one rule or more')
  .max(20)
  .describe(
    'Which tier of the targets a request goes to: the first rule that holds says. One that cannot take it is passed over for the next. Default: all targets by weight.',
  );
