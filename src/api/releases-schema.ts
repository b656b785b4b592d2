import { z } from '@hono/zod-openapi';
import { pageQuery } from './schemas.ts';

/** What the management API takes and gives of releases. Times are ISO 8601, UTC, or milliseconds where their names say so. */

const reason = z.object({ code: z.string(), figures: z.record(z.string(), z.unknown()), words: z.string() });

const target = z.object({ backend: z.string(), weight: z.number() });

const metric = z.object({
  metric: z.string(),
  abort: z.number().describe('Evidence of harm, as an e-value.'),
  abortAt: z.number().describe('What it has to reach for an abort.'),
  certificate: z.number().describe('Evidence that there is no harm, as an e-value.'),
  certifyAt: z.number(),
  certified: z.boolean(),
  canary: z
    .number()
    .describe('Sessions of the canary that were marked (failed, slow, dear); pairs, for quality.'),
  others: z.number().describe('The same of what it is compared with.'),
});

const arm = z.looseObject({
  requests: z.number(),
  failed: z.number(),
  tokensIn: z.number(),
  tokensOut: z.number(),
  cost: z.number(),
  times: z
    .record(
      z.string(),
      z.object({
        count: z.number(),
        p50: z.number(),
        p95: z.number(),
        p99: z.number(),
        within: z.number().describe('How far the shares below these percentiles may be off, 0 to 1.'),
      }),
    )
    .describe('Milliseconds, by size class of the request.'),
});

export const releaseSchema = z
  .object({
    id: z.string(),
    route: z.string(),
    to: z.string().describe('The backend that the route is moved to.'),
    baseline: z.string().optional(),
    state: z
      .enum(['running', 'promoted', 'rolled-back'])
      .describe('running: under way, also while a promoted backend is watched.'),
    phase: z.enum(['gates', 'shadow', 'canary', 'promoted', 'rolled-back']),
    step: z.number().int().describe('Of the plan, from 1; 0 before the first.'),
    steps: z.number().int(),
    share: z.number().describe('Of the sessions that the canary answers, 0 to 1.'),
    plan: z.union([z.literal('auto'), z.array(z.number())]).describe('Percent of the sessions.'),
    captured: z.array(target).describe('The targets that a rollback restores.'),
    startedAt: z.string(),
    startedBy: z.string(),
    endedAt: z.string().optional(),
    phaseEndsAt: z.string().optional().describe('When the phase is rolled back unless it has ended.'),
    endsAt: z.string().optional().describe('When all of it is.'),
    watchedUntil: z.string().optional().describe('A promoted backend can be gone back from until then.'),
    waitsFor: reason.optional(),
    last: reason.optional().describe('What was done last, and why.'),
    left: z
      .string()
      .optional()
      .describe('Rolled back, and why the targets of the file stay, not those that it began with.'),
    stuck: z.string().optional().describe('What keeps it from doing what is decided.'),
    overtaken: z
      .boolean()
      .describe('The file was edited at these targets: its weights are not in force, and nothing is tested.'),
    metrics: z.array(metric),
    assignment: z.object({ e: z.number(), frozenAt: z.number(), canary: z.number(), baseline: z.number() }),
    arms: z.object({ canary: arm, baseline: arm, stable: arm }),
    sessions: z.object({ step: z.number(), all: z.number() }),
    pairs: z.number(),
    skipped: z.record(z.string(), z.number()),
    gates: z.record(z.string(), z.enum(['open', 'passed', 'failed'])),
    stableBroken: z.boolean().describe('Stable fails so often that the canary is judged by absolute bounds.'),
    event: z.string().describe('The newest event that tells of it, for `why`.'),
  })
  .openapi('Release');

export type ReleaseView = z.infer<typeof releaseSchema>;

export const releaseRequest = z
  .looseObject({
    route: z.string().min(1),
    to: z.string().min(1).describe('The backend that the route is to move to.'),
  })
  .openapi('ReleaseRequest', {
    description:
      'Beside `route` and `to` whatever `routes.ROUTE.release` has, as it is written there; what is absent is as there.',
    example: { route: 'chat', to: 'llama-next', plan: [5, 50, 100], deadline: '6h' },
  });

export const releaseOutcome = z
  .object({
    release: releaseSchema.nullable(),
    done: z.boolean().describe('False where nothing was in progress, or it could not be carried out yet.'),
    message: z.string(),
  })
  .openapi('ReleaseOutcome');

export type ReleaseOutcome = z.infer<typeof releaseOutcome>;

export const releasesQuery = pageQuery.extend({
  route: z.string().optional().describe('Only those of this route.'),
});

const armCount = z.object({ requests: z.number(), failed: z.number() });

export const evidencePoint = z
  .object({
    event: z.string(),
    at: z.string(),
    worker: z.number().int(),
    snapshot: z.number().int(),
    share: z.number(),
    arms: z.object({ canary: armCount, baseline: armCount, stable: armCount }),
    pairs: z.number().int(),
  })
  .openapi('ReleaseEvidence');

export type EvidencePoint = z.infer<typeof evidencePoint>;
