import type { core, z } from 'zod';

/** Reads the schema as data: which keys a map may have, what a value is. For faults, secrets, and the reference page. */

export type Schema = core.$ZodType;

/** The parts of a zod definition that are read here. */
interface Definition {
  type: string;
  innerType?: Schema;
  in?: Schema;
  shape?: Record<string, Schema>;
  keyType?: Schema;
  valueType?: Schema;
  element?: Schema;
  options?: readonly Schema[];
  discriminator?: string;
  values?: readonly unknown[];
  defaultValue?: unknown;
}

export const definition = (schema: Schema): Definition => schema._zod.def as unknown as Definition;

/** What a schema says about itself: description, `title` of its kind, `secret`, `file`, `large`, `jinja`. */
export function about(schema: Schema): {
  description?: string;
  title?: string;
  secret?: boolean;
  file?: boolean;
  large?: boolean;
  jinja?: boolean;
} {
  return ((schema as z.ZodType).meta?.() as ReturnType<typeof about> | undefined) ?? {};
}

/** A schema without default, optional and transform around it. */
export function bare(schema: Schema): Schema {
  let inner = schema;
  for (;;) {
    const def = definition(inner);
    const next = def.type === 'pipe' ? def.in : def.innerType;
    if (!next) return inner;
    inner = next;
  }
}

/** The nearest title or mark on the way from a schema to what it wraps. */
export function marked<Key extends keyof ReturnType<typeof about>>(
  schema: Schema,
  key: Key,
): ReturnType<typeof about>[Key] | undefined {
  let inner: Schema | undefined = schema;
  while (inner) {
    const value = about(inner)[key];
    if (value !== undefined) return value;
    const def: Definition = definition(inner);
    inner = def.type === 'pipe' ? def.in : def.innerType;
  }
  return undefined;
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Which of a union's options a value was meant as; undefined where nothing tells. */
export function meant(
  options: readonly Schema[],
  discriminator: string | undefined,
  value: unknown,
): Schema | undefined {
  if (Array.isArray(value)) return options.find((option) => definition(bare(option)).type === 'array');
  if (!isMap(value)) return undefined;
  let best: Schema | undefined;
  let bestCount = 0;
  for (const option of options) {
    const { shape, type } = definition(bare(option));
    if (type !== 'object' || !shape) continue;
    if (discriminator !== undefined) {
      if (definition(bare(shape[discriminator]!)).values?.includes(value[discriminator])) return option;
      continue;
    }
    const count = Object.keys(value).filter((key) => Object.hasOwn(shape, key)).length;
    if (count > bestCount) {
      best = option;
      bestCount = count;
    }
  }
  return best;
}

/** The schema that holds for a value, chosen among the options of unions. */
export function chosen(schema: Schema, value: unknown): Schema {
  const inner = bare(schema);
  const { type, options, discriminator } = definition(inner);
  if (type !== 'union' || !options) return inner;
  const option = meant(options, discriminator, value);
  return option ? chosen(option, value) : inner;
}

/** The schema of what stands below a value under a key or at a list position. */
function below(schema: Schema, value: unknown, segment: string | number): Schema | undefined {
  const { type, shape, valueType, element } = definition(chosen(schema, value));
  if (type === 'object') return shape && Object.hasOwn(shape, segment) ? shape[segment] : undefined;
  if (type === 'record') return valueType;
  return type === 'array' ? element : undefined;
}

/** What stands below a value under a key or at a list position. */
export function at(value: unknown, segment: string | number): unknown {
  if (typeof segment === 'number') return Array.isArray(value) ? value[segment] : undefined;
  return isMap(value) && Object.hasOwn(value, segment) ? value[segment] : undefined;
}

/** Schema and value at a path, as far as there are any. */
export function lookUp(
  schema: Schema,
  document: unknown,
  path: readonly PropertyKey[],
): { schema: Schema | undefined; value: unknown } {
  let found: { schema: Schema | undefined; value: unknown } = { schema, value: document };
  for (const segment of path as (string | number)[]) {
    found = {
      schema: found.schema && below(found.schema, found.value, segment),
      value: at(found.value, segment),
    };
  }
  return found;
}

/** Goes over every text, number and other leaf of a document and puts what `visit` gives in its place. */
export function mapLeaves(
  schema: Schema | undefined,
  value: unknown,
  visit: (value: unknown, schema: Schema | undefined, path: readonly (string | number)[]) => unknown,
  path: readonly (string | number)[] = [],
): unknown {
  if (Array.isArray(value)) {
    return value.map((item, index) =>
      mapLeaves(schema && below(schema, value, index), item, visit, [...path, index]),
    );
  }
  if (isMap(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        key,
        mapLeaves(schema && below(schema, value, key), item, visit, [...path, key]),
      ]),
    );
  }
  return visit(value, schema, path);
}

/** Everything that stands at a pattern of keys; `*` is any key or list position. */
export function select(
  value: unknown,
  pattern: readonly string[],
  path: readonly (string | number)[] = [],
): { path: readonly (string | number)[]; value: unknown }[] {
  const [segment, ...rest] = pattern;
  if (segment === undefined) return [{ path, value }];
  if (segment !== '*') {
    const inner = at(value, segment);
    return inner === undefined ? [] : select(inner, rest, [...path, segment]);
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => select(item, rest, [...path, index]));
  return isMap(value)
    ? Object.entries(value).flatMap(([key, item]) => select(item, rest, [...path, key]))
    : [];
}
