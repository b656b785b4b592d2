import { z } from 'zod';
import { duration, size, whole } from './values.ts';

export const files = z.strictObject({
  bytesMax: size.prefault('200MiB').describe('The largest file that may be uploaded.'),
  tenantBytesMax: size.prefault('10GiB').describe('All files of one tenant together.'),
  totalBytesMax: size.prefault('50GiB').describe('All files together.'),
});

export const batches = z.strictObject({
  linesMax: whole(1, 1_000_000)
    .default(50_000)
    .describe('The most requests that the file of one batch may have.'),
  keep: duration.prefault('30d').describe('How long a batch that is over can be asked for; its files stay.'),
});
