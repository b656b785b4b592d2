import { describe, expect, it } from 'vitest';
import { StoreError } from '../../src/store/contracts.ts';
import type { SessionsStore } from '../../src/store/sessions.ts';
import { answering, config, eventsOf, gateway, json, ONE, sent, streaming } from './sessions-world.ts';
import { chatAnswer, chatStream, failing, NOTHING, never, status } from './virtual-gateway.ts';

describe('what is answered', () => {
  it('is told with thoughts, refusals and why it is not whole', async () => {
    const message = { role: 'assistant', reasoning_content: 'hm', content: 'So', refusal: 'no' };
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 4,
      prompt_tokens_details: { cached_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    const it = gateway(answering({ message, finish_reason: 'length' }, usage));
    const caller = await it.turn({});
    expect(json(caller)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [
        { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'hm' }] },
        {
          type: 'message',
          status: 'incomplete',
          content: [
            { type: 'output_text', text: 'So' },
            { type: 'refusal', refusal: 'no' },
          ],
        },
      ],
      usage: {
        input_tokens: 9,
        input_tokens_details: { cached_tokens: 3 },
        output_tokens: 4,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 13,
      },
    });
    expect(json(await it.call('GET', `/v1/responses/${json(caller).id}`))).toEqual(json(caller));
  });

  it('is told as a stream by numbered events', async () => {
    const it = gateway(
      streaming(
        [
          { role: 'assistant', content: '' },
          { reasoning: 'h' },
          { reasoning: 'm' },
          { content: 'So' },
          { tool_calls: [{ index: 0, id: 'c1', function: { name: 'f', arguments: '{"a"' } }] },
          { tool_calls: [{ index: 1, function: { name: 'g', arguments: {} } }] },
          { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] },
        ],
        'tool_calls',
      ),
    );
    const events = eventsOf(await it.turn({ stream: true }));
    expect(events.map(({ sequence_number: at }) => at)).toEqual(events.map((_, at) => at));
    expect(
      events.map(({ type, output_index: at }) => `${type.slice('response.'.length)}${at ?? ''}`),
    ).toEqual([
      'created',
      'in_progress',
      'output_item.added0',
      'content_part.added0',
      'reasoning_text.delta0',
      'reasoning_text.delta0',
      'reasoning_text.done0',
      'content_part.done0',
      'output_item.done0',
      'output_item.added1',
      'content_part.added1',
      'output_text.delta1',
      'output_text.done1',
      'content_part.done1',
      'output_item.done1',
      'output_item.added2',
      'function_call_arguments.delta2',
      'output_item.added3',
      'function_call_arguments.delta3',
      'function_call_arguments.delta2',
      'function_call_arguments.done2',
      'output_item.done2',
      'function_call_arguments.done3',
      'output_item.done3',
      'completed',
    ]);
    const { response } = events.at(-1)!;
    expect(response.output.slice(2)).toMatchObject([
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}', status: 'completed' },
      { type: 'function_call', call_id: expect.stringMatching(/^call_/), name: 'g', arguments: '{}' },
    ]);
  });

  it('is a message without words where the engine says nothing', async () => {
    const it = gateway(answering({ message: { role: 'assistant', content: null }, finish_reason: 'stop' }));
    expect(json(await it.turn({})).output).toMatchObject([{ type: 'message', content: [{ text: '' }] }]);
  });

  it('may be longer than what is held of a chat', async () => {
    const content = 'x'.repeat(3 * 1024 * 1024);
    const it = gateway(answering({ message: { role: 'assistant', content }, finish_reason: 'stop' }));
    expect(json(await it.turn({})).output[0].content[0].text).toBe(content);
    expect(it.taken).toEqual(NOTHING);
  });

  it.each([{}, { choices: [] }, { choices: [{ message: 5 }] }, { choices: 'many' }])(
    '%j is no answer',
    async (document) => {
      const it = gateway(
        ({ sink, time }) =>
          void time.set(1, () => {
            sink.onHead(200, { 'content-type': 'application/json' });
            sink.onData(Buffer.from(JSON.stringify(document)));
            sink.onEnd();
          }),
      );
      const caller = await it.turn({});
      expect([caller.status, json(caller).error.code]).toEqual([502, 'backend_error']);
      expect(it.records).toMatchObject([{ outcome: 'failed', code: 'backend_error', status: 502 }]);
    },
  );

  it('is streamed although the engine does not', async () => {
    const it = gateway(chatAnswer('Hello'));
    const events = eventsOf(await it.turn({ stream: true }));
    expect(events.at(-1)).toMatchObject({
      type: 'response.completed',
      response: { usage: { total_tokens: 5 } },
    });
  });

  it.each([false, true])('may be the fixed answer of a ladder (stream: %s)', async (stream) => {
    const it = gateway(failing(), { ladder: [{ answer: 'Busy.' }] });
    const caller = await it.turn({ stream });
    expect(caller.answerHeader('x-armature-degraded')).toBe('answer');
    const response = stream ? eventsOf(caller).at(-1)!.response : json(caller);
    expect(response.output[0].content[0].text).toBe('Busy.');
  });

  it('keeps the status of what an engine refuses, and of what fails', async () => {
    const refusing = gateway(status(422, { error: { message: 'no', type: 't', param: null, code: null } }));
    expect((await refusing.turn({ stream: true })).status).toBe(422);
    const broken = gateway(failing());
    expect((await broken.turn({ stream: true })).status).toBe(502);
    const slow = gateway(never);
    expect(json(await slow.turn({})).error.code).toBe('deadline_exceeded');
    expect((await gateway().turn({ model: 'nothing' })).status).toBe(404);
  });
});

