import { z } from '@hono/zod-openapi';

/** What `GET /api/v1/status` and `armature status --json` give. Times are milliseconds unless they say otherwise. */

const endpoint = z.object({
  endpoint: z.string().describe('Its address.'),
  state: z
    .enum(['well', 'cooling', 'open', 'half-open', 'unwell', 'unknown'])
    .describe('The worst that a worker or a probe says; unknown where nobody has said anything yet.'),
  probe: z.enum(['well', 'unwell', 'unknown']).describe('What probes alone say.'),
  inflight: z.number().int().describe('Requests there now, of all workers.'),
  limit: z.number().describe('Requests that may be there at once, of all workers.'),
  forMs: z.number().optional().describe('Until it may be tried again, where it may not now.'),
  engine: z
    .object({
      waiting: z.number().optional().describe('Requests that wait inside the engine.'),
      running: z.number().optional().describe('Requests that it works on.'),
      cacheUsed: z.number().optional().describe('Share of its cache in use, 0 to 1.'),
      ageMs: z.number().describe('Since this was read.'),
      stale: z.boolean().describe('Too old: it is not gone by.'),
    })
    .optional()
    .describe('What the engine tells of its own load, whoever sent it; absent where it was never read.'),
});

const host = z.object({
  backend: z.string(),
  state: z
    .enum(['serving', 'starting', 'idle', 'down'])
    .describe(
      'idle: stopped as nobody asks for it, and woken by the next request. down: no process is there.',
    ),
  note: z.string().describe('What it is doing, in words, while it starts.'),
  pid: z.number().int().optional(),
  startingMs: z
    .number()
    .optional()
    .describe('Since its start began; below 0 where it waits to be started again.'),
  expectedMs: z.number().optional().describe('What its starts take, as measured.'),
});

const notice = z.object({
  path: z.string(),
  place: z.string().describe('FILE:LINE:COLUMN'),
  message: z.string(),
});

export const quotaSchema = z.object({
  tenant: z.string(),
  route: z.string().nullable().describe('null: all its routes together.'),
  kind: z.enum(['requests', 'tokens', 'concurrency']),
  max: z.number().describe('The most at once.'),
  left: z.number().describe('What may be used now; below 0 where more was used than there was.'),
  fullMs: z.number().optional().describe('Of a rate: until all is there again.'),
});

export const statusSchema = z
  .object({
    at: z.string().describe('ISO 8601.'),
    trouble: z
      .array(z.object({ what: z.string(), subject: z.string(), message: z.string() }))
      .describe('What is wrong now, the worst first; empty when all is well.'),
    snapshot: z.object({
      number: z.number().int(),
      event: z.string().describe('The event that published it.'),
      at: z.string(),
    }),
    configuration: z.object({
      file: z.string(),
      gateway: z.string().describe('Where callers come in.'),
      admin: z.string(),
      overlays: z.array(
        z.object({ path: z.string(), value: z.unknown(), actor: z.string(), at: z.string() }),
      ),
      notices: z.array(notice).describe('What has no effect yet, or looks wrong.'),
      refused: z
        .object({ at: z.string(), event: z.string(), faults: z.array(z.string()) })
        .optional()
        .describe('A change that was refused since the running configuration took effect.'),
      restart: z.array(z.string()).describe('Paths whose new values wait for a restart.'),
    }),
    workers: z.array(
      z.object({
        part: z.string(),
        worker: z.number().int(),
        pid: z.number().int().optional(),
        state: z.enum(['serving', 'draining', 'silent', 'down']),
        snapshot: z.number().int().optional(),
        inflight: z.number().int(),
        factsWaiting: z.number().int(),
      }),
    ),
    routes: z.array(
      z.object({
        route: z.string(),
        ready: z.boolean().describe('Whether an endpoint or rung can answer it.'),
        retired: z.literal(true).optional().describe('It is retired, and answers nobody any more.'),
        waiting: z.number().int(),
        targets: z.array(z.object({ backend: z.string(), weight: z.number() })),
        ladder: z.array(z.string()),
      }),
    ),
    releases: z
      .array(
        z.object({
          id: z.string(),
          route: z.string(),
          to: z.string(),
          phase: z.string(),
          step: z.number().int(),
          steps: z.number().int(),
          share: z.number().describe('Of the sessions, 0 to 1.'),
          waitsFor: z.string().optional().describe('In words.'),
          stuck: z.string().optional().describe('What keeps it from doing what is decided.'),
        }),
      )
      .describe('Those under way.'),
    pipelines: z.array(
      z.object({
        pipeline: z.string(),
        ready: z.boolean().describe('Whether each stage has a route that can answer, or a way out.'),
        stages: z.array(z.string()),
      }),
    ),
    backends: z.array(
      z.object({
        backend: z.string(),
        engine: z.string(),
        model: z.string(),
        hardware: z.string(),
        tier: z.string().optional(),
        endpoints: z.array(endpoint),
        host: host.optional(),
      }),
    ),
    quotas: z.array(quotaSchema).describe('What tenants are held to.'),
    ledger: z.object({
      events: z.number().int(),
      bytes: z.number().int(),
      oldest: z.string().optional(),
    }),
  })
  .openapi('Status');

export type Status = z.infer<typeof statusSchema>;
