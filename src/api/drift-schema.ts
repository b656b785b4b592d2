import { z } from '@hono/zod-openapi';

/** What the management API takes and gives of drift. Times are ISO 8601, UTC. */

const watch = z.object({
  change: z.enum(['distribution', 'nulls', 'type', 'unseen', 'varying', 'constant', 'calibration']),
  evidence: z.number().describe('Against "nothing has changed", as an e-detector.'),
  bar: z.number().describe('What it has to reach for an alarm.'),
});

const feature = z.object({
  feature: z.string(),
  type: z.enum(['numeric', 'categorical', 'vector']),
  state: z
    .enum(['learning', 'watching', 'empty'])
    .describe('empty: the reference has too few values; whether some come is watched.'),
  referenceRows: z.number().int(),
  frozenAt: z.string().nullable(),
  rows: z.number().int().describe('Held against the reference.'),
  watches: z.array(watch),
  small: z.number().int().describe('Changes that were certain, and too small to tell.'),
  window: z
    .record(z.string(), z.number())
    .nullable()
    .describe('The last rows against the reference: effect sizes, and tests for who looks once.'),
});

const quality = z.object({
  labels: z.number().int(),
  referenceLabels: z.number().int(),
  state: z.enum(['learning', 'watching']),
  evidence: z.number(),
  bar: z.number(),
  calibrated: z.boolean().describe('Without it the estimate is not to be believed.'),
  estimate: z
    .object({ quality: z.number(), standardError: z.number(), low: z.number(), high: z.number() })
    .nullable()
    .describe('The share of answers that are right, by their probabilities, and what is usual.'),
  outside: z.boolean(),
  accuracy: z.number().nullable(),
  brier: z.number().nullable(),
  calibrationError: z.number().nullable(),
  calibrationErrorUsual: z
    .number()
    .nullable()
    .describe('What it stays under in 19 of 20 cases while probabilities mean what they say.'),
});

const incident = z.object({
  event: z.string().describe('The alarm: `armature why` tells what follows from it.'),
  at: z.string(),
  state: z.enum(['open', 'confirmed']),
  feature: z.string(),
  change: watch.shape.change,
  direction: z.string(),
  evidence: z.number(),
  bar: z.number(),
  since: z.number().int().describe('Rows before the alarm at which the change began, as far as it shows.'),
  moved: z.number().describe('Part of the values that has moved, 0 to 1.'),
  effect: z.record(z.string(), z.union([z.number(), z.string()])),
  also: z.array(z.object({ feature: z.string(), change: watch.shape.change, direction: z.string() })),
  hook: z
    .object({
      state: z.enum(['running', 'asked', 'failed']),
      attempts: z.number().int(),
      job: z.string().optional(),
      error: z.string().optional(),
    })
    .nullable(),
});

export const driftSchema = z
  .object({
    name: z.string().describe('ROUTE|BACKEND'),
    route: z.string(),
    backend: z.string(),
    model: z.string(),
    rows: z.number().int(),
    incident: incident.nullable(),
    held: z.number().int().describe('Alarms that were not told, as it was too soon after the one before.'),
    features: z.array(feature),
    quality: quality.nullable(),
  })
  .openapi('Drift');
export type DriftView = z.infer<typeof driftSchema>;

export const routeParam = z.object({ route: z.string().min(1).max(200) });

export const refreezeRequest = z.object({
  backend: z.string().min(1).optional().describe('Only this one. Default: each of the route.'),
});

export const refrozenSchema = z.object({ route: z.string(), backends: z.number().int() });

export const labelsRequest = z.object({
  labels: z
    .array(
      z
        .object({
          request: z.string().min(1).max(512).describe("Armature's id of the request, or the caller's own."),
          label: z
            .union([z.string().max(1000), z.number()])
            .optional()
            .describe('What is right.'),
          right: z.boolean().optional().describe('Whether the answer was.'),
        })
        .refine((each) => (each.label === undefined) !== (each.right === undefined), {
          error: 'expected either label or right',
        }),
    )
    .min(1)
    .max(1000),
});

export const labelsTaken = z.object({
  matched: z.number().int(),
  unmatched: z
    .number()
    .int()
    .describe('Of no answer that was observed lately, or of one that has its label.'),
  unusable: z.number().int().describe('Of answers that say no class.'),
});
