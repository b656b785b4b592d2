import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AnswerAssembly } from './answer-assembly.ts';
import { answerStream } from './answer-stream.ts';
import { EventSplitter } from './event-splitter.ts';
import { eventData } from './events.ts';

type Json = Record<string, unknown>;

function assembled(stream: string, kind: 'chat' | 'completions' = 'chat'): Json | undefined {
  const assembly = new AnswerAssembly(kind);
  for (const event of new EventSplitter().push(Buffer.from(stream))) assembly.add(eventData(event)!);
  return assembly.finish();
}

function chunks(stream: string): Json[] {
  return stream
    .split('\n\n')
    .filter((event) => event !== '' && event !== 'data: [DONE]')
    .map((event) => JSON.parse(event.slice('data: '.length)) as Json);
}

const streamed = (parts: object[], end = 'data: [DONE]\n\n') =>
  parts.map((part) => `data: ${JSON.stringify(part)}\n\n`).join('') + end;
const chunk = (delta: object, more: object = {}) => ({
  choices: [{ index: 0, delta, finish_reason: null, ...more }],
});

const call = fc.record({
  id: fc.uuid(),
  type: fc.constant('function'),
  function: fc.record({ name: fc.string({ minLength: 1 }), arguments: fc.json() }),
});
const logprobs = fc.option(
  fc.record({
    content: fc.array(fc.record({ token: fc.string(), logprob: fc.float({ noNaN: true, max: -1 }) })),
  }),
);
const message = fc
  .record({
    words: fc.option(fc.string({ unit: 'binary' }).map((text) => text.toWellFormed())),
    thoughts: fc.string(),
    calls: fc.array(call, { maxLength: 3 }),
  })
  .map(({ words, thoughts, calls }) => ({
    role: 'assistant',
    content: words === '' && calls.length > 0 ? null : words,
    ...(thoughts === '' ? {} : { reasoning_content: thoughts }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }));
const usage = fc.record({ prompt_tokens: fc.nat(), completion_tokens: fc.nat(), total_tokens: fc.nat() });
const head = { id: 'chatcmpl-1', created: 1, model: 'm', system_fingerprint: 'fp' };

describe('a document told as a stream', () => {
  it('can be put together again', () => {
    const choices = fc.array(fc.tuple(message, logprobs, fc.constantFrom('stop', 'length', 'tool_calls')), {
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(choices, usage, (list, use) => {
        const document = {
          ...head,
          object: 'chat.completion',
          choices: list.map(([said, likely, finish_reason], index) => ({
            index,
            message: said,
            logprobs: likely,
            finish_reason,
          })),
          usage: use,
        };
        expect(assembled(answerStream(document, 'chat', true)!)).toEqual(
          JSON.parse(JSON.stringify(document)),
        );
      }),
    );
  });

  it('can be put together again: completions', () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 4 }), (texts) => {
        const choices = texts.map((text, index) => ({ index, text, logprobs: null, finish_reason: 'stop' }));
        const document = { ...head, object: 'text_completion', choices, usage: { prompt_tokens: 1 } };
        expect(assembled(answerStream(document, 'completions', true)!, 'completions')).toEqual(document);
      }),
    );
  });

  it('has a role first, a finish reason last, and a usage only where it was asked for', () => {
    const document = {
      ...head,
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    };
    const plain = chunks(answerStream(document, 'chat', false)!);
    expect(plain.map((each) => each['object'])).toEqual(plain.map(() => 'chat.completion.chunk'));
    expect(plain.map((each) => (each['choices'] as Json[])[0])).toMatchObject([
      { delta: { role: 'assistant', content: '' }, finish_reason: null },
      { delta: { content: 'Hi' }, finish_reason: null },
      { delta: {}, finish_reason: 'stop' },
    ]);
    expect(plain.some((each) => 'usage' in each)).toBe(false);
    const counted = chunks(answerStream(document, 'chat', true)!);
    expect(counted.at(-1)).toMatchObject({ choices: [], usage: document.usage });
    expect(counted.slice(0, -1).every((each) => each['usage'] === null)).toBe(true);
    expect(answerStream(document, 'chat', true)!.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  it.each([undefined, {}, { choices: [] }, { choices: [{ index: 0, message: { content: [] } }] }])(
    'is not there for %j',
    (document) => {
      expect(answerStream(document, 'chat', false)).toBeUndefined();
    },
  );
});

describe('a stream put together', () => {
  it('joins tool calls by their index', () => {
    const tool = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] });
    const document = assembled(
      streamed([
        chunk({ role: 'assistant', content: '' }),
        tool(0, { id: 'a', type: 'function', function: { name: 'f', arguments: '' } }),
        tool(1, { id: 'b', type: 'function', function: { name: 'g', arguments: '{' } }),
        tool(0, { function: { arguments: '{"x":' } }),
        tool(1, { function: { arguments: '}' } }),
        tool(0, { id: '', function: { name: '', arguments: '1}' } }),
        chunk({}, { finish_reason: 'tool_calls' }),
      ]),
    );
    expect(document!['choices']).toEqual([
      {
        index: 0,
        finish_reason: 'tool_calls',
        logprobs: null,
        message: {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } },
            { id: 'b', type: 'function', function: { name: 'g', arguments: '{}' } },
          ],
        },
      },
    ]);
  });

  it('joins choices and log probabilities by their index, however they are interleaved', () => {
    const part = (index: number, content: string, finish: string | null = null) => ({
      choices: [
        { index, delta: { content }, logprobs: { content: [{ token: content }] }, finish_reason: finish },
      ],
    });
    const both = { choices: [part(1, 'd').choices[0], part(0, 'c', 'length').choices[0]] };
    const document = assembled(streamed([part(1, 'b'), part(0, 'a'), both, part(1, 'e', 'stop')]));
    const choice = (index: number, tokens: string[], finish_reason: string) => ({
      index,
      message: { role: 'assistant', content: tokens.join('') },
      logprobs: { content: tokens.map((token) => ({ token })) },
      finish_reason,
    });
    expect(document!['choices']).toEqual([
      choice(0, ['a', 'c'], 'length'),
      choice(1, ['b', 'd', 'e'], 'stop'),
    ]);
  });

  const end = chunk({}, { finish_reason: 'stop' });
  it.each([
    ['without a finish reason', [chunk({ content: 'a' })]],
    ['that was given up', [chunk({ content: 'a' }, { finish_reason: 'abort' })]],
    ['with an error in it', [chunk({ content: 'a' }), { error: { message: 'x' } }, end]],
    ['with a choice left open', [{ choices: [{ index: 1, delta: {}, finish_reason: 'stop' }] }]],
    [
      'with members that go on in a way of their own',
      [chunk({ audio: { data: 'a' } }), chunk({ audio: { data: 'b' } }), end],
    ],
    ['with tool calls that cannot be told apart', [chunk({ tool_calls: [{ id: 'a' }] }), end]],
    ['that changes its mind', [chunk({ content: 'a' }, { finish_reason: 'length' }), end]],
  ])('is not there for one %s', (_, parts) => {
    expect(assembled(streamed(parts))).toBeUndefined();
  });

  it('keeps what it does not know, where it is said once or always the same', () => {
    const document = assembled(
      streamed([
        { ...chunk({ content: 'a', annotations: [1] }), citations: ['u'], obfuscation: 'x' },
        { ...chunk({ content: 'b', annotations: [1] }), citations: ['u'], obfuscation: 'yy' },
        { ...chunk({}, { finish_reason: 'stop', stop_reason: 7 }), timings: { ms: 3 } },
      ]),
    );
    expect(document).toMatchObject({
      citations: ['u'],
      timings: { ms: 3 },
      choices: [{ message: { content: 'ab', annotations: [1] }, stop_reason: 7 }],
    });
  });
});
