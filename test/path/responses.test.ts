import { describe, expect, it } from 'vitest';
import { StoreError } from '../../src/store/contracts.ts';
import type { SessionsStore } from '../../src/store/sessions.ts';
import { eventsOf, SessionsGateway } from './sessions-world.ts';
import { chatAnswer, chatStream, type Engine, failing, NOTHING, never, status } from './virtual-gateway.ts';

const ONE = 'http://a:1';
const TWO = 'http://b:1';

const backend = (origin: string) => ({ engine: 'openai', model: 'm', endpoints: [`${origin}/v1`] });
const config = (route: object = {}, more: object = {}) => ({
  backends: { b1: backend(ONE), b2: backend(TWO) },
  routes: { chat: { targets: [{ backend: 'b1' }], deadline: '5s', ...route } },
  ...more,
});

function gateway(
  engine: Engine = chatAnswer('Hello'),
  route: object = {},
  changed?: (store: SessionsStore) => SessionsStore,
) {
  const it = new SessionsGateway(config(route), changed);
  it.engines.set(ONE, engine);
  it.engines.set(TWO, engine);
  return it;
}

const json = (caller: { text: string }) => JSON.parse(caller.text);
const sent = (it: SessionsGateway) => JSON.parse(String(it.served.at(-1)!.request.body));

/** A whole answer of one choice. */
function answering(choice: object, usage?: object): Engine {
  return ({ sink, time }) =>
    void time.set(5, () => {
      sink.onHead(200, { 'content-type': 'application/json' });
      sink.onData(Buffer.from(JSON.stringify({ choices: [{ index: 0, ...choice }], usage })));
      sink.onEnd();
    });
}

/** The deltas of a stream, then its finish reason. */
function streaming(deltas: object[], finish = 'stop'): Engine {
  return ({ sink, time }) =>
    void time.set(5, () => {
      const chunk = (choice: object) =>
        Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
      sink.onHead(200, { 'content-type': 'text/event-stream' });
      for (const delta of deltas) sink.onData(chunk({ delta }));
      sink.onData(chunk({ delta: {}, finish_reason: finish }));
      sink.onData(Buffer.from('data: [DONE]\n\n'));
      sink.onEnd();
    });
}

describe('what is asked wrongly', () => {
  const user = { role: 'user', content: 'x' };
  it.each([
    ['no model', { model: undefined }, 'model'],
    ['no input', { input: undefined }, 'input'],
    ['an empty list', { input: [] }, 'input'],
    ['a number', { input: 5 }, 'input'],
    ['a role that is none', { input: [{ role: 'tool', content: 'x' }] }, 'input[0].role'],
    ['an item of another kind', { input: [user, { type: 'computer_call' }] }, 'input[1].type'],
    [
      'a part of a chat',
      { input: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] },
      'input[0].content[0].type',
    ],
    [
      'a file',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] },
      'input[0].content[0].type',
    ],
    [
      'an image by file',
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      'input[0].content[0].file_id',
    ],
    [
      'an image of the system',
      { input: [{ role: 'system', content: [{ type: 'input_image', image_url: 'x' }] }] },
      'input[0].content[0].type',
    ],
    ['no content', { input: [{ role: 'user' }] }, 'input[0].content'],
    [
      'an output without a call',
      { input: [{ type: 'function_call_output', call_id: 'c', output: 'x' }] },
      'input',
    ],
    [
      'a call without an output',
      { input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }, user] },
      'input',
    ],
    ['two histories', { previous_response_id: 'resp_1', conversation: 'conv_1' }, 'previous_response_id'],
    ['a conversation that is none', { conversation: 7 }, 'conversation'],
    ['background', { background: true }, 'background'],
    ['a prompt', { prompt: { id: 'p' } }, 'prompt'],
    ['messages', { messages: [user] }, 'messages'],
    ['the maximum of a chat', { max_tokens: 5 }, 'max_tokens'],
    ['several answers', { n: 2 }, 'n'],
    ['no tokens', { max_output_tokens: 0 }, 'max_output_tokens'],
    ['heat', { temperature: 3 }, 'temperature'],
    ['a truncation that is none', { truncation: 'middle' }, 'truncation'],
    ['a hosted tool', { tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    ['a tool of a chat', { tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools[0]'],
    ['a choice without tools', { tool_choice: 'required' }, 'tool_choice'],
    [
      'a choice of none of the tools',
      { tools: [{ type: 'function', name: 'f' }], tool_choice: { type: 'function', name: 'g' } },
      'tool_choice.name',
    ],
    ['a hosted choice', { tool_choice: { type: 'file_search' } }, 'tool_choice.type'],
    ['a format that is none', { text: { format: { type: 'xml' } } }, 'text.format.type'],
    [
      'a format without a schema',
      { text: { format: { type: 'json_schema', name: 'x' } } },
      'text.format.schema',
    ],
    ['a summary', { reasoning: { summary: 'detailed' } }, 'reasoning.summary'],
    ['what cannot be included', { include: ['reasoning.encrypted_content'] }, 'include'],
    ['metadata of numbers', { metadata: { a: 1 } }, 'metadata'],
    [
      'too much metadata',
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, 'v'])) },
      'metadata',
    ],
    ['options of a stream without one', { stream_options: {} }, 'stream_options'],
    ['store as text', { store: 'no' }, 'store'],
  ])('%s is refused, and no engine is asked', async (_, body, param) => {
    const it = gateway();
    const caller = await it.turn(body);
    expect([caller.status, json(caller).error.code, json(caller).error.param]).toEqual([
      400,
      'invalid_request',
      param,
    ]);
    expect(it.served).toEqual([]);
    expect(it.taken).toEqual(NOTHING);
  });

  it.each([
    '{no json',
    '[1]',
    '"x"',
    '{"model":"chat","input":"x","input":"y"}',
    Buffer.from([0x7b, 0xff, 0x7d]),
  ])('a body that is none: %s', async (body) => {
    const it = gateway();
    expect((await it.call('POST', '/v1/responses', body)).status).toBe(400);
    expect(it.served).toEqual([]);
  });

  it.each([
    ['PUT', '/v1/responses', 405],
    ['GET', '/v1/responses', 405],
    ['POST', '/v1/responses/resp_1', 405],
    ['GET', '/v1/responses/resp_1', 404],
    ['GET', '/v1/responses/resp_1/output', 404],
    ['POST', '/v1/responses/resp_1/cancel', 404],
    ['PATCH', '/v1/conversations', 405],
    ['GET', '/v1/conversations/conv_1', 404],
    ['GET', '/v1/conversations/conv_1/turns', 404],
    ['GET', '/v1/conversations/..%2f..', 404],
  ])('%s %s is %i', async (method, target, expected) => {
    expect((await gateway().call(method, target)).status).toBe(expected);
  });
});

