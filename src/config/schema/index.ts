import { z } from 'zod';
import { backend, model } from './backends.ts';
import { batches, files } from './files.ts';
import { pipeline } from './pipelines.ts';
import { preprocessing } from './prepare.ts';
import { registry } from './registry.ts';
import type { release } from './release.ts';
import { route, tenant } from './routes.ts';
import { sessions } from './sessions.ts';
import { address, duration, file, hash, name, size, whole } from './values.ts';

/**
 * The configuration file. This one schema gives the types, the checks, the defaults, the JSON Schema for editors
 * and docs/configuration.md.
 */

const listenerTls = z
  .strictObject({
    cert: file.describe('File with the certificate chain, PEM.'),
    key: file.describe('File with the private key, PEM.'),
  })
  .describe('Serves https instead of http.');

const floor = (share: number, says = 'Its share of tokens, from 0 to 1.') =>
  z
    .number({ error: 'expected a share from 0 to 1' })
    .min(0, 'expected a share from 0 to 1')
    .max(1, 'expected a share from 0 to 1')
    .default(share)
    .describe(says);

const gateway = z.strictObject({
  listen: address
    .prefault('127.0.0.1:7070')
    .describe('Where callers come in. Beyond loopback only with `tenants`.'),
  tls: listenerTls.optional(),
  workers: whole(1, 256).default(1).describe('Processes that serve callers.'),
  bodyBytesMax: size.prefault('8MiB').describe('The largest request body.'),
  bufferBytesMax: size.prefault('512MiB').describe('All bodies and buffers of one worker together.'),
  cacheBytesMax: size
    .prefault('64MiB')
    .describe('Kept answers of one worker together, beside its buffers; see `routes.NAME.cache`.'),
  factsMax: whole(100)
    .default(100_000)
    .describe('Records that wait while control is away; beyond it they become counts.'),
  recordsPerSecondMax: whole(0)
    .default(100)
    .describe(
      'Full decision records a worker keeps per second; above it, one example and a count for each kind.',
    ),
  floors: z
    .strictObject({
      critical: floor(
        1 / 32,
        'Share of places that are kept free for it while it is in use, rounded down; from 0 to 1.',
      ),
      interactive: floor(0.1),
      standard: floor(0.05),
      batch: floor(0.02),
    })
    .prefault({})
    .describe(
      'What each priority is sure of: critical of places, the others of the work that several wait for, 1/64 in any case. The rest goes by priority.',
    ),
  preprocessing,
  drain: duration.prefault('30s').describe('How long running requests may finish after SIGTERM.'),
  drainDelay: duration.prefault('0ms').describe('How long requests are still taken after SIGTERM, unready.'),
});

const admin = z.strictObject({
  listen: address
    .prefault('127.0.0.1:7071')
    .describe('Console, metrics and API. Beyond loopback only with `tokens`.'),
  tls: listenerTls.optional(),
  tokens: z
    .array(
      z.strictObject({
        name: z.string().min(1).describe('Who uses it; named as the actor of what it does.'),
        hash: hash.describe('SHA-256 of the token.'),
        role: z
          .literal(['admin', 'viewer'], { error: 'expected admin or viewer' })
          .describe('A viewer reads; an admin also changes.'),
      }),
    )
    .default([])
    .describe('Who may use this listener, beside the local token in the data directory.'),
});

const store = z.strictObject({
  url: z
    .string()
    .regex(/^(sqlite:.+|postgres(ql)?:\/\/.+)$/, 'expected sqlite:FILE or postgres://...')
    .default('sqlite:state.db')
    .describe('Where keys, events and live changes are kept. A relative path lies in the data directory.'),
  keep: z
    .strictObject({
      age: duration.prefault('30d').describe('Older events are removed.'),
      size: size.prefault('2GiB').describe('Beyond it the oldest events are removed.'),
    })
    .prefault({})
    .describe('How much of the ledger is kept.'),
});

const coordination = z.strictObject({
  url: z
    .string()
    .regex(/^(memory:|rediss?:\/\/.+)$/, 'expected memory: or redis://...')
    .default('memory:')
    .describe('Where what is shared by machines is kept: Valkey or Redis.'),
});

export const settingsSchema = z.strictObject({
  include: z
    .array(z.string())
    .default([])
    .describe('Further files, e.g. conf.d/*.yaml; relative to this one.'),
  gateway: gateway.prefault({}).describe('The listener for callers, and the processes behind it.'),
  admin: admin.prefault({}).describe('The listener for operators.'),
  store: store.prefault({}).describe('What is kept over restarts.'),
  sessions: sessions
    .prefault({})
    .describe('Responses and conversations that are kept: `/v1/responses`, `/v1/conversations`.'),
  coordination: coordination.prefault({}).describe('What several machines share.'),
  files: files.prefault({}).describe('What callers upload, and what batches answer: `/v1/files`.'),
  batches: batches.prefault({}).describe('Requests by the file, at batch priority: `/v1/batches`.'),
  backends: z
    .record(name, backend)
    .default({})
    .describe('The model versions that answer, each on one kind of hardware.'),
  routes: z.record(name, route).default({}).describe('The model names that callers send.'),
  tenants: z
    .record(name, tenant)
    .optional()
    .describe('Who may call. Without it one open tenant exists, on loopback only.'),
  models: z.record(name, model).default({}).describe('Files of models for backends with engine `local`.'),
  pipelines: z.record(name, pipeline).default({}).describe('Steps over routes, called like a route.'),
  registry: registry.prefault({}).describe('Where versions of models are kept.'),
});

/** The configuration as the program reads it: defaults filled in, units as numbers, references resolved. */
export type Settings = z.output<typeof settingsSchema>;
export type BackendSettings = Settings['backends'][string];
export type RemoteBackendSettings = Extract<BackendSettings, { endpoints: string[] }>;
export type LocalBackendSettings = Extract<BackendSettings, { engine: 'local' }>;
export type SimBackendSettings = Extract<BackendSettings, { engine: 'sim' }>;
export type RouteSettings = Settings['routes'][string];
export type ReleaseSettings = z.output<typeof release>;
export type TenantSettings = NonNullable<Settings['tenants']>[string];
export type ModelSettings = Settings['models'][string];
export type RegistrySettings = Settings['registry'];
export type PipelineSettings = Settings['pipelines'][string];
export { OIP_ENGINES, OPENAI_ENGINES } from './backends.ts';
export type { CompareSettings } from './compare.ts';
export { DRIFT_FEATURES } from './drift.ts';
export { release as releaseSchema } from './release.ts';
export type { StressSettings } from './stress.ts';
