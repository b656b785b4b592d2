import { z } from 'zod';
import { durationAboveZero, name, whole } from './values.ts';

const template = z.string().meta({ title: 'template' });

const expression = z
  .string()
  .min(1, 'expected an expression, such as stages.intent.class == "weather"')
  .meta({ title: 'expression' });

const text = z.string().min(1, 'expected a text that is not empty');

const others = z.array(name).min(1, 'expected one stage or more').max(100);

const top = whole(1, 10_000).optional().describe('How many of the best are kept. Default: all.');

const scalar = z.union([template, z.number(), z.boolean()]);

const tensor = z.union(
  [
    z.strictObject({
      datatype: z
        .literal(
          ['BOOL', 'UINT8', 'UINT16', 'UINT32', 'INT8', 'INT16', 'INT32', 'INT64', 'FP32', 'FP64', 'BYTES'],
          { error: 'expected a datatype such as BYTES, INT64 or FP32' },
        )
        .default('BYTES')
        .describe('Of its elements; BYTES are texts.'),
      shape: z.array(whole(0)).max(8).optional().describe('Default: one dimension, of as many as there are.'),
      data: z
        .union([scalar, z.array(scalar).max(10_000)], {
          error: 'expected a template, a number, or a list of them',
        })
        .describe('Its elements; a template gives a text, or the number that is written in it.'),
    }),
    z.strictObject({
      datatype: z.literal(['FP32', 'FP64']).default('FP32').describe('Of its elements.'),
      vectors: name.describe('An earlier stage whose vectors it holds, one a row.'),
    }),
    z.strictObject({
      datatype: z.literal('BYTES').default('BYTES').describe('Texts.'),
      shape: z
        .literal(['n', 'n,1'], { error: 'expected n or n,1' })
        .default('n,1')
        .describe('Texts in a row, or each in a row of its own.'),
      texts: expression.describe('A list of texts, or of items with a text.'),
    }),
  ],
  { error: 'expected { datatype, shape, data }, { vectors } or { texts }' },
);

const stage = z
  .strictObject({
    route: name
      .optional()
      .describe('A name under `routes`. Only stages with `first`, `merge` or `rank` have none.'),
    kind: z
      .literal(['chat', 'completions', 'embeddings', 'tensors'], {
        error: 'expected chat, completions, embeddings or tensors',
      })
      .optional()
      .describe('What the route is asked. Default: tensors where `tensors` is set, else chat.'),
    after: z.array(name).default([]).describe('Stages that must have ended.'),
    when: expression
      .optional()
      .describe('The stage is run where this holds, a Jinja expression; where not, its text is empty.'),
    each: expression
      .optional()
      .describe('A list of texts or items: the route is asked once for each, as `item` in the templates.'),
    concurrency: whole(1, 64).optional().describe('With `each`: how many are asked at once. Default: 4.'),
    budget: z
      .union([z.literal('auto'), durationAboveZero], { error: 'expected auto or a duration such as 60ms' })
      .optional()
      .describe(
        'The longest it may take; auto spreads the deadline by measured latencies. Default: what is left of the deadline.',
      ),
    input: z
      .union([template, z.array(template).min(1, 'expected one text or more').max(1024)], {
        error: 'expected a template; for embeddings also a list of them',
      })
      .optional()
      .describe('As a template: one user message, a prompt, or what vectors are wanted of.'),
    inputs: expression
      .optional()
      .describe('For embeddings, instead of `input`: a list of texts, or of items with a text.'),
    messages: z
      .array(
        z.looseObject({
          role: z.string().describe('system, user or assistant.'),
          content: z
            .union([template, z.array(z.unknown())], { error: 'expected a text or a list of parts' })
            .describe('A text, or a list of parts; each text is a template.'),
        }),
      )
      .min(1, 'expected one message or more')
      .optional()
      .describe('A whole chat, instead of `input`.'),
    tensors: z
      .record(name, tensor)
      .optional()
      .describe('For tensors: what the model is given, each under the name of its input.'),
    output: name
      .optional()
      .describe('For tensors: the output that is read. Default: the first of the answer.'),
    labels: z
      .array(text)
      .min(2, 'expected two labels or more')
      .max(10_000)
      .optional()
      .describe('For tensors: what the classes of the output are called, in their order.'),
    classes: z
      .union(
        [
          z.array(text).min(1, 'expected one class or more').max(1000),
          z.record(text, z.array(text).min(1, 'expected one example or more').max(100)),
        ],
        { error: 'expected a list of classes; for embeddings each with a list of examples' },
      )
      .optional()
      .describe(
        'The answer has to be one of these. For embeddings each has examples, and the nearest in meaning is taken.',
      ),
    parameters: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('Further members of what is asked, such as temperature or max_tokens.'),
    first: others.optional().describe('No route: the first of these stages that has a text.'),
    merge: z
      .strictObject({
        of: others.describe('Stages whose items are merged.'),
        by: z
          .literal(['rank', 'score'], { error: 'expected rank or score' })
          .default('rank')
          .describe('Their places in all the lists, or the greatest of their scores.'),
        k: whole(1, 10_000)
          .default(60)
          .describe('By rank: how little the first places weigh more than later ones.'),
        top,
      })
      .optional()
      .describe('No route: one list of the items of several stages, the best first.'),
    rank: z
      .strictObject({
        query: name.describe('A stage of embeddings: its first vector is what is looked for.'),
        of: name.describe('A stage of embeddings: its items are what is looked in.'),
        top,
      })
      .optional()
      .describe('No route: the items of a stage by how near in meaning they are, the nearest first.'),
    onFailure: z
      .union(
        [
          z.literal('skip'),
          z.literal('fail'),
          z.strictObject({ use: z.string().describe('A fixed text stands in.') }),
          z.strictObject({ route: name.describe('Another route is asked.') }),
        ],
        {
          error: 'expected skip, fail, { use } or { route }',
        },
      )
      .default('fail')
      .describe(
        'What a stage without an answer means: `skip` takes it as empty, `fail` fails the pipeline; or something stands in.',
      ),
    stream: z.boolean().default(false).describe('Whether its words may be passed on as they come.'),
  })
  // A stage comes after those that it is made of, whether `after` says so as well or not.
  .transform((settings) => ({
    ...settings,
    after: [...new Set([...settings.after, ...madeOf(settings)])],
  }));

/** The stages that a stage takes what it has from, without a template that names them. */
export function madeOf(stage: {
  first?: string[] | undefined;
  merge?: { of: string[] } | undefined;
  rank?: { query: string; of: string } | undefined;
  tensors?: Record<string, object> | undefined;
}): string[] {
  const { first, merge, rank, tensors } = stage;
  const vectors = Object.values(tensors ?? {}).flatMap((tensor) =>
    'vectors' in tensor ? [String(tensor.vectors)] : [],
  );
  return [...(first ?? []), ...(merge?.of ?? []), ...(rank ? [rank.query, rank.of] : []), ...vectors];
}

export const pipeline = z.strictObject({
  deadline: durationAboveZero.prefault('120s').describe('The whole pipeline.'),
  stages: z
    .record(name, stage)
    .describe('Its steps; the answer is that of the one that no other comes after.'),
});