describe('what an engine is asked', () => {
  it('is the chat that the response means', async () => {
    const it = gateway();
    await it.turn({
      instructions: 'Be brief.',
      input: [
        { role: 'developer', content: 'rule' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'see ' },
            { type: 'input_image', image_url: 'data:x', detail: 'low' },
          ],
        },
        { type: 'reasoning', summary: [] },
        { role: 'assistant', content: [{ type: 'output_text', text: 'seen', annotations: [] }] },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_text', text: 'b' },
          ],
        },
      ],
      max_output_tokens: 9,
      temperature: 0,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { verbosity: 'low', format: { type: 'json_object' } },
      tools: [
        { type: 'function', name: 'f', parameters: {} },
        { type: 'function', name: 'g' },
      ],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'g' }] },
      parallel_tool_calls: false,
      include: ['message.output_text.logprobs'],
      top_logprobs: 2,
      user: 'ann',
      top_k: 40,
    });
    expect(sent(it)).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'system', content: 'rule' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'see ' },
            { type: 'image_url', image_url: { url: 'data:x', detail: 'low' } },
          ],
        },
        { role: 'assistant', content: 'seen' },
        { role: 'user', content: 'ab' },
      ],
      max_completion_tokens: 9,
      temperature: 0,
      reasoning_effort: 'low',
      verbosity: 'low',
      response_format: { type: 'json_object' },
      tools: [{ type: 'function', function: { name: 'g' } }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      logprobs: true,
      top_logprobs: 2,
      user: 'ann',
      top_k: 40,
    });
  });

  it('names items that were kept before', async () => {
    const it = gateway();
    const first = json(await it.turn({ input: 'one' }));
    const asked = json(await it.call('GET', `/v1/responses/${first.id}/input_items`)).data[0].id;
    await it.turn({
      input: [
        { id: asked },
        { type: 'item_reference', id: first.output[0].id },
        { role: 'user', content: 'two' },
      ],
    });
    expect(sent(it).messages.map(({ content }: { content: string }) => content)).toEqual([
      'one',
      'Hello',
      'two',
    ]);
    const none = await it.turn({ input: [{ type: 'item_reference', id: 'msg_0' }] });
    expect([none.status, json(none).error.param]).toEqual([404, 'input']);
  });
});

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

