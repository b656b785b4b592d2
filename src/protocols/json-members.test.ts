import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scanElements, scanMembers } from './json-members.ts';

const members = (text: string | Buffer) => {
  const bytes = Buffer.from(text);
  const scanned = scanMembers(bytes);
  if (typeof scanned === 'string') throw new Error(scanned);
  return scanned.members.map(({ key, start, end }) => [key, bytes.toString('utf8', start, end)]);
};

describe('scanMembers', () => {
  it('finds every member of any object, its value in its own bytes', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(undefined, 1, '\t'),
        (object, indent) => {
          const text = JSON.stringify(object, null, indent);
          expect(members(text).map(([key, value]) => [key, JSON.parse(value!)])).toEqual(
            Object.entries(JSON.parse(text) as object),
          );
        },
      ),
    );
  });

  it('never says of anything that is no object that it is one', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        const scanned = scanMembers(Buffer.from(text));
        let value: unknown;
        try {
          value = JSON.parse(text);
        } catch {
          value = undefined;
        }
        const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
        if (isObject) expect(typeof scanned).not.toBe('string');
        else if (value !== undefined) expect(typeof scanned).toBe('string');
      }),
    );
  });

  it('undoes escapes of keys, keeps duplicates apart, and leaves values as they are written', () => {
    expect(members('{"mod\\u0065l":"a","model" : 1.0e+2,"x":{"model":"b\\"}"}, "y":[ "]" ]}')).toEqual([
      ['model', '"a"'],
      ['model', '1.0e+2'],
      ['x', '{"model":"b\\"}"}'],
      ['y', '[ "]" ]'],
    ]);
  });

  it.each([
    ['', 'the body is empty'],
    ['  \n', 'the body is empty'],
    ['[]', 'the body is not a JSON object'],
    ['{', 'expected a key at byte 1'],
    ['{"a"}', 'expected a colon at byte 4'],
    ['{"a":}', 'the value of "a" is not JSON, or does not end'],
    ['{"a":01}', 'the value of "a" is not JSON, or does not end'],
    ['{"a":tru}', 'the value of "a" is not JSON, or does not end'],
    ['{"a":"b', 'the value of "a" is not JSON, or does not end'],
    ['{"a":[1}', 'expected a comma or a closing brace at byte 8'],
    ['{"a":1 "b":2}', 'expected a comma or a closing brace at byte 7'],
    ['{"a":1,}', 'expected a key at byte 7'],
    ['{"a":1}x', 'something follows the JSON object, at byte 7'],
    ['{"\\x":1}', 'the key at byte 1 is not a JSON string'],
  ])('says what is wrong with %j', (text, fault) => {
    expect(scanMembers(Buffer.from(text))).toBe(fault);
  });

  it('takes any depth', () => {
    const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    expect(members(deep)).toHaveLength(1);
  });
});

describe('scanElements', () => {
  const elements = (text: string) => {
    const bytes = Buffer.from(text);
    return scanElements(bytes)?.map(({ start, end }) => bytes.toString('utf8', start, end));
  };

  it('finds every element of any list, in its own bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.boolean(), (list, spaced) => {
        const found = elements(JSON.stringify(list, null, spaced ? 1 : 0));
        expect(found!.map((text) => JSON.parse(text))).toEqual(JSON.parse(JSON.stringify(list)));
      }),
    );
  });

  it.each(['', '{}', '[', '[1', '[1,', '[1,]', '[,]', '[1 2]', '[1]]', '["a]'])(
    'finds none in %j',
    (text) => {
      expect(elements(text)).toBeUndefined();
    },
  );
});
