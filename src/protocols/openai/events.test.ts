import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventSplitter } from './event-splitter.ts';
import { classify, eventData, eventName, inspect, readUsage } from './events.ts';

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

  it('gives an event as soon as it ends, where lines end with CR alone', () => {
    const splitter = new EventSplitter();
    const found = ['data: a\r\r', 'data: b\r', '\rdata: [DONE]\r\r'].map((piece) =>
      splitter.push(Buffer.from(piece)).map(String),
    );
    expect(found).toEqual([['data: a\r\r'], [], ['data: b\r\r', 'data: [DONE]\r\r']]);
    expect(splitter.held).toBe(0);
  });

  it('tells the same of any line ends, however the bytes are cut', () => {
    const lines = fc.array(fc.constantFrom('data: a', 'data: b', ': c', ''), { maxLength: 12 });
    const ends = fc.array(fc.constantFrom('\n', '\r\n', '\r'), { minLength: 13, maxLength: 13 });
    fc.assert(
      fc.property(lines, ends, fc.array(fc.nat(120), { maxLength: 20 }), (texts, eols, cuts) => {
        const text = `${texts.map((line, i) => line + eols[i]).join('')}\n\n`;
        const bytes = Buffer.from(text);
        const places = [...new Set([0, ...cuts.map((cut) => cut % bytes.length), bytes.length])].sort(
          (a, b) => a - b,
        );
        const splitter = new EventSplitter();
        const found = places
          .slice(1)
          .flatMap((end, i) => splitter.push(bytes.subarray(places[i], end)))
          .flatMap((event) => eventData(event) ?? []);
        const wanted = text
          .replaceAll(/\r\n?/g, '\n')
          .split('\n\n')
          .map((event) => eventData(Buffer.from(event)))
          .filter((data) => data !== undefined);
        expect(found).toEqual(wanted);
      }),
    );
  });

  it('leaves out a byte order mark before the first event', () => {
    const bytes = Buffer.from('\ufeffdata: a\n\ndata: \ufeffb\n\n');
    for (const cut of [0, 1, 2, 3, bytes.length]) {
      const splitter = new EventSplitter();
      const found = [bytes.subarray(0, cut), bytes.subarray(cut)].flatMap((piece) => splitter.push(piece));
      expect(found.map(String)).toEqual(['data: a\n\n', 'data: \ufeffb\n\n']);
    }
  });
});

describe('eventData', () => {
  it.each([
    ['data: {"a":1}\n\n', '{"a":1}'],
    ['data:{"a":1}\r\n\r\n', '{"a":1}'],
    ['event: x\nid: 1\ndata: a\ndata: b\n\n', 'a\nb'],
    ['data: a\r\ndata: b\r\n\r\n', 'a\nb'],
    ['data: a\rdata: b\r\r', 'a\nb'],
    [': ping\ndata: a\n\n', 'a'],
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

  it.each([
    [': ping\nevent: message\nid: 2\ndata: [DONE]\n\n', { done: true, delta: false }],
    ['data: [DONE]\r\r', { done: true }],
    ['data: {"error":"x"}\n\n', { error: true }],
    ['id: 3\nevent: error\ndata: x\n\n', { error: true }],
    [': ping\ndata: {"error":{"message":"boom"}}\n\n', { error: true }],
    ['data: {"choices":[{"delta":{},\ndata: "finish_reason":"stop"}]}\n\n', { finished: true }],
    [
      ': ping\r\ndata: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\r\n\r\n',
      { usageOnly: true, delta: false },
    ],
    ['data: {"choices":null,"usage":{"prompt_tokens":5}}\n\n', { usageOnly: true }],
    [': ping\n\n', { delta: false, done: false, error: false }],
    ['data: {"choices":[{"delta":{"content":"a"},"finish_reason":""}]}\n\n', { finished: false }],
    ['data: {"choices":[{"delta":{},"finish_reason": ""}],"usage":null}\n\n', { finished: false }],
  ])('sees what %j says, whatever stands beside its data', (event, facts) => {
    expect(inspect(Buffer.from(event))).toMatchObject(facts);
  });
});

describe('eventName', () => {
  it.each([
    ['event: error\ndata: x\n\n', 'error'],
    ['id: 1\r\nevent:error\r\ndata: x\r\n\r\n', 'error'],
    [': event: error\ndata: x\n\n', undefined],
    ['data: event: error\n\n', undefined],
  ])('of %j is %j', (event, name) => {
    expect(eventName(Buffer.from(event))).toBe(name);
  });
});

describe('readUsage', () => {
  it('believes only what can be counted', () => {
    expect(readUsage({ prompt_tokens: 5, completion_tokens: 2 })).toEqual({ tokensIn: 5, tokensOut: 2 });
    expect(readUsage({ prompt_tokens: 5, completion_tokens: -2 })).toEqual({ tokensIn: 5, tokensOut: 0 });
    for (const prompt of [-5, 1.5, 1e300, '7', null, undefined])
      expect(readUsage({ prompt_tokens: prompt, completion_tokens: 2 })).toBeUndefined();
    for (const usage of [null, [], 5, 'x']) expect(readUsage(usage)).toBeUndefined();
  });
});
