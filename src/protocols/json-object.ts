export type Json = Record<string, unknown>;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object that a body is; undefined for any other body. */
export function parsedObject(body: Buffer | string): Json | undefined {
  try {
    const value: unknown = JSON.parse(String(body));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // no JSON: there is no object in it
  }
}

/** As a member of its own, whatever its name. */
export function setMember(target: Json, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}
