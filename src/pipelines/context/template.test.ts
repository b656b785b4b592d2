import { describe, expect, it, test } from 'vitest';
import { ChatTemplate } from './template.ts';

const user = (content: unknown) => ({ role: 'user', content });
const render = (source: string, messages: Record<string, unknown>[] = [user('x')], rest = {}) =>
  new ChatTemplate(source, { bos: '<s>' }).render(messages, rest);

// What Python 3 and Jinja 3 give.
test.each([
  ["{{ ' \\ufeff a '.strip() }}", '\ufeff a'],
  ["{{ messages[0].content.lstrip('\\n') }}|", ' \n x|', ' \n x'],
  ["{{ messages[0].content.lstrip('\\n ') }}|", 'x|', ' \n x'],
  ['{{ messages[0].content | trim }}|', '\ufeffx|', '\u0085\u001c \ufeffx\u2028'],
  ["{{ messages[0].content.rstrip('ab') }}", 'xc', 'xcabba'],
  ["{{ 'a-b-c'.split('-')[-1].strip() }}", 'c'],
  ["{{ 'xaax'.strip('x') + 'é'.strip('é') }}", 'aa'],
])('does as Python does: %s', (source, expected, content = 'x') => {
  expect(render(source, [user(content)])).toBe(expected);
});

describe('what callers write', () => {
  it('is put in as it is', () => {
    const text = "{{ 1 + 1 }}{% for x in y %}{{ bos_token }}{# #} {{ raise_exception('no') }}";
    expect(render('[{{ messages[0].content }}]', [user(text)])).toBe(`[${text}]`);
    expect(
      render('{{ bos_token }}{{ messages | length }}', [user('')], {
        chat_template_kwargs: { bos_token: 'X', messages: [] },
      }),
    ).toBe('<s>1');
  });

  it('of parts is their text, save for templates that read parts', () => {
    const parts = [
      { type: 'text', text: 'a' },
      { type: 'image_url', image_url: { url: 'u' } },
      { type: 'text', text: 'b' },
    ];
    expect(render('{{ messages[0].content }}', [user(parts)])).toBe('a\nb');
    const reads =
      '{% for message in messages %}{% for part in message.content %}{{ part.type }} {% endfor %}{% endfor %}';
    expect(render(reads, [user(parts)])).toBe('text image_url text ');
    const asks =
      '{% for message in messages %}{% if message.content is string %}s{% else %}{{ message.content | length }}{% endif %}{% endfor %}';
    expect(render(asks, [user(parts)])).toBe('3');
  });

  it('as arguments of tools is an object where it can be read', () => {
    const call = (given: string) => ({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: '1', function: { name: 'f', arguments: given } }],
    });
    const source = '{{ messages[0].tool_calls[0].function.arguments | tojson }}';
    expect(render(source, [call('{"b":1.5,"a":["é"]}')])).toBe('{"b": 1.5, "a": ["é"]}');
    expect(render(source, [call('not json')])).toBe('"not json"');
    expect(render(source, [call('['.repeat(10_000))])).toContain('[[[');
  });
});

it('refuses what it refuses', () => {
  expect(() => render("{{ raise_exception('roles must alternate') }}")).toThrow('roles must alternate');
  expect(() => render('{{ messages[0].nothing.strip() }}')).toThrow();
  expect(() => new ChatTemplate('{% if %}', {})).toThrow();
});
