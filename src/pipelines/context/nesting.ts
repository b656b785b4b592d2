/** The deepest that anything is written out by a template. */
const DEPTH_MAX = 64;
/** What may be written before the lines of a value, four spaces for each level, in bytes: a few of input make many of them. */
const INDENT_BYTES_MAX = 32 * 1024 * 1024;

/** Whether a value is nested so that a template that writes it out, a member to a line, would make far too much of it. */
export function isTangled(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const left: unknown[] = [value];
  const depths: number[] = [1];
  let indent = 0;
  while (left.length > 0) {
    const depth = depths.pop()!;
    const members = Object.values(left.pop() as object) as unknown[];
    indent += 4 * depth * members.length;
    if (depth > DEPTH_MAX || indent > INDENT_BYTES_MAX) return true;
    for (const member of members) {
      if (typeof member !== 'object' || member === null) continue;
      left.push(member);
      depths.push(depth + 1);
    }
  }
  return false;
}
