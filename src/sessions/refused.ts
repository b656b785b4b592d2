import { type Failure, invalidRequest } from '../kernel/errors.ts';
import { isObject, type Json } from '../protocols/json-object.ts';

/** What is wrong with a request, thrown by whatever reads it. */
export class Refused extends Error {
  readonly failure: Failure;

  constructor(message: string, param?: string) {
    super(message);
    this.failure = invalidRequest(message, param);
  }
}

/** `null` counts as absent, as it does everywhere in OpenAI's API. */
export function given(object: Json, key: string): unknown {
  return Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined;
}

export function text(object: Json, key: string, at: string): string {
  const value = given(object, key);
  if (typeof value !== 'string') throw new Refused(`Expected '${at}' to be a string.`, at);
  return value;
}

export function optionalText(object: Json, key: string, at = key): string | undefined {
  return given(object, key) === undefined ? undefined : text(object, key, at);
}

export function optionalFlag(object: Json, key: string, at = key): boolean | undefined {
  const value = given(object, key);
  if (value !== undefined && typeof value !== 'boolean')
    throw new Refused(`Expected '${at}' to be true or false.`, at);
  return value;
}

export function optionalNumber(
  object: Json,
  key: string,
  { min, max, whole = false, at = key }: { min: number; max: number; whole?: boolean; at?: string },
): number | undefined {
  const value = given(object, key);
  if (value === undefined) return undefined;
  const fits =
    typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value));
  if (!fits) {
    const kind = whole ? 'a whole number' : 'a number';
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new Refused(`Expected '${at}' to be ${kind} ${range}.`, at);
  }
  return value as number;
}

export function optionalObject(object: Json, key: string, at = key): Json | undefined {
  const value = given(object, key);
  if (value !== undefined && !isObject(value)) throw new Refused(`Expected '${at}' to be an object.`, at);
  return value;
}

const METADATA_MAX = { pairs: 16, keyCharacters: 64, valueCharacters: 512 };

/** Up to 16 texts by name, for the caller's own use. */
export function metadataOf(object: Json): Record<string, string> | undefined {
  const value = optionalObject(object, 'metadata');
  if (value === undefined) return undefined;
  const pairs = Object.entries(value);
  if (pairs.length > METADATA_MAX.pairs)
    throw new Refused(`'metadata' may have ${METADATA_MAX.pairs} keys at most.`, 'metadata');
  for (const [key, each] of pairs) {
    if (key.length > METADATA_MAX.keyCharacters)
      throw new Refused(
        `A key of 'metadata' may have ${METADATA_MAX.keyCharacters} characters at most.`,
        'metadata',
      );
    if (typeof each !== 'string' || each.length > METADATA_MAX.valueCharacters)
      throw new Refused(
        `Expected 'metadata.${key}' to be a string of at most ${METADATA_MAX.valueCharacters} characters.`,
        'metadata',
      );
  }
  return value as Record<string, string>;
}
