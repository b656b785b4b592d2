import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalMembers, canonicalObject } from './canonical-json.ts';

const canonical = (text: string) => {
  const members = canonicalMembers(text);
  return members && canonicalObject(members);
};

/** The same value written by another hand: members in another order, white space, escapes. */
function rewritten(value: unknown, turn: () => number): string {
  const space = () => ['', ' ', '\n', '\t \r'][turn() % 4]!;
  if (typeof value === 'string') {
    const text = JSON.stringify(value);
    if (turn() % 2) return text;
    return `"${[...Array(value.length).keys()].map((i) => `\\u${value.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`;
  }
  if (Array.isArray(value)) {
    return `[${space()}${value.map((item) => rewritten(item, turn) + space()).join(`,${space()}`)}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    if (turn() % 2) entries.reverse();
    const members = entries.map(
      ([key, item]) => `${rewritten(key, turn)}${space()}:${space()}${rewritten(item, turn)}`,
    );
    return `${space()}{${space()}${members.join(`${space()},`)}${space()}}${space()}`;
  }
  return JSON.stringify(value);
}

const object = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 4 }));

describe('the canonical form', () => {
  it('does not depend on order, white space or escapes', () => {
    fc.assert(
      fc.property(object, fc.infiniteStream(fc.nat(11)), (value, turns) => {
        const turn = () => turns.next().value as number;
        expect(canonical(rewritten(value, turn))).toBe(canonical(JSON.stringify(value)));
      }),
    );
  });

  it('tells apart what is not the same', () => {
    const sorted = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(sorted)
        : typeof value === 'object' && value !== null
          ? Object.entries(value)
              .sort(([a], [b]) => (a < b ? -1 : 1))
              .map(([key, item]) => [`key ${key}`, sorted(item)])
              .concat([['object']])
          : value;
    fc.assert(
      fc.property(object, object, (a, b) => {
        const same = JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
        expect(canonical(JSON.stringify(a)) === canonical(JSON.stringify(b))).toBe(same);
      }),
    );
  });

  it('is JSON of the same value', () => {
    fc.assert(
      fc.property(object, (value) => {
        const text = JSON.stringify(value);
        expect(JSON.parse(canonical(text)!)).toEqual(JSON.parse(text));
      }),
    );
  });

  it.each([
    ['{"a":1}', '{"a":1.0}'],
    ['{"a":9007199254740993}', '{"a":9007199254740992}'],
    ['{"a":1,"a":2}', '{"a":2}'],
    ['{"a":1,"a":2}', '{"a":2,"a":1}'],
    ['{"a":"1"}', '{"a":1}'],
    ['{"a":{}}', '{"a":[]}'],
    ['{"a":"\\ud800"}', '{"a":"\\ufffd"}'],
    ['{"__proto__":1}', '{}'],
  ])('keeps %s and %s apart', (a, b) => {
    expect(canonical(a)).toBeDefined();
    expect(canonical(a)).not.toBe(canonical(b));
  });

  it.each([
    '',
    '[]',
    '1',
    '{',
    '{"a"}',
    '{"a":}',
    '{"a":01}',
    '{"a":1,}',
    '{"a":"\n"}',
    '{"a":"\\x"}',
    '{} {}',
    `{"a":${'['.repeat(200)}${']'.repeat(200)}}`,
  ])('is not there for %s', (text) => {
    expect(canonical(text)).toBeUndefined();
  });
});
