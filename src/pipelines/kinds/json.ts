export type Json = Record<string, unknown>;

/** The object that a body is; undefined for any other body. */
export function parsedObject(body: Buffer): Json | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // no JSON: there is no answer in it
  }
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