describe('a pipeline', () => {
  it.each([false, true])('is answered and kept like a route (stream: %s)', async (stream) => {
    const it = gateway();
    it.load({
      ...config(),
      pipelines: {
        both: {
          deadline: '5s',
          stages: {
            first: { route: 'chat', messages: [{ role: 'user', content: 'first {{ request.text }}' }] },
            last: {
              route: 'chat',
              after: ['first'],
              messages: [{ role: 'user', content: 'then {{ first }}' }],
            },
          },
        },
      },
    });
    const caller = await it.turn({ model: 'both', input: 'question', stream });
    const response = stream ? eventsOf(caller).at(-1)!.response : json(caller);
    expect(response).toMatchObject({
      status: 'completed',
      model: 'both',
      output: [{ content: [{ text: 'Hello' }] }],
    });
    expect(it.served).toHaveLength(2);
    expect(String(it.served[0]!.request.body)).toContain('first question');
    expect(String(it.served[1]!.request.body)).toContain('then Hello');
    expect(json(await it.call('GET', `/v1/responses/${response.id}`))).toMatchObject({ model: 'both' });
    const next = await it.turn({ model: 'chat', input: 'more', previous_response_id: response.id });
    expect(next.status).toBe(200);
    expect(sent(it).messages).toHaveLength(3);
    expect(it.taken).toEqual(NOTHING);
  });
});

describe('a store in trouble', () => {
  const broken = (name: keyof SessionsStore, trouble: 'full' | 'busy') => (store: SessionsStore) => ({
    ...store,
    [name]: () => Promise.reject(new StoreError(trouble, 'no')),
  });

  it('refuses the end of what it cannot keep, and tells it', async () => {
    const it = gateway(chatAnswer('Hello'), {}, broken('keep', 'full'));
    const caller = await it.turn({});
    expect([caller.status, json(caller).error.code, caller.answerHeader('retry-after')]).toEqual([
      503,
      'overloaded',
      '30',
    ]);
    expect(it.facts.filter(({ kind }) => kind === 'event')).toMatchObject([
      { event: { type: 'response-not-kept' } },
    ]);
    it.engines.set(ONE, chatStream(['a', 'b']));
    const events = eventsOf(await it.turn({ stream: true }));
    expect(events.at(-1)).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'overloaded' } },
    });
    expect(eventsOf(await it.turn({ store: false, stream: true })).at(-1)!.type).toBe('response.completed');
    expect(it.taken).toEqual(NOTHING);
  });

  it('frees a conversation whose turn it cannot keep', async () => {
    const it = gateway(chatAnswer('Hello'), {}, broken('keep', 'busy'));
    const { id } = json(await it.call('POST', '/v1/conversations'));
    expect((await it.turn({ conversation: id })).status).toBe(503);
    expect((await it.turn({ conversation: id })).status).toBe(503);
  });

  it('keeps nobody waiting who only reads', async () => {
    const stuck = () => new Promise<never>(() => undefined);
    const it = gateway(chatAnswer('Hello'), {}, (store) => ({
      ...store,
      response: stuck,
      conversation: stuck,
    }));
    const first = json(await it.turn({}));
    for (const target of [`/v1/responses/${first.id}`, `/v1/conversations/conv_${'0'.repeat(48)}`]) {
      const caller = await it.call('GET', target);
      expect(caller.status).toBeUndefined();
      await it.time.advance(5_000);
      expect(json(caller).error.code).toBe('deadline_exceeded');
    }
    const asked = await it.call('GET', `/v1/responses/${first.id}`, '', { 'x-armature-deadline-ms': '50' });
    expect(json(asked).error.code).toBe('deadline_exceeded');
    expect(it.taken).toEqual(NOTHING);
  });

  it('is waited for within the deadline of the route', async () => {
    const it = gateway(chatAnswer('Hello'), {}, (store) => ({
      ...store,
      chain: () => new Promise<never>(() => undefined),
    }));
    const first = json(await it.turn({}));
    const caller = it.send('POST', '/v1/responses', {
      model: 'chat',
      input: 'x',
      previous_response_id: first.id,
    });
    await it.time.advance(4_999);
    expect(caller.status).toBeUndefined();
    await it.time.advance(1);
    expect(json(caller).error.code).toBe('deadline_exceeded');
    const left = it.send('POST', '/v1/responses', {
      model: 'chat',
      input: 'x',
      previous_response_id: first.id,
    });
    left.leave();
    expect(it.taken).toEqual(NOTHING);
    expect(it.time.pending).toBe(0);
  });
});
