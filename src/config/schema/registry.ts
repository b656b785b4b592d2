import { z } from 'zod';
import { secret, url } from './values.ts';

const place = (standard: string) =>
  z
    .string()
    .regex(
      /^(file:.+|s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[A-Za-z0-9!_.*'()/-]*)?)$/,
      'expected file:DIRECTORY or s3://BUCKET/PREFIX',
    )
    .default(standard);

export const registry = z.strictObject({
  store: place('file:artifacts').describe(
    'Where files of model versions are kept: file:DIRECTORY, in the data directory where it is relative, or s3://BUCKET/PREFIX.',
  ),
  archive: place('file:archive').describe('Where files of archived versions are kept, compressed.'),
  s3: z
    .strictObject({
      endpoint: url.describe('Of the storage, without the bucket; the bucket is asked for in the path.'),
      region: z.string().min(1).default('us-east-1').describe('What requests are signed for.'),
      accessKeyId: secret.describe('Who asks.'),
      secretAccessKey: secret.describe('What requests are signed with.'),
    })
    .optional()
    .describe('The S3-style storage that `store` or `archive` name.'),
});

/** Of a backend: `NAME@3` or `NAME@production`. */
export const version = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}@([1-9]\d{0,8}|[A-Za-z][A-Za-z0-9._-]{0,63})$/,
    'expected NAME@NUMBER or NAME@ALIAS, such as fraud@3 or fraud@production',
  )
  .optional()
  .describe('The version of the registry that it serves: NAME@NUMBER, or NAME@ALIAS.');
