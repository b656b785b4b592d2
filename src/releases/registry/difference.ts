/** One thing that two manifests say differently. */
export interface Difference {
  /** Such as `engine.version` or `files.model.safetensors`. */
  path: string;
  before?: unknown;
  after?: unknown;
}

/** Lists of these are told by what names their members, so that order does not count. */
const NAMED_BY: Record<string, (item: Record<string, unknown>) => string> = {
  files: ({ path }) => String(path),
  evaluations: ({ name, metric }) => `${name}/${metric}`,
};

/** What two manifests do not say alike, by path, in the order of their members. */
export function differences(before: unknown, after: unknown, path = ''): Difference[] {
  const [one, other] = [membersOf(before, path), membersOf(after, path)];
  if (!one || !other) {
    if (JSON.stringify(before) === JSON.stringify(after)) return [];
    return [{ path, ...(before !== undefined && { before }), ...(after !== undefined && { after }) }];
  }
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].flatMap((name) =>
    differences(one[name], other[name], path === '' ? name : `${path}.${name}`),
  );
}

function membersOf(value: unknown, path: string): Record<string, unknown> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!Array.isArray(value)) return value as Record<string, unknown>;
  const nameOf = NAMED_BY[path];
  return nameOf && Object.fromEntries(value.map((item) => [nameOf(item as Record<string, unknown>), item]));
}
