import { badRequest } from '../fault.ts';

/**
 * What llama.cpp's grammars can hold an answer to. The library passes over what it does not know; here it is refused,
 * so that an answer which is said to fit a schema does.
 */

type Schema = Record<string, unknown>;

/** Say something to people only. */
const REMARKS = new Set(['$schema', '$id', 'title', 'description', 'default', 'examples', 'deprecated']);
/** `required` and a missing `additionalProperties` are held more strictly than asked: every property comes, no other. */
const KNOWN = new Set([
  ...['type', 'const', 'enum', 'oneOf', 'anyOf', '$ref', '$defs', 'format', 'minLength', 'maxLength'],
  ...['properties', 'required', 'additionalProperties', 'minProperties', 'maxProperties'],
  ...['items', 'prefixItems', 'minItems', 'maxItems'],
]);
const TYPES = new Set<unknown>(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
const FORMATS = new Set(['date-time', 'time', 'date']);
/** Deeper ones are refused: grammars of them take too long. */
const DEPTH_MAX = 32;

/** Gives a JSON schema in the library's own form; throws a bad request where it asks for what cannot be held. */
export function grammarSchema(schema: unknown): Record<string, unknown> {
  return convert(schema, 'response_format.json_schema.schema', 0, definitionsOf(schema));
}

function definitionsOf(schema: unknown): Set<string> {
  const definitions = (schema as Schema | null)?.$defs;
  return new Set(typeof definitions === 'object' && definitions !== null ? Object.keys(definitions) : []);
}

function convert(schema: unknown, path: string, depth: number, definitions: Set<string>): Schema {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw badRequest(`${path}: expected a schema`, path);
  }
  if (depth > DEPTH_MAX) throw badRequest(`${path}: nested deeper than ${DEPTH_MAX}`, path);
  const given = schema as Schema;
  for (const key of Object.keys(given)) {
    if (key === '$defs' && depth > 0) throw badRequest(`${path}: $defs belong to the whole schema`, path);
    if (!KNOWN.has(key) && !REMARKS.has(key)) {
      throw badRequest(`${path}: this host cannot hold an answer to '${key}'`, path);
    }
  }
  if (given.format !== undefined && !FORMATS.has(String(given.format))) {
    throw badRequest(`${path}: this host knows the formats ${[...FORMATS].join(', ')}`, path);
  }
  checkAlone(given, path);
  checkReference(given, path, definitions);
  checkTypes(given, path);
  checkRequired(given, path);

  const { anyOf, oneOf = anyOf, ...rest } = given;
  if (Array.isArray(rest.type) && !rest.type.every(isScalar)) {
    return {
      oneOf: rest.type.map((type, at) =>
        convert({ ...rest, type }, `${path}.type[${at}]`, depth + 1, definitions),
      ),
    };
  }
  // The library takes an object without properties for an empty one; the standard, for any.
  const open = rest.type === 'object' && !rest.properties && rest.additionalProperties === undefined;
  return {
    ...rest,
    ...(open && { additionalProperties: true }),
    ...children(rest, path, depth, definitions),
    ...(oneOf !== undefined && { oneOf: list(oneOf, `${path}.oneOf`, depth, definitions) }),
  };
}

/** The schemas within a schema, converted. */
function children(given: Schema, path: string, depth: number, definitions: Set<string>): Schema {
  const converted: Schema = {};
  for (const key of ['properties', '$defs'] as const) {
    if (given[key] !== undefined) converted[key] = map(given[key], `${path}.${key}`, depth, definitions);
  }
  if (given.prefixItems !== undefined)
    converted.prefixItems = list(given.prefixItems, `${path}.prefixItems`, depth, definitions);
  for (const key of ['items', 'additionalProperties'] as const) {
    const inner = given[key];
    if (inner !== undefined && typeof inner !== 'boolean')
      converted[key] = convert(inner, `${path}.${key}`, depth + 1, definitions);
  }
  return converted;
}

function map(value: unknown, path: string, depth: number, definitions: Set<string>): Schema {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw badRequest(`${path}: expected an object`, path);
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      convert(inner, `${path}.${name}`, depth + 1, definitions),
    ]),
  );
}

function list(value: unknown, path: string, depth: number, definitions: Set<string>): Schema[] {
  if (!Array.isArray(value) || value.length === 0)
    throw badRequest(`${path}: expected a list of schemas`, path);
  return value.map((inner, at) => convert(inner, `${path}[${at}]`, depth + 1, definitions));
}

/** A union or a reference is all that the library sees of a schema: what stands beside it would be lost. */
function checkAlone(given: Schema, path: string): void {
  const whole = ['anyOf', 'oneOf', '$ref'].find((key) => given[key] !== undefined);
  if (whole === undefined) return;
  const beside = Object.keys(given).find((key) => key !== whole && key !== '$defs' && !REMARKS.has(key));
  if (beside !== undefined) {
    throw badRequest(`${path}: this host cannot hold an answer to '${beside}' beside '${whole}'`, path);
  }
}

function checkReference({ $ref }: Schema, path: string, definitions: Set<string>): void {
  if ($ref === undefined) return;
  const name = /^#\/\$defs\/([^/]+)$/.exec(String($ref))?.[1];
  if (name === undefined || !definitions.has(name)) {
    throw badRequest(`${path}: a reference must be to #/$defs/NAME of the same schema`, path);
  }
}

function checkTypes({ type }: Schema, path: string): void {
  for (const one of Array.isArray(type) ? type : [type]) {
    if (one !== undefined && !TYPES.has(one)) {
      throw badRequest(`${path}: expected a type of ${[...TYPES].join(', ')}`, path);
    }
  }
}

/** Every property comes, so that a list of those that must is kept in any case, unless it names others. */
function checkRequired({ required, properties }: Schema, path: string): void {
  if (required === undefined) return;
  const names = new Set(Object.keys((properties ?? {}) as Schema));
  if (!Array.isArray(required) || !required.every((name) => names.has(name))) {
    throw badRequest(`${path}: 'required' must be a list of names under 'properties'`, path);
  }
}

function isScalar(type: unknown): boolean {
  return type !== 'object' && type !== 'array';
}