describe('a session', () => {
  const sticky = { affinity: 'session', targets: [{ backend: 'b1' }, { backend: 'b2' }] };

  it('stays with the backend that answered its first turn', async () => {
    const it = gateway(chatAnswer('Hello'), sticky);
    const homes = new Set<string>();
    for (let tree = 0; tree < 8; tree++) {
      let previous: string | null = null;
      const answered = new Set<string>();
      for (let turn = 0; turn < 6; turn++) {
        const caller = await it.turn({ previous_response_id: previous });
        answered.add(caller.answerHeader('x-armature-backend')!);
        previous = json(caller).id;
      }
      expect(answered.size).toBe(1);
      homes.add([...answered][0]!);
    }
    expect(homes.size).toBe(2);
    expect(it.facts.filter((fact) => fact.kind === 'event' && fact.event.type === 'session-moved')).toEqual(
      [],
    );
  });

  it.each([
    ['weight-zero', { ...sticky, targets: [{ backend: 'b1', weight: 0 }, { backend: 'b2' }] }],
    ['target-removed', { ...sticky, targets: [{ backend: 'b2' }] }],
    [
      'no-affinity',
      {
        targets: [
          { backend: 'b1', weight: 1 },
          { backend: 'b2', weight: 10_000 },
        ],
      },
    ],
  ])('that moves tells whence and why: %s', async (reason, route) => {
    const it = gateway(chatAnswer('Hello'), { ...sticky, targets: [{ backend: 'b1' }] });
    const { id } = json(await it.call('POST', '/v1/conversations'));
    await it.turn({ conversation: id });
    it.load(config(route));
    await it.turn({ conversation: id });
    const moves = it.facts.flatMap((fact) =>
      fact.kind === 'event' && fact.event.type === 'session-moved' ? [fact.event] : [],
    );
    expect(moves).toMatchObject([
      {
        subject: `session:${id}`,
        causes: [expect.stringMatching(/^req_/)],
        data: { from: 'b1', to: 'b2', reason },
      },
    ]);
  });

  it('that moves as its backend is unwell says so', async () => {
    const it = gateway(chatAnswer('Hello'), { ...sticky, targets: [{ backend: 'b1' }] });
    const first = json(await it.turn({}));
    it.load(config(sticky));
    it.engines.set(ONE, failing());
    let previous = first.id;
    for (let turn = 0; turn < 8; turn++)
      previous = json(await it.turn({ previous_response_id: previous })).id ?? previous;
    const moves = it.facts.flatMap((fact) =>
      fact.kind === 'event' && fact.event.type === 'session-moved' ? [fact.event.data['reason']] : [],
    );
    expect(
      moves.every((reason) => ['attempt-failed', 'endpoints-unwell', 'weights'].includes(String(reason))),
    ).toBe(true);
  });

  it('is written by one at a time, and free after whoever left, failed or ran out of time', async () => {
    const it = gateway(never);
    const { id } = json(await it.call('POST', '/v1/conversations'));
    const write = () => it.send('POST', '/v1/responses', { model: 'chat', input: 'x', conversation: id });
    for (const end of ['leaves', 'late', 'drained'] as const) {
      const first = write();
      await it.time.advance(10);
      const second = write();
      await it.time.advance(10);
      expect([second.status, json(second).error.code]).toEqual([409, 'conflict']);
      const item = await it.send('POST', `/v1/conversations/${id}/items`, {
        items: [{ role: 'user', content: 'x' }],
      });
      await it.time.advance(10);
      expect(item.status).toBe(409);
      if (end === 'leaves') first.leave();
      else if (end === 'late') await it.time.advance(10_000);
      else it.path.endAll();
      await it.time.advance(10);
    }
    it.engines.set(ONE, chatAnswer('Hello'));
    expect((await it.turn({ conversation: id })).status).toBe(200);
    expect(it.taken).toEqual(NOTHING);
    expect(it.time.pending).toBe(0);
  });

  it('is held for as long as its turn takes', async () => {
    const it = gateway(chatAnswer('Hello', 100_000), { deadline: '200s' });
    const { id } = json(await it.call('POST', '/v1/conversations'));
    const first = it.send('POST', '/v1/responses', { model: 'chat', input: 'x', conversation: id });
    for (let at = 0; at < 9; at++) expect((await it.turn({ conversation: id })).status).toBe(409);
    await it.time.advance(20_000);
    expect(first.status).toBe(200);
  });

  it('whose turn was removed while it was answered keeps nothing of it', async () => {
    const it = gateway();
    const first = json(await it.turn({}));
    it.engines.set(ONE, chatAnswer('Hello', 1000));
    const second = it.send('POST', '/v1/responses', {
      model: 'chat',
      input: 'x',
      previous_response_id: first.id,
    });
    await it.time.advance(10);
    await it.store.removeResponse({ tenant: 'open', id: first.id });
    await it.time.advance(2000);
    expect([second.status, json(second).error.code]).toEqual([409, 'conflict']);
    expect(await it.store.list({ limit: 10 })).toEqual([]);
  });
});
