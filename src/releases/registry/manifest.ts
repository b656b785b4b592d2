import { z } from 'zod';
import { WEIGHTS_FORMATS } from './formats/contracts.ts';
import { REFERENCE } from './reference.ts';

/** What its maker says of a version, and what was found in its files. */

const text = (max = 1000) => z.string().min(1).max(max);
const sha256 = z
  .string()
  .regex(/^(sha256:)?[0-9a-f]{64}$/, 'expected a SHA-256: 64 lower-case hexadecimal digits')
  .transform((value) => value.replace('sha256:', ''));
const settings = z.record(text(200), z.unknown()).refine((value) => JSON.stringify(value).length <= 100_000, {
  error: 'expected 100,000 characters of JSON at most',
});
const versions = z
  .record(text(200), text(200))
  .refine((value) => Object.keys(value).length <= 2000, { error: 'expected 2,000 entries at most' });
/** Where a file lies in its version: whoever lays it out must not be led elsewhere, nor a terminal that shows it. */
export const FILE_PATH = /^(?!.*(^|\/)\.\.?(\/|$))[^/\\\p{Cc}][^\\\p{Cc}]*$/u;
const path = z
  .string()
  .max(500)
  .regex(FILE_PATH, 'expected a relative path with slashes, without . and .. and control characters in it');

const REBUILT_BY = ['commit', 'image', 'lockFile', 'seed', 'hardware', 'command', 'data'] as const;

const TRAINING_WANTED =
  'expected all of commit, image, lockFile, seed, hardware, command and data, for it to be rebuilt, or { unknown: WHY } alone';

/** All that it takes to rebuild it, or why that cannot be told: never a part of it. */
const training = z
  .strictObject(
    {
      commit: text(200).optional().describe('Commit of the code that trained it.'),
      image: text().optional().describe('Image that it ran in, by digest.'),
      lockFile: sha256.optional().describe('SHA-256 of the lock file of its packages.'),
      seed: z
        .union([z.int(), text(200)], { error: 'expected a whole number or a text' })
        .optional()
        .describe('Seed of its randomness.'),
      hardware: text().optional().describe('What it ran on, and how many.'),
      command: text(10_000).optional().describe('The command, with its arguments.'),
      data: text().optional().describe('Which data, by a reference that stays.'),
      more: settings.optional().describe('Whatever else is worth telling.'),
      unknown: text().optional().describe('Why it cannot be told, such as where the model was taken from.'),
    },
    { error: ({ code }) => (code === 'invalid_type' ? TRAINING_WANTED : undefined) },
  )
  .refine(
    (told) =>
      told.unknown === undefined
        ? REBUILT_BY.every((key) => told[key] !== undefined)
        : Object.keys(told).length === 1,
    { error: TRAINING_WANTED },
  );

/** As it is written, YAML or JSON. */
export const manifestSchema = z.strictObject({
  description: text(10_000).optional(),
  licence: text(200).optional(),
  files: z
    .array(z.strictObject({ path, sha256, bytes: z.int().min(0).optional() }))
    .max(10_000)
    .optional()
    .describe('What the files must be; each that is named must be there.'),
  format: z.literal(WEIGHTS_FORMATS).optional().describe('Format of the weights.'),
  precision: text(100).optional().describe('Such as bf16, int8 or q4_k_m.'),
  tokenizer: sha256.optional().describe('SHA-256 of the tokenizer.'),
  template: sha256.optional().describe('SHA-256 of the chat template.'),
  engine: z
    .strictObject({
      name: text(100),
      version: text(100),
      settings: settings.optional(),
      image: z
        .string()
        .regex(/@?sha256:[0-9a-f]{64}$/, 'expected a digest: NAME@sha256:...')
        .optional(),
    })
    .optional()
    .describe('What serves it, and how.'),
  driver: text(200).optional().describe('Driver of the accelerator.'),
  libraries: versions.optional().describe('Libraries that it is served with, and their versions.'),
  training: training.describe('The environment that it was trained in, complete enough to rebuild.'),
  data: z.strictObject({ reference: text(), sha256: sha256.optional() }).optional(),
  evaluations: z
    .array(
      z.strictObject({
        name: text(200),
        metric: text(200),
        value: z.number(),
        data: text().optional(),
        at: text(100).optional(),
        more: settings.optional(),
      }),
    )
    .max(1000)
    .optional(),
  score: z
    .strictObject({
      output: text(200).describe('Name of the output that is the score.'),
      index: z.int().min(0).optional().describe('Which of its values, where it has several.'),
    })
    .optional(),
  decisions: z
    .array(z.string().regex(/^dec_[0-9a-z]+$/, 'expected dec_...'))
    .max(100)
    .optional(),
  lineage: z
    .strictObject({
      parent: z.string().regex(REFERENCE, 'expected NAME@NUMBER').optional(),
      job: text().optional().describe('The job that made it.'),
      alarm: z
        .string()
        .regex(/^ev_[0-9a-z]+$/, 'expected ev_...')
        .optional()
        .describe('The event of the drift that it answers; the ledger may have let go of it by now.'),
    })
    .optional(),
});

export type ManifestInput = z.output<typeof manifestSchema>;

/** What is kept: what its maker said, with what was found. */
export interface Manifest extends Omit<ManifestInput, 'files'> {
  files: ManifestFile[];
  /** Numbers in the weights, of each kind. */
  numbers?: Record<string, number>;
  inputs?: string[];
  outputs?: string[];
  told?: Record<string, string | number | boolean>;
  /** Somebody said aloud that pickles may be in it. */
  pickles?: { allowedBy: string; files: string[] };
}

export interface ManifestFile {
  path: string;
  sha256: string;
  bytes: number;
  format: string;
  role: 'weights' | 'tokenizer' | 'template' | 'other';
}

/** What a manifest may say, in the order in which a reader wants it; what is missing is told by these names. */
const WORTH_TELLING = [
  'description',
  'licence',
  'tokenizer',
  'template',
  'engine',
  'driver',
  'libraries',
  'data',
  'evaluations',
  'score',
  'decisions',
  'lineage',
] as const;

export function missingIn(manifest: Manifest): string[] {
  const untold = WORTH_TELLING.filter((key) => manifest[key] === undefined) as string[];
  if (manifest.engine && manifest.engine.image === undefined) untold.push('engine.image');
  if (manifest.engine && manifest.engine.settings === undefined) untold.push('engine.settings');
  if (manifest.training.unknown !== undefined) untold.push('training');
  return untold;
}
