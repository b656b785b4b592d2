import { z } from '@hono/zod-openapi';

/** Certificates that two backends mean the same, as the management API takes and gives them. */

const share = z.number().gt(0).lt(0.5);

export const parityRequestSchema = z
  .strictObject({
    reference: z.string().min(1).describe('The backend that is as it should be.'),
    backend: z.string().min(1).describe('The one that is compared with it.'),
    golden: z
      .strictObject({
        name: z.string().min(1).max(500).describe('What it is called, such as the path of its file.'),
        text: z.string().describe('Golden prompts, one JSON object a line: see docs/parity.md.'),
      })
      .describe('What both are asked.'),
    flipsMax: share.default(0.03).describe('The bound of decisions that differ, beyond the floor.'),
    alpha: share.default(0.05).describe('The chance of a false certificate, and of a false rejection.'),
    together: z.number().int().min(1).max(64).default(8).describe('Requests at once, asked in company.'),
    ageMs: z
      .number()
      .int()
      .min(1000)
      .default(30 * 86_400_000)
      .describe('How long a certificate holds, in milliseconds.'),
  })
  .openapi('ParityRequest');

const rate = z.number().nullable();

const figuresSchema = z.object({
  prompts: z.number().int(),
  flips: z.number().int(),
  floorFlips: z.number().int().describe('Prompts on which the reference differs from itself.'),
  flipsRate: rate,
  flipsAtMost: z.number().describe('Upper 95 % bound.'),
  nearTies: z.number().int(),
  certifies: z.number().describe('E-value; enough at 1/alpha.'),
  rejects: z.number(),
  divergence: z.object({ mean: z.number(), p99: z.number() }).nullable().describe('Nats.'),
  variationMean: rate,
  topAgreement: rate,
  parted: z
    .object({ rate: z.number(), atMost: z.number(), exposed: z.number().int(), first: z.number().nullable() })
    .nullable(),
  harm: z
    .object({
      prompts: z.number().int(),
      lost: z.number().int(),
      won: z.number().int(),
      referenceRight: z.number().int(),
      backendRight: z.number().int(),
      p: z.number(),
      lostAtMost: z.number(),
    })
    .nullable(),
  samples: z.object({ mmd2: z.number(), p: z.number(), tokensAlike: z.number() }).nullable(),
  screened: z
    .object({
      prompts: z.number().int(),
      differ: z.number().int().describe('Those that it decided otherwise from one time to another.'),
      nearTies: z.number().int().describe('Those that it decided by a near tie.'),
      leftOut: z.array(z.string()).describe('Both, by name: the first 100.'),
    })
    .nullable()
    .describe(
      'Prompts that the reference was asked before, and that it is not sure of: they are not compared.',
    ),
  skipped: z.record(z.string(), z.number().int()),
  examples: z.array(
    z.object({
      prompt: z.string(),
      reference: z.string(),
      backend: z.string(),
      label: z.string().optional(),
      position: z.number().int().optional(),
      margin: z.number().optional(),
    }),
  ),
});

const fingerprintSchema = z.object({
  settings: z.record(z.string(), z.unknown()),
  told: z.array(z.string()),
  answers: z.array(z.string()).optional(),
});

export const certificateSchema = z
  .object({
    id: z.string().describe('par_...'),
    at: z.string(),
    actor: z.string(),
    reference: z.string(),
    backend: z.string(),
    golden: z.object({ name: z.string(), sha256: z.string(), prompts: z.number().int() }),
    flipsMax: z.number(),
    alpha: z.number(),
    together: z.number().int(),
    state: z.enum(['running', 'ended']),
    verdict: z.enum(['certified', 'rejected', 'undecided']).optional(),
    reason: z.string().optional().describe('A code.'),
    words: z.string().optional().describe('The reason, in words.'),
    figures: figuresSchema,
    fingerprints: z.object({ reference: fingerprintSchema, backend: fingerprintSchema }).optional(),
    until: z.string().optional(),
    expired: z
      .object({ at: z.string(), cause: z.string(), event: z.string(), what: z.string().optional() })
      .optional(),
    event: z.string().optional().describe('For `why`.'),
    endedAt: z.string().optional(),
  })
  .openapi('ParityCertificate');

export const parityMatrixSchema = z
  .object({
    backends: z.array(z.string()),
    cells: z
      .array(
        z.object({
          reference: z.string(),
          backend: z.string(),
          certificate: z.string(),
          standing: z.enum(['certified', 'rejected', 'undecided', 'expired', 'running']),
          golden: z.string(),
          flipsMax: z.number(),
          prompts: z.number().int(),
          flips: z.number().int(),
          floorFlips: z.number().int(),
          flipsAtMost: z.number(),
          at: z.string(),
          newer: z
            .object({
              certificate: z.string(),
              state: z.enum(['running', 'ended']),
              reason: z.string().optional().describe('A code: why it ended without a measurement.'),
              at: z.string(),
            })
            .optional()
            .describe('A comparison that came later, and has measured nothing: it runs, or was broken off.'),
        }),
      )
      .describe(
        'Of each pair that was compared the newest comparison that was measured; the newest where none was.',
      ),
  })
  .openapi('ParityMatrix');

export const parityStoppedSchema = z
  .object({ id: z.string(), stopped: z.boolean().describe('False: it did not run.') })
  .openapi('ParityStopped');
