import { describe, expect, it } from 'vitest';
import { readGolden } from './golden.ts';

const MESSAGES = [{ role: 'user', content: 'Refund or reply?' }];
const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 1], data: [1] }];

describe('a line of a golden set', () => {
  it.each([
    ['chat', { messages: MESSAGES, max_tokens: 4 }],
    ['completion', { prompt: 'Refund or reply?' }],
    ['embedding', { input: ['a', 'b', 'c'] }],
    ['tensors', { inputs }],
  ])('that is the body of a call is a prompt of kind %s, wrapped or not', (kind, request) => {
    const [bare, wrapped, named] = [request, { request }, { kind, request }].map(
      (line) => readGolden(JSON.stringify(line)).prompts[0],
    );
    expect(bare).toMatchObject({ id: '1', kind, request });
    expect(wrapped).toEqual(bare);
    expect(named).toEqual(bare);
  });

  it('keeps its id, decision and label out of the body', () => {
    const line = { id: 't1', messages: MESSAGES, decision: 'first-word', label: 'refund' };
    expect(readGolden(JSON.stringify(line)).prompts).toEqual([
      {
        id: 't1',
        kind: 'chat',
        request: { messages: MESSAGES },
        decision: { by: 'first-word' },
        label: 'refund',
      },
    ]);
  });

  it.each([
    ['"Refund or reply?"', 'line 1: expected an object, such as {"messages": [...]}'],
    ['[1]', 'line 1: expected an object, such as {"messages": [...]}'],
    ['{"message": "Refund or reply?"}', 'line 1: expected a request with messages, prompt, input, inputs'],
    ['{"request": {"messages": []}, "lable": "x"}', 'lable'],
    ['{"kind": "image", "messages": []}', 'line 1: kind: expected chat, completion, embedding or tensors'],
    ['{"kind": "chat"}', 'line 1: request: '],
    ['Refund or reply?', 'line 1: '],
  ])('%s is refused with its line, and what was expected', (text, message) => {
    expect(() => readGolden(text)).toThrow(message);
  });
});
