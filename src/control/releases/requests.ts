import { unreadable } from '../../api/contracts.ts';
import { releaseSchema } from '../../config/schema/index.ts';
import type { ReleaseAsked } from './service.ts';

/** Reads what is asked for, settings as they are written in a file; throws an ApiFault with all faults. */
export function readAsked({
  route,
  to,
  ...given
}: {
  route: string;
  to: string;
  [key: string]: unknown;
}): ReleaseAsked {
  const asked = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const read = releaseSchema.safeParse(asked);
  if (!read.success) throw unreadable(read.error);
  const settings = Object.entries(read.data).filter(([key]) => Object.hasOwn(asked, key));
  return { route, to, settings: Object.fromEntries(settings) };
}
