import { z } from 'zod';
import { name, templateFile, tokenizerFile, whole } from './values.ts';

/** What is known of a backend's prompts: how long they may be, and how their tokens are counted. */
export const backendContext = z
  .strictObject({
    window: whole(16)
      .optional()
      .describe(
        "Tokens of prompt and answer together. Default: what the model's GGUF file, the host or the engine says; else no limit is known.",
      ),
    tokenizer: z
      .union(
        [
          z.literal('engine'),
          z.strictObject({ file: tokenizerFile.describe('A tokenizer.json, or a GGUF file.') }),
          z.strictObject({ model: name.describe('A name under `models`.') }),
        ],
        { error: 'expected { file }, { model } or engine' },
      )
      .optional()
      .describe(
        'What counts tokens; `engine` asks the engine itself. Default: the GGUF file of a local model; else tokens are bounded by bytes.',
      ),
    template: templateFile
      .optional()
      .describe(
        'The chat template, in Jinja. Default: that of the GGUF file, or of tokenizer_config.json beside the tokenizer.',
      ),
    reserve: whole(1)
      .optional()
      .describe(
        'Tokens kept for the answer where the caller names no maximum. Default: a quarter of the window, 1024 at most.',
      ),
    imageTokens: whole(0)
      .default(1500)
      .describe('What one image is reckoned at, since no tokenizer counts it.'),
    accepts: z
      .array(z.literal(['tools', 'images', 'json'], { error: 'expected tools, images or json' }))
      .optional()
      .describe('What its model takes beside text; anything else is refused. Default: everything is passed.'),
  })
  .optional()
  .describe('How long prompts may be, and how their tokens are counted. See docs/context.md.');

/** What is done with a conversation that is too long for the model that it is sent to. */
export const routeContext = z
  .strictObject({
    fit: z
      .boolean()
      .default(false)
      .describe(
        'Whether plain chats are made to fit as well. Responses, conversations and stages of pipelines always are.',
      ),
    keep: z
      .strictObject({
        first: whole(0, 1000).default(1).describe('Turns at the beginning that are left out last of all.'),
        last: whole(1, 1000).default(2).describe('Turns at the end that are left out after all before them.'),
      })
      .prefault({})
      .describe(
        'What is kept longest, beside instructions, pinned turns and the last one, which always are.',
      ),
    middle: z
      .union([z.literal('drop'), z.strictObject({ summarise: name.describe('A name under `routes`.') })], {
        error: 'expected drop or { summarise: ROUTE }',
      })
      .default('drop')
      .describe('What becomes of turns that are left out: nothing, or a summary made by another route.'),
    summaryTokensMax: whole(16, 100_000).default(256).describe('The longest summary.'),
    lastTurn: z
      .literal(['whole', 'cut'], { error: 'expected whole or cut' })
      .default('whole')
      .describe(
        'Where the last turn alone is too long: `whole` refuses it, `cut` leaves out the middle of its longest text.',
      ),
  })
  .optional()
  .describe('What is done with a conversation that is too long for the model that it is sent to.');
