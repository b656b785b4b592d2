import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentAs, StreamReframing } from './reframe.ts';

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

describe('a whole answer', () => {
  const head = { id: 'x', created: 1, model: 'm', usage: { prompt_tokens: 1 } };
  const chat = {
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'length' }],
  };
  const completion = {
    ...head,
    object: 'text_completion',
    choices: [{ index: 0, text: 'hi', logprobs: null, finish_reason: 'length' }],
  };

  it('of a chat is told as a completion, and the other way round', () => {
    expect(documentAs('completions', chat)).toEqual(completion);
    expect(documentAs('chat', completion)).toMatchObject(chat);
  });

  it('that is none stays none', () => {
    for (const value of [
      undefined,
      null,
      1,
      [],
      {},
      { choices: 'many' },
      { choices: [null] },
      { choices: [{}] },
    ]) {
      expect(documentAs('chat', value)).toBeUndefined();
      expect(documentAs('completions', value)).toBeUndefined();
    }
  });
});

describe('a stream', () => {
  it('of a chat is told as one of completions, errors and ends as they are', () => {
    const stream = new StreamReframing('completions');
    const said = stream.push(
      [
        event({
          id: 'x',
          object: 'chat.completion.chunk',
          choices: [{ index: 0, delta: { role: 'assistant' } }],
        }),
        event({ id: 'x', choices: [{ index: 0, delta: { content: 'hi' } }] }),
        event({ id: 'x', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
        event({ id: 'x', choices: [], usage: { prompt_tokens: 1 } }),
        ': still here\n\n',
        event({ error: { message: 'no' } }),
        'data: [DONE]\n\n',
      ].join(''),
    );
    const events = said.split('\n\n').slice(0, -1);
    expect(events.slice(-3)).toEqual([': still here', 'data: {"error":{"message":"no"}}', 'data: [DONE]']);
    const chunks = events.slice(0, 4).map((each) => JSON.parse(each.slice(6)));
    expect(chunks.map(({ object }) => object)).toEqual(Array(4).fill('text_completion'));
    expect(chunks.map(({ choices }) => choices[0]?.text)).toEqual(['', 'hi', '', undefined]);
    expect(chunks[2].choices[0].finish_reason).toBe('stop');
    expect(chunks[3].usage).toEqual({ prompt_tokens: 1 });
  });

  it('of completions begins each choice with a role', () => {
    const stream = new StreamReframing('chat');
    const deltas = ['a', 'b'].map(
      (text) => JSON.parse(stream.push(event({ choices: [{ index: 0, text }] })).slice(6)).choices[0].delta,
    );
    expect(deltas).toEqual([{ role: 'assistant', content: 'a' }, { content: 'b' }]);
  });

  it('bears whatever an engine sends, in whatever pieces', () => {
    const odd = fc.oneof(
      fc.json(),
      fc.string(),
      fc.constantFrom('{"choices":[null,{"index":-1},{"index":1e9,"text":3}]}'),
    );
    fc.assert(
      fc.property(fc.array(odd), fc.constantFrom('chat' as const, 'completions' as const), (values, kind) => {
        const stream = new StreamReframing(kind);
        for (const value of values) stream.push(Buffer.from(`data: ${value}\n\n`));
        expect(stream.push('data: [DONE]\n\n')).toContain('[DONE]');
      }),
    );
  });
});
