import type { z } from '@hono/zod-openapi';
import { formatPath, type Path } from '../config/places.ts';
import { ApiFault } from './contracts.ts';

/** What was asked cannot be read: every fault with its place, such as `plan[0]: expected a percentage`, in one line. */
export function unreadable(error: z.ZodError): ApiFault {
  const faults = error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${formatPath(path as Path)}: ${message}`,
  );
  return new ApiFault(400, 'invalid_request', faults.join('; '), faults);
}
