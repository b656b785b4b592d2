import { describe, expect, it } from 'vitest';
import { grammarSchema } from './json-schema.ts';

describe('a JSON schema for a grammar', () => {
  it('keeps what a grammar can hold, and leaves remarks as they are', () => {
    const schema = {
      type: 'object',
      title: 'Pet',
      properties: {
        name: { type: 'string', minLength: 1 },
        tags: { type: 'array', items: { enum: ['a', 'b'] } },
      },
      required: ['name'],
      additionalProperties: false,
    };
    expect(grammarSchema(schema)).toEqual(schema);
  });

  it('turns unions into what the library knows', () => {
    expect(grammarSchema({ anyOf: [{ type: 'null' }, { type: 'string' }] })).toEqual({
      oneOf: [{ type: 'null' }, { type: 'string' }],
    });
    expect(grammarSchema({ type: ['array', 'null'], items: { type: 'string' } })).toEqual({
      oneOf: [
        { type: 'array', items: { type: 'string' } },
        { type: 'null', items: { type: 'string' } },
      ],
    });
    expect(grammarSchema({ type: ['string', 'null'] })).toEqual({ type: ['string', 'null'] });
  });

  it('takes an object of which nothing is said for any object', () => {
    expect(grammarSchema({ type: 'object' })).toEqual({ type: 'object', additionalProperties: true });
    expect(grammarSchema({ type: 'object', additionalProperties: false })).toEqual({
      type: 'object',
      additionalProperties: false,
    });
  });

  it.each([
    ['an unknown type', { type: 'text' }, 'expected a type'],
    [
      'a property that must come and is not described',
      { properties: { a: {} }, required: ['b'] },
      'required',
    ],
    ['a union with something beside it', { anyOf: [{}], type: 'object' }, "'type' beside 'anyOf'"],
    [
      'a reference with something beside it',
      { $defs: { a: {} }, $ref: '#/$defs/a', maxLength: 1 },
      "beside '$ref'",
    ],
    ['a pattern', { type: 'string', pattern: 'a' }, "'pattern'"],
    [
      'a bound',
      { properties: { n: { type: 'number', minimum: 0 } } },
      'schema.properties.n: this host cannot hold',
    ],
    ['a format', { type: 'string', format: 'email' }, 'date-time'],
    ['a reference to nowhere', { $ref: '#/$defs/none' }, 'reference'],
    ['a reference to elsewhere', { $ref: 'https://example.com/schema' }, 'reference'],
    ['definitions within', { items: { $defs: { a: {} } } }, '$defs'],
    ['what is no schema', { properties: { a: 1 } }, 'schema.properties.a: expected a schema'],
    ['an empty union', { anyOf: [] }, 'expected a list'],
    ['no object', 'string', 'expected a schema'],
  ])('refuses %s', (_what, schema, words) => {
    expect(() => grammarSchema(schema)).toThrow(words);
  });

  it('refuses one that is nested without end', () => {
    let schema: object = { type: 'string' };
    for (let depth = 0; depth < 100; depth++) schema = { type: 'array', items: schema };
    expect(() => grammarSchema(schema)).toThrow('nested deeper');
  });
});
