import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventSplitter } from './event-splitter.ts';
import { classify, eventData, inspect } from './events.ts';

describe('EventSplitter', () => {
  const lineEnd = fc.constantFrom('\n', '\r\n');
  const event = fc
    .tuple(
      fc.array(
        fc.tuple(
          fc.constantFrom('data: ', 'data:', ': ', 'event: ', 'id:'),
          fc.string({ unit: 'grapheme' }),
          lineEnd,
        ),
        { minLength: 1, maxLength: 3 },
      ),
      lineEnd,
    )
    .map(
      ([lines, end]) =>
        lines.map(([field, text, eol]) => field + text.replace(/[\r\n]/g, '') + eol).join('') + end,
    );

  it('gives the same events however the bytes are cut', () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 6 }),
        fc.array(fc.nat(400), { maxLength: 40 }),
        (events, cuts) => {
          const bytes = Buffer.from(events.join(''));
          const places = [
            ...new Set([0, ...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length]),
          ].sort((a, b) => a - b);
          const splitter = new EventSplitter();
          const found: string[] = [];
          for (let i = 1; i < places.length; i++) {
            for (const each of splitter.push(bytes.subarray(places[i - 1], places[i])))
              found.push(each.toString());
          }
          expect(found).toEqual(events);
          expect(splitter.held).toBe(0);
        },
      ),
    );
  });

  it('gives the same events byte by byte', () => {
    const text = 'data: a\r\n\r\ndata: é\n\n: c\r\n\r\n';
    const splitter = new EventSplitter();
    const found = [...Buffer.from(text)].flatMap((byte) => splitter.push(Buffer.from([byte])));
    expect(found.map(String)).toEqual(['data: a\r\n\r\n', 'data: é\n\n', ': c\r\n\r\n']);
  });
});

describe('eventData', () => {
  it.each([
    ['data: {"a":1}\n\n', '{"a":1}'],
    ['data:{"a":1}\r\n\r\n', '{"a":1}'],
    ['event: x\nid: 1\ndata: a\ndata: b\n\n', 'a\nb'],
    ['data: a\r\ndata: b\r\n\r\n', 'a\nb'],
    [': comment\n\n', undefined],
    ['data: [DONE]\n\n', '[DONE]'],
  ])('of %j is %j', (event, data) => {
    expect(eventData(Buffer.from(event))).toBe(data);
  });
});

describe('classify', () => {
  const choice = (delta: object, finish: string | null = null) =>
    JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] });
  it.each([
    [undefined, 'empty'],
    ['[DONE]', 'done'],
    [choice({ role: 'assistant', content: '' }), 'waiting'],
    [choice({ role: 'assistant', content: null }), 'waiting'],
    [choice({ content: 'x' }), 'content'],
    [choice({ reasoning_content: 'x' }), 'content'],
    [choice({ refusal: 'no' }), 'content'],
    [choice({ tool_calls: [{ index: 0 }] }), 'content'],
    [choice({ tool_calls: [] }), 'waiting'],
    [choice({}, 'stop'), 'content'],
    ['{"choices":[{"text":"x"}]}', 'content'],
    ['{"choices":[{"text":""}]}', 'waiting'],
    ['{"choices":[],"usage":{}}', 'waiting'],
    ['{"error":{"message":"x"}}', 'error'],
    ['{"error":null,"choices":[]}', 'waiting'],
    ['not json', 'content'],
    ['{"type":"response.created"}', 'content'],
  ])('%s is %s', (data, kind) => {
    expect(classify(data)).toBe(kind);
  });
});

describe('inspect', () => {
  const of = (data: string) => inspect(Buffer.from(`data: ${data}\n\n`));
  it('sees the end, errors, usage and finish reasons, and nothing in the words', () => {
    expect(of('[DONE]').done).toBe(true);
    expect(of('{"error":{"message":"boom","code":1}}').error).toBe(true);
    expect(of('{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}')).toMatchObject({
      usageOnly: true,
      usage: { tokensIn: 5, tokensOut: 2 },
      delta: false,
    });
    expect(of('{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}')).toMatchObject({
      finished: true,
      usageOnly: false,
    });
    const words = of(
      '{"choices":[{"delta":{"content":"[DONE] \\"error\\": \\"usage\\":{}"},"finish_reason":null}]}',
    );
    expect(words).toMatchObject({
      done: false,
      error: false,
      usage: undefined,
      finished: false,
      delta: true,
    });
  });
});
