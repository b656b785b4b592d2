import { z } from '@hono/zod-openapi';
import { quotaSchema } from './status-schema.ts';

/** What the management API takes and gives. The OpenAPI document at /api/openapi.json is made from these. */

export const errorSchema = z
  .object({
    error: z.object({
      code: z.string(),
      message: z.string(),
      faults: z
        .array(z.string())
        .optional()
        .describe('Each fault of a refused configuration, as a person reads it.'),
    }),
  })
  .openapi('Error');

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 1000;

const limit = z.coerce
  .number({ error: `expected a whole number of 1 to ${LIMIT_MAX}` })
  .int()
  .min(1)
  .max(LIMIT_MAX);

/** `?limit=&after=`; `after` is what `next` of the page before said. */
export const pageQuery = z.object({
  limit: limit.default(LIMIT_DEFAULT),
  after: z.string().optional(),
});

export const eventsQuery = z.object({
  limit: limit.optional().describe('At most so many; without it all of them, as a stream.'),
  after: z.string().optional().describe('Only events after the one with this id.'),
  last: limit.optional().describe('Begins with the newest so many.'),
  type: z.string().optional().describe('Only events of this type, such as endpoint-unwell.'),
  follow: z.enum(['0', '1', 'true', 'false']).optional().describe('1: goes on with what comes.'),
});

export const eventSchema = z
  .object({
    id: z.string(),
    at: z.string().describe('ISO 8601, UTC.'),
    type: z.string().describe('noun-verb'),
    subject: z.string(),
    actor: z.string(),
    causes: z.array(z.string()).describe('Ids of the events it follows from.'),
    data: z.record(z.string(), z.unknown()),
  })
  .openapi('Event');

const originSchema = z
  .object({
    file: z.string().optional(),
    line: z.number().int().optional(),
    column: z.number().int().optional(),
    commit: z.string().optional(),
    author: z.string().optional(),
    date: z.string().optional(),
    actor: z.string().optional(),
    release: z.string().optional(),
    event: z.string().optional(),
  })
  .describe('Where a value comes from: a place in a file, or who changed it live.');

export const whySchema = z
  .object({
    id: z.string(),
    subject: z.string(),
    steps: z.array(
      z.object({
        at: z.string(),
        what: z.string(),
        code: z.string(),
        reason: z.string().describe('The code and its figures, in words.'),
        figures: z.record(z.string(), z.unknown()),
        origin: originSchema.nullish(),
        causes: z.array(z.string()),
      }),
    ),
  })
  .openapi('Why');

export const requestSchema = z.looseObject({ id: z.string() }).openapi('Request', {
  description: 'What was decided for one request, step by step, with what each decision read.',
});

export const routeSchema = z
  .object({
    name: z.string(),
    targets: z.array(z.object({ backend: z.string(), weight: z.number() })),
    ladder: z.array(z.string()),
    deadlineMs: z.number(),
    queueMax: z.number(),
    affinity: z.string(),
    retry: z.object({ attempts: z.number(), budget: z.number() }),
  })
  .openapi('Route');

export const backendSchema = z
  .object({
    name: z.string(),
    engine: z.string(),
    model: z.string(),
    hardware: z.string(),
    tier: z.string().optional(),
    version: z
      .object({
        named: z.string().describe('As the configuration names it.'),
        version: z.string().optional().describe('NAME@NUMBER; absent where it is not there.'),
        alias: z
          .object({ revision: z.number().int(), at: z.string(), ageMs: z.number() })
          .optional()
          .describe('Where it is named by an alias: what that is now, and how long it has been so.'),
      })
      .optional()
      .describe('The version of the registry that it serves.'),
    endpoints: z.array(z.string()),
    limits: z.object({ concurrency: z.number() }),
    timeoutsMs: z.object({ connect: z.number(), firstByte: z.number(), idle: z.number(), total: z.number() }),
  })
  .openapi('Backend');

