import { z } from 'zod';
import { duration, durationAboveZero, rate, secret, url, whole } from './values.ts';

/** What can be watched of any answer, and how it is looked at. */
export const DRIFT_FEATURES = {
  promptTokens: 'numeric',
  answerTokens: 'numeric',
  promptLanguage: 'categorical',
  answerLanguage: 'categorical',
  finishReason: 'categorical',
  confidence: 'numeric',
  entropy: 'numeric',
  class: 'categorical',
  embedding: 'vector',
} as const;

/** Of tensors: the first element of an input or an output by its name, or the shape of an input. */
const TENSOR = /^(input|output|inputShape):.{1,100}$/;

const featureName = z.string().refine((text) => Object.hasOwn(DRIFT_FEATURES, text) || TENSOR.test(text), {
  error: `expected ${Object.keys(DRIFT_FEATURES).join(', ')}, input:NAME, output:NAME or inputShape:NAME`,
});

const feature = z.union(
  [
    featureName,
    z.strictObject({
      name: featureName.describe('As above.'),
      type: z
        .literal(['numeric', 'categorical'], { error: 'expected numeric or categorical' })
        .describe('How the values of a tensor are looked at. Default: numeric; shapes: categorical.'),
    }),
  ],
  { error: 'expected the name of a feature, or { name, type }' },
);

const hook = z
  .strictObject({
    url: url.optional().describe('Where a POST with the alarm goes.'),
    command: z
      .array(z.string().min(1))
      .min(1, 'expected a program and its arguments')
      .max(50)
      .optional()
      .describe('A program and its arguments; the alarm comes as JSON on its standard input.'),
    secret: secret
      .optional()
      .describe(
        'Signs what is sent: `x-armature-signature: sha256=` and the HMAC of the body. Default: unsigned.',
      ),
    timeout: durationAboveZero
      .prefault('30s')
      .describe('How long it may take to say that the work has begun.'),
  })
  .refine((each) => (each.url === undefined) !== (each.command === undefined), {
    error: 'expected either url or command',
  });

/** How it is watched whether what comes in and goes out of a route still is what it was. */
export const drift = z
  .strictObject({
    features: z
      .array(feature)
      .min(1, 'expected one feature or more')
      .max(40)
      .default(['promptTokens', 'answerTokens', 'finishReason'])
      .describe(
        'What is watched, of each backend by itself; see docs/drift.md. Languages are found in samples of the texts, which are not kept.',
      ),
    score: z
      .string()
      .min(1)
      .optional()
      .describe('The output tensor that holds the probabilities of the classes. Default: none.'),
    sample: rate
      .prefault('50/s')
      .describe('The most answers that a worker tells of, one of a session that is remembered.'),
    reference: z
      .strictObject({
        size: whole(200, 5000)
          .default(1000)
          .describe('Rows that the reference is made of; then it is frozen. Of embeddings at most 2000.'),
        cycles: whole(1, 60)
          .default(7)
          .describe('Whole cycles that it is made of, where there is a `cycle`.'),
      })
      .prefault({})
      .describe('What everything after it is held against.'),
    cycle: duration
      .refine((ms) => ms >= 60_000, { error: 'expected a minute or more' })
      .optional()
      .describe(
        'After which traffic repeats itself, such as 24h: each whole one is then judged at its end. Default: it does not.',
      ),
    targetRunLength: whole(100, 1_000_000_000)
      .default(10_000)
      .describe('Rows of a feature after which, on average, a false alarm comes no sooner.'),
    movedMin: z
      .number({ error: 'expected a part from 0 to 1' })
      .min(0, 'expected a part from 0 to 1')
      .max(1, 'expected a part from 0 to 1')
      .default(0.05)
      .describe('Changes that have moved a smaller part of the values are counted, and not told.'),
    cooldown: duration
      .prefault('1h')
      .describe('How long nothing is told after a change that has passed by itself.'),
    freshRows: whole(50, 1_000_000)
      .default(1000)
      .describe(
        'Rows after an alarm by which the change must have been found again to count as one that stays.',
      ),
    labels: whole(200, 100_000)
      .default(1000)
      .describe('Late labels that confidence is calibrated on before it is watched.'),
    hook: hook
      .optional()
      .describe('What is told of a change that stays, such as what starts a training. Default: nothing.'),
  })
  .describe('Watches what comes in and goes out against a frozen reference. Default: nothing is watched.');
