import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HostFault } from '../fault.ts';
import { parseChat, parseCompletion } from './request.ts';

const messages = [{ role: 'user', content: 'Hi' }];

describe('a chat request', () => {
  it('is read with the defaults of llama.cpp', () => {
    expect(parseChat({ messages })).toEqual({
      messages: [{ role: 'user', text: 'Hi' }],
      sampling: {
        temperature: 0.8,
        topP: 0.95,
        topK: 40,
        minP: 0.05,
        seed: undefined,
        presencePenalty: 0,
        frequencyPenalty: 0,
        repetitionPenalty: 1,
        bias: new Map(),
      },
      maxTokens: undefined,
      stop: [],
      shape: { kind: 'text' },
      topLogprobs: undefined,
      stream: false,
      includeUsage: false,
    });
  });

  it('null means the same as nothing', () => {
    const nothing = parseChat({ messages });
    const names = [
      'temperature',
      'top_p',
      'seed',
      'stop',
      'n',
      'max_tokens',
      'stream',
      'response_format',
      'logit_bias',
    ];
    expect(parseChat({ messages, ...Object.fromEntries(names.map((name) => [name, null])) })).toEqual(
      nothing,
    );
  });

  it('knows both names of the limit, parts of text, and who a developer is', () => {
    const parts = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ];
    const read = parseChat({
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: parts },
      ],
      max_tokens: 5,
      max_completion_tokens: 7,
      stop: 'x',
      top_k: -1,
    });
    expect(read.messages).toEqual([
      { role: 'system', text: 'Be brief.' },
      { role: 'user', text: 'ab' },
    ]);
    expect([read.maxTokens, read.stop, read.sampling.topK]).toEqual([7, ['x'], 0]);
  });

  it('may bring tools that are not to be used', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    expect(() => parseChat({ messages, tools, tool_choice: 'none' })).not.toThrow();
    expect(() => parseChat({ messages, tools })).toThrow('calls no tools');
    expect(() => parseChat({ messages, tools, tool_choice: 'required' })).toThrow('calls no tools');
  });
});

/** Requests that look like ones, with anything in any place. */
const requests = fc.record(
  {
    messages: fc.oneof(
      fc.jsonValue(),
      fc.array(
        fc.record({ role: fc.constantFrom('system', 'user', 'assistant', 'tool'), content: fc.jsonValue() }),
      ),
    ),
    prompt: fc.jsonValue(),
    temperature: fc.jsonValue(),
    stop: fc.jsonValue(),
    logit_bias: fc.jsonValue(),
    logprobs: fc.jsonValue(),
    top_logprobs: fc.jsonValue(),
    response_format: fc.jsonValue(),
    stream: fc.jsonValue(),
    stream_options: fc.jsonValue(),
    tools: fc.jsonValue(),
    max_tokens: fc.jsonValue(),
    seed: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

it.each([
  ['a chat', parseChat],
  ['a completion', parseCompletion],
])('whatever comes as %s is read or refused with its reason', (_what, parse) => {
  fc.assert(
    fc.property(requests, (body) => {
      try {
        const { sampling, stop } = parse(body as Record<string, unknown>);
        expect(sampling.temperature).toBeGreaterThanOrEqual(0);
        expect(stop.every((text) => text.length > 0)).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(HostFault);
        expect((error as HostFault).status).toBe(400);
      }
    }),
    { numRuns: 500 },
  );
});
