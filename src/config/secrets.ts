import { MASK, maskCredentials } from './masking.ts';
import { formatPath, type Path, type Places } from './places.ts';
import { isReference } from './references.ts';
import { mapLeaves, marked, type Schema } from './shape.ts';

/** Paths of values that are not shown, such as `backends.b.auth.bearer`, and what is shown in their place. */
export type Secrets = Record<string, string>;

/**
 * Finds the secrets of a document: what the schema marks, credentials inside addresses, and everything that came
 * through a reference. Of the last the reference is shown, so that a reader sees where the value comes from.
 */
export function findSecrets(schema: Schema, document: unknown, places: Places): Secrets {
  const secrets: Secrets = {};
  mapLeaves(schema, document, (value, own, path) => {
    const secret = own !== undefined && marked(own, 'secret') === true;
    const written = places.get(path)?.written;
    const text = written ?? String(value);
    // What is written out beside a reference may be a part of the secret.
    const shown = secret && !isReference(text) ? MASK : maskCredentials(text);
    if (shown !== String(value)) secrets[formatPath(path)] = shown;
    return value;
  });
  return secrets;
}

/** Settings, or a document, with every secret masked. */
export function maskSecrets<T>(settings: T, secrets: Secrets): T {
  const masked = (value: unknown, path: Path): unknown => {
    const key = formatPath(path);
    if (Object.hasOwn(secrets, key))
      return Array.isArray(value) ? value.map(() => secrets[key]) : secrets[key];
    if (Array.isArray(value)) return value.map((item, index) => masked(item, [...path, index]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, masked(item, [...path, name])]),
    );
  };
  return masked(settings, []) as T;
}
