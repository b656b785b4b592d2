import { describe, expect, it } from 'vitest';
import { gateway, json, sent } from './sessions-world.ts';
import { NOTHING } from './virtual-gateway.ts';

describe('what is asked wrongly', () => {
  const user = { role: 'user', content: 'x' };
  it.each([
    ['no model', { model: undefined }, 'model'],
    ['no input', { input: undefined }, 'input'],
    ['an empty list', { input: [] }, 'input'],
    ['thoughts alone', { input: [{ type: 'reasoning', summary: [] }], instructions: 'x' }, 'input'],
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
    [
      'two outputs of one call',
      {
        input: [
          { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
          { type: 'function_call_output', call_id: 'c', output: 'x' },
          { type: 'function_call_output', call_id: 'c', output: 'y' },
        ],
      },
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
    `{"model":"chat","input":"x","y":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
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
