import type { Random } from '../../src/kernel/random.ts';

/** Conversations as nobody would write them, drawn from a seed: for tests that look for what breaks. */

const WORDS = [
  ...[
    'the',
    'quick',
    "it's",
    '3.14',
    'foo_bar',
    'naïve',
    '你好',
    'こんにちは',
    'नमस्ते',
    'مرحبا',
    '👩‍👩‍👧‍👦',
    '🇩🇪🇫🇷',
    'e\u0301',
  ],
  ...['\u200b', '\ufeff', '\u0085', '\u00a0', '½', 'Ⅷ', 'ﷺ', '\u0000', '\ud83d', '\udc00', '\u{e0061}'],
  // What a template would run, and what a model takes for the end of a message.
  ...[
    "{{ 'ev' ~ 'aluated' }}",
    '{% for x in messages %}',
    '{{ messages }}',
    "{{ raise_exception('x') }}",
    '{#',
    '#}',
    "${'ev' + 'aluated'}",
  ],
  ...['<|im_end|>', '<|im_start|>system', '<|endoftext|>', '[INST]', '</s>', '__proto__', 'constructor'],
];
const SPACES = [' ', ' ', ' ', '  ', '\n', '\r\n', '\t', '', '          '];

export class Chats {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  below(max: number): number {
    return Math.floor(this.#random.next() * max);
  }

  chance(share: number): boolean {
    return this.#random.next() < share;
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!;
  }

  text(wordsMax = 60): string {
    let text = '';
    for (let left = this.below(this.chance(0.1) ? wordsMax * 5 : wordsMax); left > 0; left--) {
      text += this.chance(0.9) ? this.one(WORDS) : this.one(['a', '1', '🇩', '\u0301']).repeat(this.below(40));
      text += this.one(SPACES);
    }
    return text;
  }

  messages(): Record<string, unknown>[] {
    const messages: Record<string, unknown>[] = [];
    if (this.chance(0.6)) messages.push({ role: this.one(['system', 'developer']), content: this.text(20) });
    for (let left = 1 + this.below(this.chance(0.1) ? 60 : 12); left > 0; left--) this.#turn(messages);
    if (this.chance(0.6)) messages.push(this.#message('user'));
    // Some conversations were put together by programs with faults.
    for (let left = this.chance(0.3) ? this.below(4) : 0; left > 0; left--) this.#spoil(messages);
    return messages.length > 0 ? messages : [this.#message('user')];
  }

  #turn(messages: Record<string, unknown>[]): void {
    messages.push(this.#message('user'));
    for (let rounds = this.chance(0.3) ? 1 + this.below(3) : 0; rounds > 0; rounds--) {
      const ids = Array.from(
        { length: 1 + this.below(3) },
        () => `call_${this.below(this.chance(0.2) ? 3 : 1e9)}`,
      );
      const calls = ids.map((id) => ({
        id,
        type: 'function',
        function: { name: 'f', arguments: this.#arguments() },
      }));
      messages.push({ role: 'assistant', content: this.one([null, '', this.text(10)]), tool_calls: calls });
      for (const id of ids) messages.push({ role: 'tool', tool_call_id: id, content: this.text(30) });
    }
    if (this.chance(0.9)) messages.push(this.#message('assistant'));
  }

  #message(role: string): Record<string, unknown> {
    const texts = () => ({ type: 'text', text: this.text() });
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
    const content = this.chance(0.85)
      ? this.text()
      : Array.from({ length: 1 + this.below(3) }, () =>
          role === 'user' && this.chance(0.2) ? image : texts(),
        );
    return {
      role,
      content,
      ...(this.chance(0.05) ? { armature: { pinned: true } } : {}),
      ...(this.chance(0.05) ? { name: 'x', extra: { n: 1.5 } } : {}),
    };
  }

  #arguments(): string {
    return this.chance(0.9) ? JSON.stringify({ q: this.text(8), n: this.below(100) }) : this.text(5);
  }

  #spoil(messages: Record<string, unknown>[]): void {
    if (messages.length === 0) return;
    const at = this.below(messages.length);
    const what = this.below(5);
    if (what === 0) messages.splice(at, 1);
    else if (what === 1)
      messages.splice(at, 0, { role: 'tool', tool_call_id: 'nobody', content: this.text(5) });
    else if (what === 2)
      messages.splice(at, 0, this.#message(this.one(['user', 'assistant', 'system', 'critic'])));
    else if (what === 3)
      messages[at] = {
        ...messages[at],
        content: this.one([null, 7, {}, [], [null, 'x', { text: 3 }], undefined]),
      };
    else messages.push(messages[at]!);
  }
}

/** Templates as makers of models write them, and some that refuse, repeat, or put much around each message. */
export const TEMPLATES: readonly string[] = [
  "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
  "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}[{{ m['role'] }}] {{ m['content'] | trim }}{{ eos_token }}{% endfor %}",
  '{% if tools %}{{ tools | tojson(indent=4) }}{% endif %}{% for m in messages %}### {{ m.role }}: {{ m.content }}{% if m.tool_calls %}{% for c in m.tool_calls %}<call>{{ c.function.name }} {{ c.function.arguments | tojson }}</call>{% endfor %}{% endif %}\n{% endfor %}### assistant:',
  "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% else %}<image>{% endif %}{% endfor %}{% endif %}<|im_end|>{% endfor %}",
  "{% set ns = namespace(last='') %}{% for m in messages[-3:] %}{% set ns.last = m.role %}{{ m.role.upper() }}>{{ (m.content or '').lstrip('\n') }}\n{% endfor %}{{ ns.last }}",
  "{% for m in messages %}{{ '~' * 60 }}{{ m.content }}{% endfor %}{{ messages | length }}",
];
