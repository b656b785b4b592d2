import { z } from 'zod';
import { priorities } from '../../kernel/priorities.ts';
import { compare } from './compare.ts';
import { routeContext } from './context.ts';
import { drift } from './drift.ts';
import { parity, sentinel } from './parity.ts';
import { prepare } from './prepare.ts';
import { release } from './release.ts';
import { tiers } from './tiers.ts';
import { duration, durationAboveZero, hash, name, rate, size, whole } from './values.ts';

const rung = z.union(
  [
    z.strictObject({ backend: name.describe('Another backend.') }),
    z.strictObject({
      output: z
        .strictObject({ tokensMax: whole(1).describe('The longest answer, in tokens.') })
        .describe('Shorter answers of the same targets, for chat and completions.'),
    }),
    z.strictObject({
      cached: z
        .strictObject({ staleMax: duration.prefault('10m').describe('The oldest answer that is given.') })
        .describe('An answer given before to the same request.'),
    }),
    z.strictObject({ answer: z.string().min(1).describe('A fixed text, for chat and completions.') }),
  ],
  { error: 'expected one of { backend }, { output }, { cached } or { answer }' },
);

export const route = z.strictObject({
  context: routeContext,
  targets: z
    .array(
      z.strictObject({
        backend: name.describe('A name under `backends`.'),
        weight: z
          .number({ error: 'expected a weight of 0 or more' })
          .min(0, 'expected a weight of 0 or more')
          .default(1)
          .describe('Share of the traffic, relative to the other targets; 0 is never used.'),
      }),
    )
    .min(1, 'expected one target or more')
    .max(100)
    .describe('Where requests go, by weight.'),
  tiers: tiers.optional(),
  shadow: z
    .array(
      z.strictObject({
        backend: name.describe('A name under `backends`.'),
        percent: z.number().min(0).max(100).describe('How many of a hundred requests are copied.'),
        compare: compare.optional(),
      }),
    )
    .default([])
    .describe(
      'Copies sent to other backends after the request itself, where they have a free place; no caller gets their answers.',
    ),
  effects: z
    .boolean()
    .default(false)
    .describe('Whether its answers act on something: its requests are never copied.'),
  retired: z
    .boolean()
    .default(false)
    .describe('Whether it answers nobody any more (404), as `armature retire` has it.'),
  release: release.optional(),
  parity: parity.optional(),
  sentinel: sentinel.optional(),
  drift: drift.optional(),
  ladder: z
    .array(rung)
    .max(20)
    .default([])
    .describe('What the route falls back to, in order, when it cannot answer in full.'),
  deadline: durationAboveZero.prefault('120s').describe('A whole answer; for a stream, its first content.'),
  queue: z
    .strictObject({ max: whole(0, 1_000_000).default(512).describe('Requests that may wait.') })
    .prefault({})
    .describe('Where requests wait for a place at an endpoint.'),
  affinity: z
    .literal(['none', 'session', 'prefix'], { error: 'expected none, session or prefix' })
    .default('none')
    .describe('What keeps requests together: nothing, their session, or the beginning of their prompt.'),
  retry: z
    .strictObject({
      attempts: whole(1, 10).default(2).describe('Attempts of one request, the first included.'),
      budget: z.number().min(0).max(1).default(0.1).describe('Share of traffic that may be retries.'),
    })
    .prefault({})
    .describe('Second attempts at another endpoint, before anything was answered.'),
  cache: z
    .strictObject({
      ttl: duration.prefault('5m').describe('How long an answer is given to the same request in full.'),
      answerBytesMax: size.prefault('1MiB').describe('Longer answers are not kept.'),
    })
    .optional()
    .describe(
      'Answers are kept and given again where repetition is meant: temperature 0, embeddings, tensors. Default: none.',
    ),
  singleFlight: z
    .boolean()
    .default(false)
    .describe(
      'Of the same requests at one moment one goes upstream, and all get its answer, where repetition is meant.',
    ),
  prepare: prepare.optional(),
  batch: z
    .strictObject({
      delay: duration.prefault('5ms').describe('How long a request waits for others to go with it.'),
      max: whole(2, 4096).default(32).describe('Inputs that go together.'),
      acrossTenants: z.boolean().default(false).describe('Whether requests of several tenants go together.'),
    })
    .optional()
    .describe('Embeddings and tensors of many callers go upstream as one request. Default: each by itself.'),
  hedge: z
    .strictObject({
      after: z
        .union([z.literal('p95'), duration], { error: 'expected p95 or a duration such as 300ms' })
        .default('p95')
        .describe(
          'How long the first content of a stream (for embeddings and tensors: the answer) is waited for; p95 is what 19 of 20 answers took lately.',
        ),
      budget: z.number().min(0).max(1).default(0.05).describe('Share of traffic that may be hedged.'),
    })
    .optional()
    .describe(
      'A second attempt at another endpoint beside a slow first one; the one that answers first wins. Default: none.',
    ),
});

/** A rate's amount is also what can be had at once: see docs/quotas.md. */
const limits = {
  requests: rate.optional().describe('Requests over time; the amount may come at once.'),
  tokens: rate
    .optional()
    .describe('Tokens of prompts and answers over time; the amount may be used at once.'),
  concurrency: whole(1).optional().describe('Requests at once.'),
};

export const tenant = z.strictObject({
  priority: z
    .literal(priorities, { error: 'expected critical, interactive, standard or batch' })
    .default('standard')
    .describe('The highest that its requests may ask for, and what they get without asking.'),
  tier: z
    .string()
    .min(1)
    .optional()
    .describe(
      'The tier that its requests ask for where they do not say: see `routes.NAME.tiers`. Default: none.',
    ),
  routes: z.array(name).optional().describe('Routes and pipelines it may call. Default: every one.'),
  share: z
    .number({ error: 'expected a weight above 0' })
    .positive('expected a weight above 0')
    .max(1_000_000, 'expected a weight of at most 1000000')
    .default(1)
    .describe('Its weight against other tenants of the same priority that wait, in tokens.'),
  limits: z
    .strictObject({
      ...limits,
      routes: z
        .record(name, z.strictObject(limits))
        .default({})
        .describe('The same for single routes, beside what holds for all of them together.'),
    })
    .prefault({})
    .describe('What it may use. Default: no limit.'),
  keys: z
    .array(z.strictObject({ hash: hash.describe('SHA-256 of the key.') }))
    .default([])
    .describe('Keys made elsewhere; others are made by `armature keys create`.'),
});
