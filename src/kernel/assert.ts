/** Stops at once where the program itself is wrong; never used for what callers, engines or files send. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`);
}
