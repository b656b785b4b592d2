import { z } from '@hono/zod-openapi';
import { ADDITION_KEY, ADDITION_KEY_SAYS } from '../releases/registry/reference.ts';
import { pageQuery } from './schemas.ts';

/** What the management API takes and gives of the registry and of decisions about stacks. */

const text = z.string().max(300);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 lower-case hexadecimal digits');

export const modelParam = z.object({ name: text });
export const versionParam = modelParam.extend({ number: text.describe('A whole number.') });
export const aliasParam = modelParam.extend({ alias: text });
export const artifactParam = z.object({ sha256: text.describe('64 hexadecimal digits.') });
export const pieceQuery = z.object({
  at: z.coerce.number().int().min(0).describe('Where the piece begins: the number of bytes that are there.'),
});
export const differenceQuery = z.object({
  to: text.optional().describe('The other version: NAME@NUMBER or NAME@ALIAS.'),
});
export const expectQuery = z.object({
  expect: z.coerce.number().int().min(1).optional().describe('The version that it must lead to now.'),
});
export { pageQuery };

export const aliasSchema = z
  .object({
    alias: z.string(),
    model: z.string(),
    number: z.number().int(),
    version: z.string().describe('NAME@NUMBER'),
    revision: z.number().int().describe('1 at first, and one more with each move.'),
    at: z.string().describe('ISO 8601 of its last move.'),
    ageMs: z.number().describe('How long ago that was, as the store had it when this was asked.'),
    actor: z.string(),
    event: z.string(),
  })
  .openapi('Alias');

export const aliasInFullSchema = aliasSchema
  .extend({
    history: z
      .array(
        z.object({
          revision: z.number().int(),
          number: z.number().int().nullable().describe('null: it was taken away.'),
          at: z.string(),
          actor: z.string(),
          event: z.string(),
        }),
      )
      .describe('Newest first, `limit` of them; `after` is a revision.'),
    next: z.string().nullable(),
  })
  .openapi('AliasInFull');

export const registeredModelSchema = z
  .object({
    name: z.string(),
    versions: z.number().int().describe('How many there are, archived ones included.'),
    newest: z.number().int().nullable(),
    aliases: z.number().int(),
  })
  .openapi('RegisteredModel');

export const versionSchema = z
  .object({
    version: z.string().describe('NAME@NUMBER'),
    model: z.string(),
    number: z.number().int(),
    state: z.enum(['live', 'archived']),
    sealedAt: z.string().describe('ISO 8601, UTC.'),
    actor: z.string(),
    event: z.string(),
    digest: z.string().describe('SHA-256 of the manifest.'),
    bytes: z.number().describe('Of all files together.'),
    aliases: z.array(z.string()),
    manifest: z
      .record(z.string(), z.unknown())
      .describe('What its maker says and what was found in the files.'),
    missing: z.array(z.string()).describe('What the manifest could tell and does not.'),
  })
  .openapi('ModelVersion');

export const versionInFullSchema = versionSchema
  .extend({ users: z.array(z.string()).describe('Who uses it: it is not removed before.') })
  .openapi('ModelVersionInFull');

export const registeredInFullSchema = z
  .object({
    name: z.string(),
    aliases: z.array(aliasSchema),
    data: z.array(versionSchema).describe('Newest first.'),
    next: z.string().nullable().describe('`after` of the next page; null on the last.'),
  })
  .openapi('RegisteredModelInFull');

export const versionRequest = z
  .strictObject({
    manifest: z.record(z.string(), z.unknown(), {
      error: 'expected a map of what the version is, "training" at least',
    }),
    files: z
      .array(z.strictObject({ path: z.string().min(1).max(500), sha256 }))
      .min(1)
      .max(10_000),
    allowPickle: z.boolean().default(false).describe('Said aloud, and recorded: pickles may be in it.'),
    once: z
      .string()
      .regex(ADDITION_KEY, ADDITION_KEY_SAYS)
      .optional()
      .describe(
        'A key for it to be sealed once: asked again for the same by the same key, the version that it made is given.',
      ),
  })
  .openapi('ModelVersionRequest');

export const aliasRequest = z
  .strictObject({
    version: z.number().int().min(1),
    expect: z
      .number()
      .int()
      .min(1)
      .nullable()
      .optional()
      .describe('What it must lead to now; null: it must not be there. Absent: whatever it is.'),
  })
  .openapi('AliasRequest');

export const removedSchema = z.object({ removed: z.literal(true) }).openapi('Removed');

export const versionRemovedSchema = z
  .object({ version: z.string(), removed: z.literal(true), event: z.string() })
  .openapi('ModelVersionRemoved');

export const differenceSchema = z
  .object({
    before: z.string(),
    after: z.string(),
    differences: z.array(
      z.object({ path: z.string(), before: z.unknown().optional(), after: z.unknown().optional() }),
    ),
  })
  .openapi('ManifestDifference');

export const contentSchema = z
  .object({
    sha256: z.string(),
    bytes: z.number().describe('How many are there.'),
    kept: z.boolean().describe('Whole, hashed and looked at: a version may have it.'),
  })
  .openapi('Content');

export const stepSchema = z
  .looseObject({ type: z.enum(['progress', 'done', 'failed']) })
  .openapi('RegistryStep', {
    description:
      'One line: `progress` with what, bytes and total; at last `done` with what came of it, or `failed` with a code and a message.',
  });

const evidence = z.union([
  z.strictObject({
    kind: z.literal('id'),
    id: z
      .string()
      .regex(/^[a-z]+_[0-9a-z]+$/)
      .max(100),
  }),
  z.strictObject({ kind: z.literal('url'), url: z.url().max(2000) }),
  z.strictObject({
    kind: z.literal('file'),
    name: z.string().min(1).max(500),
    sha256,
    bytes: z.number().int().min(0),
    content: z.unknown().optional(),
  }),
]);

export const decisionRequest = z
  .strictObject({
    engine: z.string().min(1).max(200),
    hardware: z.string().min(1).max(200),
    version: z.string().min(1).max(200),
    for: z
      .array(z.string().min(1).max(300))
      .min(1)
      .max(50)
      .describe('NAME, or route:NAME, backend:NAME, model:NAME.'),
    why: z.string().min(1).max(10_000),
    evidence: z.array(evidence).max(50).default([]),
    by: z.string().min(1).max(200),
  })
  .openapi('DecisionRequest');

export const decisionSchema = z
  .object({
    id: z.string(),
    engine: z.string(),
    hardware: z.string(),
    version: z.string(),
    for: z.array(z.string()),
    why: z.string(),
    evidence: z.array(evidence),
    by: z.string(),
    actor: z.string(),
    at: z.string(),
    event: z.string(),
  })
  .openapi('Decision');
