import type { Store } from '../../store/contracts.ts';
import { RELEASE_KIND, type ReleaseDocument } from './contracts.ts';

const SUBJECT = 'release:';

/**
 * The event by which a release told last what became of it, where that is the subject: workers tell what they saw also when it is
 * over, and more of that may have come since than a chain of causes begins with.
 */
export async function newestOfRelease(
  { documents }: Pick<Store, 'documents'>,
  subject: string,
): Promise<string[]> {
  if (!subject.startsWith(SUBJECT)) return [];
  const found = await documents.get(RELEASE_KIND, subject.slice(SUBJECT.length));
  return found ? [(found.body as ReleaseDocument).newest] : [];
}