export const tenantSchema = z
  .object({
    name: z.string(),
    priority: z.string(),
    routes: z.array(z.string()).nullable().describe('null: every one.'),
    limits: z.record(z.string(), z.unknown()),
    left: z.array(quotaSchema.omit({ tenant: true })).describe('What is left of its limits now.'),
    keys: z.number().int().describe('Live keys, those of the file included.'),
  })
  .openapi('Tenant');

export const modelSchema = z
  .object({
    name: z.string(),
    format: z.string(),
    task: z.string().optional(),
    from: z.array(z.unknown()),
    sha256: z.string().optional(),
    backends: z.array(z.string()).describe('Backends that serve it.'),
  })
  .openapi('Model');

export const keySchema = z
  .object({
    id: z.string(),
    tenant: z.string(),
    name: z.string(),
    createdAt: z.string(),
    createdBy: z.string(),
    revokedAt: z.string().optional(),
  })
  .openapi('Key');

export const keyRequestSchema = z
  .strictObject({ tenant: z.string().min(1), name: z.string().max(200).default('') })
  .openapi('KeyRequest');

export const newKeySchema = z
  .object({
    tenant: z.string(),
    id: z.string(),
    key: z.string().describe('Shown this once; only its hash is kept.'),
  })
  .openapi('NewKey');

export const configSchema = z
  .object({
    snapshot: z.number().int(),
    file: z.string(),
    settings: z.record(z.string(), z.unknown()).describe('What runs, secrets masked.'),
    origins: z.record(z.string(), originSchema).describe('By path; a value without one is a default.'),
    overlays: z.array(
      z.object({
        path: z.string(),
        value: z.unknown(),
        actor: z.string(),
        at: z.string(),
        release: z.string().optional(),
        event: z.string(),
      }),
    ),
    notices: z.array(z.object({ path: z.string(), place: z.string(), message: z.string() })),
    restart: z.array(z.string()).describe('Paths whose new values wait for a restart.'),
  })
  .openapi('Configuration');

export const configRequestSchema = z.record(z.string(), z.unknown()).openapi('ConfigurationRequest', {
  description:
    'A part of a configuration, put over the running one: maps are merged by key, everything else is replaced, and null takes back what was changed live.',
  example: { routes: { chat: { deadline: '3s' } } },
});

export const configChangedSchema = z
  .object({
    snapshot: z.number().int(),
    event: z.string(),
    changes: z.array(
      z.object({ path: z.string(), before: z.unknown().optional(), after: z.unknown().optional() }),
    ),
    restart: z.array(z.string()).describe('Paths whose new values wait for a restart.'),
  })
  .openapi('ConfigurationChanged');

export const sessionsQuery = pageQuery.extend({
  tenant: z.string().optional().describe('Only those of this tenant.'),
});

export const sessionSchema = z
  .object({
    id: z.string().describe("The conversation's, or the first response's of a tree."),
    tenant: z.string(),
    turns: z.number().int(),
    updatedAt: z.string().describe('ISO 8601, UTC.'),
    createdAt: z.string(),
    kind: z.enum(['conversation', 'tree']),
  })
  .openapi('Session');

export const sessionInFullSchema = sessionSchema
  .extend({
    metadata: z.record(z.string(), z.string()),
    responses: z.array(
      z.object({
        id: z.string(),
        previous: z.string().nullable().describe('The response that it continues.'),
        at: z.string(),
        status: z.string(),
        backend: z.string().describe('What answered it; empty where no engine did.'),
        model: z.string(),
        request: z.string().describe('The request that it was, for `why`.'),
        input: z.array(z.unknown()),
        response: z.record(z.string(), z.unknown()).describe('As its caller was told it.'),
      }),
    ),
    items: z.array(z.unknown()).describe('Of a conversation: its items in order.'),
  })
  .openapi('SessionInFull');

export const sessionRemovedSchema = z
  .object({ id: z.string(), removed: z.literal(true) })
  .openapi('SessionRemoved');
