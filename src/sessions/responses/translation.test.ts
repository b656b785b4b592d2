import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../protocols/json-object.ts';
import type { Item } from '../items.ts';
import { Refused } from '../refused.ts';
import { Output } from './output.ts';
import { chatMessages } from './transcript.ts';

/** What is made of chats, and into chats, whatever engines and callers say. */

const word = fc.string({ unit: 'grapheme', maxLength: 8 });
const delta = fc.oneof(
  fc.record({ content: word }),
  fc.record({ reasoning_content: word }),
  fc.record({ refusal: word }),
  fc.record({
    tool_calls: fc.array(fc.record({ index: fc.nat(3), function: fc.record({ arguments: word }) }), {
      minLength: 1,
      maxLength: 3,
    }),
  }),
  fc.constant({}),
  fc.record({ content: fc.constant(null), tool_calls: fc.anything() }),
);

describe('an answer', () => {
  it('has the words of an engine that tells them in parts', () => {
    const output = new Output(() => undefined);
    output.take({
      content: [{ type: 'text', text: 'Hel' }, { type: 'image' }, null, { type: 'text', text: 'lo' }],
    });
    output.finish('completed');
    expect(output.items).toMatchObject([
      { type: 'message', content: [{ type: 'output_text', text: 'Hello' }] },
    ]);
  });

  it('is told by events that join to what it is in the end', () => {
    fc.assert(
      fc.property(fc.array(delta, { maxLength: 30 }), (deltas) => {
        const events: Json[] = [];
        // As they go over the wire: what comes later changes nothing of them.
        const output = new Output(
          (type, members) => void events.push({ type, ...JSON.parse(JSON.stringify(members)) }),
        );
        for (const each of deltas) output.take(each as Json);
        output.finish('completed');
        const done = events.filter(({ type }) => type === 'response.output_item.done');
        const inOrder = [...done].sort((a, b) => Number(a['output_index']) - Number(b['output_index']));
        expect(inOrder.map(({ item }) => item)).toEqual(JSON.parse(JSON.stringify(output.items)));
        const added = events.filter(({ type }) => type === 'response.output_item.added');
        expect(added.map(({ output_index: at }) => at)).toEqual(output.items.map((_, at) => at));
        for (const { id, ...item } of output.items) {
          const told = events
            .filter((event) => String(event['type']).endsWith('.delta') && event['item_id'] === id)
            .map((event) => event['delta'])
            .join('');
          const parts = (item['content'] as Json[] | undefined) ?? [];
          const whole =
            item['type'] === 'function_call'
              ? item['arguments']
              : parts.map((part) => part['text'] ?? part['refusal']).join('');
          expect(told).toBe(whole);
        }
        const words = (key: string) => deltas.map((each) => (each as Json)[key] ?? '').join('');
        const said = output.items.flatMap((item) =>
          item['type'] === 'message' ? (item['content'] as Json[]) : [],
        );
        expect(said.map((part) => part['text'] ?? '').join('')).toBe(words('content'));
        expect(said.map((part) => part['refusal'] ?? '').join('')).toBe(words('refusal'));
        expect(output.items.some(({ type }) => type !== 'reasoning')).toBe(true);
      }),
    );
  });
});

const id = fc.constantFrom('a', 'b', 'c');
const item: fc.Arbitrary<Item> = fc.oneof(
  fc.record({
    type: fc.constant('message' as const),
    role: fc.constantFrom('user' as const, 'assistant' as const, 'developer' as const),
    status: fc.constant('completed'),
    content: fc.array(fc.record({ type: fc.constant('input_text'), text: word }), {
      minLength: 1,
      maxLength: 2,
    }),
  }),
  fc.record({
    type: fc.constant('function_call' as const),
    call_id: id,
    name: fc.constant('f'),
    arguments: word,
    status: fc.constant('completed'),
  }),
  fc.record({
    type: fc.constant('function_call_output' as const),
    call_id: id,
    output: word,
    status: fc.constant('completed'),
  }),
  fc.record({ type: fc.constant('reasoning' as const), summary: fc.constant<unknown[]>([]) }),
);

describe('a transcript', () => {
  it('never has a call without its output, nor an output without its call', () => {
    let made = 0;
    fc.assert(
      fc.property(fc.array(item, { maxLength: 8 }), (items) => {
        let messages: Json[];
        try {
          messages = chatMessages(items, undefined);
        } catch (error) {
          expect(error).toBeInstanceOf(Refused);
          return;
        }
        made++;
        let open = new Set<unknown>();
        for (const message of messages) {
          if (message['role'] === 'tool') {
            expect(open.has(message['tool_call_id'])).toBe(true);
            continue;
          }
          const calls = (message['tool_calls'] as { id: string }[] | undefined) ?? [];
          open = new Set(calls.map((call) => call.id));
        }
        const text = (value: unknown) => JSON.stringify(value);
        for (const each of items) {
          if (each.type === 'message')
            expect(text(messages)).toContain(
              text(each.content.map((part) => part['text']).join('')).slice(1, -1),
            );
        }
      }),
      { numRuns: 2000 },
    );
    expect(made).toBeGreaterThan(100);
  });
});
