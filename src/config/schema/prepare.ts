import { z } from 'zod';
import { duration, name, tokenizerFile, whole } from './values.ts';

/** Names that models of texts give their inputs. */
const TEXT_INPUTS = ['input_ids', 'attention_mask', 'token_type_ids'] as const;

/** Texts become tokens here, before they go to an engine. */
export const prepare = z
  .strictObject({
    to: z
      .literal(['ids', 'tensors'], { error: 'expected ids or tensors' })
      .default('ids')
      .describe(
        "What engines get instead of texts: token ids on OpenAI's API (embeddings, completions), or tensors on the Open Inference Protocol.",
      ),
    tokenizer: z
      .union(
        [
          z.strictObject({ file: tokenizerFile.describe('A tokenizer.json.') }),
          z.strictObject({ model: name.describe('A name under `models`.') }),
        ],
        { error: 'expected { file } or { model }' },
      )
      .optional()
      .describe('The tokenizer of all its targets. Default: that of a local target, or of `context`.'),
    tokensMax: whole(1, 1_000_000)
      .default(512)
      .describe('The longest text, in tokens, what the tokenizer puts around it included.'),
    overlong: z
      .literal(['refuse', 'cut'], { error: 'expected refuse or cut' })
      .default('refuse')
      .describe('A longer text is refused with 400, or cut at its end.'),
    delay: duration.prefault('5ms').describe('How long a text waits for others of like length.'),
    batchTokensMax: whole(1, 1_000_000)
      .default(1024)
      .describe(
        'Tokens that go upstream together, padding included; it bounds what the engine needs for them.',
      ),
    rowsMax: whole(1, 4096).default(32).describe('Texts that go upstream together.'),
    inflightMax: whole(1, 4096)
      .default(4)
      .describe(
        'Such batches at once for each endpoint; others wait in the gateway, until half of their time is gone.',
      ),
    acrossTenants: z.boolean().default(false).describe('Whether texts of several tenants go together.'),
    tensors: z
      .strictObject({
        inputs: z
          .array(z.literal(TEXT_INPUTS, { error: `expected ${TEXT_INPUTS.join(', ')}` }))
          .min(1)
          .default([...TEXT_INPUTS])
          .describe('What the model is given.'),
        datatype: z
          .literal(['INT64', 'INT32'], { error: 'expected INT64 or INT32' })
          .default('INT64')
          .describe('The type of their elements.'),
        output: z
          .string()
          .min(1)
          .optional()
          .describe('The output that is asked for. Default: the first one.'),
        pooling: z
          .literal(['mean', 'cls'], { error: 'expected mean or cls' })
          .default('mean')
          .describe(
            'How vectors of tokens become one of the text, where the model gives one for each token.',
          ),
        normalise: z
          .boolean()
          .default(true)
          .describe('Whether vectors of embeddings are scaled to length 1.'),
      })
      .prefault({})
      .describe('Of `to: tensors`.'),
  })
  .describe('Texts become tokens in threads of the gateway, and go upstream in batches of like length.');

export const preprocessing = z
  .strictObject({
    threads: whole(1, 64).default(1).describe('Threads of one worker that make tokens of texts.'),
    queueMax: whole(1, 1_000_000)
      .default(8192)
      .describe('Texts that may wait for them; one request with more is taken where nothing else waits.'),
  })
  .prefault({})
  .describe('Where texts become tokens, apart from the requests and from the models.');
