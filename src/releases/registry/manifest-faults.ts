import { explain } from '../../config/explain.ts';
import type { Fault } from '../../config/faults.ts';
import { isMap } from '../../config/shape.ts';
import { Sources } from '../../config/sources.ts';
import { type ManifestInput, manifestSchema } from './manifest.ts';

/**
 * Reads what a manifest says, or tells every fault of it: where it stands in its file where `sources` know one, what was
 * expected, and what was probably meant.
 */
export function readManifest(
  document: unknown,
  sources = new Sources('the manifest'),
): { manifest: ManifestInput; faults: [] } | { manifest: undefined; faults: Fault[] } {
  const read = manifestSchema.safeParse(document);
  if (read.success) return { manifest: read.data, faults: [] };
  const drafts = isMap(document)
    ? read.error.issues.flatMap((issue) => explain(issue, { schema: manifestSchema, document, sources }))
    : [noMap(document)];
  return { manifest: undefined, faults: drafts.map((draft) => sources.fault(draft)) };
}

function noMap(document: unknown) {
  const found = document == null ? 'nothing' : Array.isArray(document) ? 'a list' : 'a single value';
  const expected = 'a map of what the version is, "training" at least';
  return {
    code: 'bad-value' as const,
    path: [],
    at: 'value' as const,
    message: `expected ${expected}, found ${found}`,
    expected,
    found,
  };
}
