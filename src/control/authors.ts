import type { Blamer } from '../config/blame.ts';
import type { StoredOrigin } from '../store/contracts.ts';

/** Adds to every origin in a file the commit that its line comes from. Lines that are not committed stay as they are. */
export async function withAuthors(
  origins: Record<string, StoredOrigin>,
  blamer: Blamer,
): Promise<Record<string, StoredOrigin>> {
  const authored = Object.entries(origins).map(async ([path, origin]) => {
    const { file, line } = origin;
    const blame = file === undefined || line === undefined ? undefined : await blamer.blame(file, line);
    return [path, blame ? { ...origin, ...blame } : origin] as const;
  });
  return Object.fromEntries(await Promise.all(authored));
}
