import { z } from '@hono/zod-openapi';

const duration = z.string().max(40);
const kind = z.enum(['backend', 'route', 'version']);

const caller = z.object({
  tenant: z.string(),
  requests: z.number().int(),
  lastAt: z.string().describe('ISO 8601.'),
  lastRequest: z.string().optional().describe('The id of the last one that has a record.'),
});

const target = z.object({ backend: z.string(), weight: z.number() });

const askedOf = {
  name: z
    .string()
    .min(1)
    .max(512)
    .describe('A backend, a route, or MODEL@NUMBER; `kind:NAME` where it is not clear.'),
  kind: kind.optional(),
  window: duration.default('30d').describe('How far back callers are looked for in the ledger.'),
};

export const retirementPlanRequest = z.strictObject(askedOf).openapi('RetirementPlanRequest');
export const retirementRequest = z
  .strictObject({
    ...askedOf,
    watch: duration.default('10m').describe('How long nobody may call it until that counts as proven.'),
  })
  .openapi('RetirementRequest');

export const retirementPlanSchema = z
  .object({
    subject: z.object({ kind, name: z.string() }),
    callers: z.array(caller).describe('Tenants that called it, the last one first.'),
    looked: z.object({ since: z.string(), events: z.number().int(), complete: z.boolean() }),
    references: z.array(z.object({ path: z.string(), blocks: z.boolean(), why: z.string() })),
    drains: z.record(z.string(), z.array(target)).describe('Routes whose targets change, as they are now.'),
    keys: z.array(z.object({ id: z.string(), tenant: z.string() })).describe('What the last step revokes.'),
    steps: z.array(z.string()),
    blockers: z.array(z.string()).describe('What has to be done first; empty where it can begin.'),
  })
  .openapi('RetirementPlan');

export const retirementSchema = z
  .object({
    id: z.string().describe('`ret_...`'),
    subject: z.object({ kind, name: z.string() }),
    state: z.enum(['draining', 'watching', 'proven', 'finishing', 'finished', 'undone']),
    startedAt: z.string(),
    startedBy: z.string(),
    watchSeconds: z.number(),
    quietSeconds: z.number().optional().describe('How long nobody has called it; while it is watched.'),
    calls: z.number().int().describe('Requests that came since it was drained.'),
    lastCall: caller.optional(),
    exported: z
      .object({ folder: z.string(), events: z.number().int(), bytes: z.number().int(), sha256: z.string() })
      .optional(),
    finished: z.object({ at: z.string(), keys: z.array(z.string()), archived: z.boolean() }).optional(),
    stuck: z.string().optional().describe('Why it does not go on.'),
    plan: retirementPlanSchema,
    event: z.string().describe('The newest event that tells of it: `why` walks from there.'),
  })
  .openapi('Retirement');

export type RetirementPlanView = z.infer<typeof retirementPlanSchema>;
export type RetirementView = z.infer<typeof retirementSchema>;
