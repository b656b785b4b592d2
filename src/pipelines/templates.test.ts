import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Template, TextWithMembers } from './templates.ts';

const scopeOf = (names: Record<string, unknown>) => ({ get: (name: string) => names[name] });
const filled = (text: string, names: Record<string, unknown>) => new Template(text).render(scopeOf(names));

describe('a template', () => {
  it('inserts texts as they are', () => {
    const text = '  {{ 7 * 7 }}{% raw %}\n<b>&amp;"\' \\n \u2028 ';
    expect(filled('a {{ request.text }} b {{ one }}', { request: { text }, one: text })).toBe(
      `a ${text} b ${text}`,
    );
    // The same by the interpreter, which a condition asks for.
    expect(filled('{% if one %}{{ one }}{% endif %}', { one: text })).toBe(text);
  });

  it('inserts a text that has members, and its members', () => {
    const item = { text: '{{ a }}', id: 7, title: 'T', tags: ['x', { y: 1 }], __proto__: undefined };
    const names = { item: new TextWithMembers(item.text, item) };
    expect(filled('{{ item }}|{{ item.text }}|{{ item.title }}', names)).toBe('{{ a }}|{{ a }}|T');
    expect(filled('{{ item }} {{ item.id }} {{ item.tags[1].y }}{{ item.none }}', names)).toBe('{{ a }} 7 1');
    expect(
      filled('{% if item.id > 6 and item %}{{ item | upper }}{{ item.upper() }}{% endif %}', names),
    ).toBe('{{ A }}{{ A }}');
    expect(filled('{{ item["id"] }}{% for t in item.tags %}{{ loop.index }}{% endfor %}', names)).toBe('712');
  });

  it('has nothing where a name stands for nothing', () => {
    expect(filled('[{{ a }}{{ request.none }}{{ stages.a.text }}]', { request: {}, stages: {} })).toBe('[]');
    expect(filled('{% if a %}yes{% else %}no{% endif %}', { a: '' })).toBe('no');
  });

  it('is given up where its loops are too long, or what it gives', () => {
    const docs = Array.from({ length: 3000 }, (_, i) => ({ text: `d${i}` }));
    const names = { request: { text: 'x'.repeat(1_000_000), body: { docs } } };
    const each = (inner: string) => `{% for d in request.body.docs %}${inner}{% endfor %}`;
    expect(filled(each('{{ loop.index }}{{ d.text }}'), names)).toMatch(/^1d0.*3000d2999$/);
    expect(() => filled(each(each('x')), names)).toThrow('its loops are too long');
    expect(() => filled(each(each('')), names)).toThrow('its loops are too long');
    expect(() => filled(each(each('').replace(' %}', ' if d.none %}')), names)).toThrow('too long');
    expect(() => filled(each('{{ request.text }}'), names)).toThrow(/characters|string length/);
  });

  it('leaves nothing of a line that only has a tag, as chat templates do', () => {
    const template = '{% for d in request.body.docs %}\n  - {{ d.text }}\n{% endfor %}\nend\n';
    expect(filled(template, { request: { body: { docs: [{ text: 'a' }, { text: ' b ' }] } } })).toBe(
      '  - a\n  -  b \nend',
    );
  });

  it('tells numbers and the like as Jinja does', () => {
    expect(filled('{{ a }} {{ b }} {{ c }} {{ d | length }}', { a: 1, b: true, c: 0.5, d: [1, 2] })).toBe(
      '1 true 0.5 2',
    );
  });

  it('has no way out of itself', () => {
    for (const text of [
      '{{ request.constructor }}',
      '{{ request.__proto__.x }}',
      '{{ a.constructor.constructor }}',
      '{{ strftime_now }}',
    ]) {
      expect(filled(text, { request: {}, a: 'x' })).toBe('');
    }
    expect(() => filled('{{ range(request.n) | length }}', { request: { n: 1e9 } })).toThrow('at most');
    expect(() => filled('{{ range(0, 10, 0) }}', {})).toThrow();
    expect(filled('{{ range(3) | join(",") }}', {})).toBe('0,1,2');
  });

  it('cannot be one that is broken', () => {
    for (const text of ['{{ a', '{% if %}', '{% for x in y %}', '{{ a + }}']) {
      expect(() => new Template(text)).toThrow();
    }
  });

  it('bears whatever a caller nests', () => {
    let deep: unknown = 'x';
    for (let i = 0; i < 100_000; i++) deep = [deep];
    const scope = { request: { text: 'a', body: { deep } } };
    expect(filled('{{ request.text }}{% if true %}!{% endif %}', scope)).toBe('a!');
    expect(() => filled('{{ request.body.deep }}', scope)).toThrow();
  });

  it('says the same with and without the interpreter', () => {
    const word = fc.string({
      unit: fc.constantFrom('{', '}', '%', '#', '-', ' ', '\n', 'a', '"', '\\', 'é', '🙂'),
    });
    const hole = fc.constantFrom(
      '{{ a }}',
      '{{ request.text }}',
      '{{- a }}',
      '{{ a -}}',
      '{{ stages.b.text }}',
      '{# c #}',
    );
    const text = fc.array(fc.oneof(hole, fc.constantFrom('x', ' y ', '\n', '}', '{ ')), { maxLength: 8 });
    fc.assert(
      fc.property(text, word, word, word, (parts, a, request, b) => {
        const template = parts.join('');
        const names = { a, request: { text: request }, stages: { b: { text: b } } };
        const environment = new Environment();
        for (const [name, value] of Object.entries(names)) environment.set(name, value);
        const program = parse(tokenize(template, { trim_blocks: true, lstrip_blocks: true }));
        expect(filled(template, names)).toBe(new Interpreter(environment).run(program).toString());
      }),
      { numRuns: 2000 },
    );
  });
});
