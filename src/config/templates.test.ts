import { Template as Jinja } from '@huggingface/jinja';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FILTERS, templateNames } from './templates.ts';

function names(template: string): string[] {
  const read = templateNames(template);
  if ('cause' in read) throw new Error(read.cause);
  return read.names.sort();
}

describe('what a template takes from outside', () => {
  it('is what it names and does not set itself', () => {
    expect(names('plain')).toEqual([]);
    expect(names('{{ request.text }} {{ a }}{{ b | trim | replace("c", d) }}')).toEqual([
      'a',
      'b',
      'd',
      'request',
    ]);
    expect(names('{% if a is defined and b == "c" %}{{ d[e] }}{% else %}{{ f.g.h() }}{% endif %}')).toEqual([
      'a',
      'b',
      'd',
      'e',
      'f',
    ]);
    expect(names('{% for x, y in a.items() %}{{ x }}{{ y }}{{ loop.index }}{% endfor %}')).toEqual(['a']);
    expect(names('{% set n = a %}{{ n }}{% for i in range(3) %}{{ i }}{% endfor %}')).toEqual(['a']);
    expect(names('{% macro m(p, q=1) %}{{ p }}{{ q }}{{ r }}{% endmacro %}{{ m(s) }}')).toEqual(['r', 's']);
    expect(names("{{ {'k': a, 'l': [b, none, true]} }}{{ 'x' if c else d }}")).toEqual(['a', 'b', 'c', 'd']);
    expect(names('{# a comment with {{ a }} #}{% raw %}{% endraw %}'.slice(0, 29))).toEqual([]);
  });

  it('is not known where it cannot be read, and that is said in one line', () => {
    for (const broken of ['{{ a', '{% if %}{% endfor %}', '{% for x in %}', '{{ a b }}', '{% if a %}']) {
      const read = templateNames(broken);
      expect('cause' in read && read.cause).toMatch(/^[^\n]+$/);
    }
  });

  it('has only filters and tests that there are', () => {
    const cause = (template: string) => {
      const read = templateNames(template);
      return 'cause' in read ? read.cause : undefined;
    };
    expect(cause('{{ a | lenght }}')).toBe('there is no filter "lenght", did you mean "length"?');
    expect(cause('{% if b %}{{ a | trim | shorten(3) }}{% endif %}')).toBe('there is no filter "shorten"');
    expect(cause('{% filter uper %}x{% endfilter %}')).toMatch('there is no filter "uper"');
    expect(cause('{{ a is definde }}')).toBe('there is no test "definde", did you mean "defined"?');
    expect(cause('{{ a is defined and b is not none }}{{ c | default("x") | tojson }}')).toBeUndefined();
    expect(cause('{% if a %}x')).toMatch('it ends within a block');
  });

  it('knows the filters of the interpreter', () => {
    const values = ["'a'", '1', '[1]', "[{'a': 1}]", "{'a': 1}", 'true', 'none_such'];
    const args = ['', "('a')", "('a', 'b')", "(attribute='a')"];
    const runs = (name: string) =>
      values.some((value) =>
        args.some((arg) => {
          try {
            new Jinja(`{{ ${value} | ${name}${arg} }}`).render();
            return true;
          } catch {
            return false;
          }
        }),
      );
    for (const name of FILTERS) expect([name, runs(name)]).toEqual([name, true]);
    expect(runs('shorten')).toBe(false);
  });

  it('is found, or not, for any text', () => {
    const piece = fc.oneof(
      fc.string({ maxLength: 5 }),
      fc.constantFrom(
        '{{',
        '}}',
        '{%',
        '%}',
        ' a ',
        '.',
        '|',
        '(',
        ')',
        '[',
        ']',
        'if',
        'for x in ',
        'set ',
        '=',
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const read = templateNames(pieces.join(''));
        expect('cause' in read ? read.cause : read.names).toBeDefined();
      }),
    );
  });
});
