import { describe, expect, it } from 'vitest';
import { seededRandom } from '../kernel/random.ts';
import { readPiece, usageTokens } from './answer.ts';
import { openaiRequests, promptMaker } from './requests.ts';
import { oipRequests, readInputs } from './tensors.ts';

const event = (value: unknown) => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
const delta = (value: object) => event({ choices: [{ index: 0, delta: value, finish_reason: null }] });

describe('a piece of a stream', () => {
  it.each([
    ['words', delta({ content: 'hi' }), { token: true }],
    ['words of a completion', event({ choices: [{ text: 'hi' }] }), { token: true }],
    ['reasoning', delta({ reasoning_content: 'hm' }), { token: true }],
    ['a tool call', delta({ tool_calls: [{ index: 0 }] }), { token: true }],
    ['a role alone', delta({ role: 'assistant', content: '' }), { token: false }],
    ['the end', event({ choices: [{ delta: {}, finish_reason: 'stop' }] }), { token: false, done: false }],
    [
      'usage',
      event({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 9 } }),
      { token: false, usage: { read: 1, output: 9 } },
    ],
    ['an error', event({ error: { message: 'no' } }), { error: true }],
    ['what is no JSON', Buffer.from('data: {\n\n'), { error: true }],
    ['the mark of the end', Buffer.from('data: [DONE]\r\n\r\n'), { done: true, error: false }],
    ['a heartbeat', Buffer.from(': ping\n\n'), { token: false, error: false }],
  ])('is known for %s', (_, bytes, piece) => expect(readPiece(bytes)).toMatchObject(piece));
});

describe('a whole answer', () => {
  it('tells its tokens where it has usage', () => {
    const answer = JSON.stringify({ usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 } });
    expect(usageTokens([Buffer.from(answer.slice(0, 20)), Buffer.from(answer.slice(20))])).toEqual({
      read: 3,
      output: 5,
    });
    const cached =
      '{"usage":{"prompt_tokens":30,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":24}}}';
    expect(usageTokens([Buffer.from(cached)])).toEqual({ read: 6, output: 5 });
    for (const text of ['{}', 'no "usage"', '{"usage":null}'])
      expect(usageTokens([Buffer.from(text)])).toBeUndefined();
  });
});

describe('a request', () => {
  it('has a prompt of the asked length, unlike the others, the same for a seed', () => {
    const [first, again] = [promptMaker(seededRandom(1)), promptMaker(seededRandom(1))];
    const prompts = [10, 10, 100_000].map((tokens) => first(tokens));
    expect(prompts.map((prompt) => prompt.split(' ').length)).toEqual([10, 10, 100_000]);
    expect(prompts[0]).not.toBe(prompts[1]);
    expect([10, 10, 100_000].map((tokens) => again(tokens))).toEqual(prompts);
  });

  it('asks for the length of the answer, and for usage with a stream', () => {
    const settings = { base: '/v1', model: 'm', kind: 'chat', stream: true } as const;
    const request = openaiRequests(settings, seededRandom(1))({ atMs: 0, promptTokens: 5, outputTokens: 9 });
    expect(request).toMatchObject({ path: '/v1/chat/completions', streams: true });
    expect(JSON.parse(request.body)).toMatchObject({
      model: 'm',
      max_tokens: 9,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it('has tensors as the model describes them', () => {
    const inputs = readInputs({
      inputs: [
        { name: 'x', datatype: 'FP32', shape: [-1, -1, 2] },
        { name: 'y', datatype: 'INT64', shape: [-1] },
        { name: 'z', datatype: 'BYTES', shape: [1, 1] },
      ],
    });
    if (typeof inputs === 'string') throw new Error(inputs);
    const request = oipRequests(
      '/v2',
      'a/b',
      inputs,
      seededRandom(1),
    )({ atMs: 0, promptTokens: 3, outputTokens: 1 });
    expect(request.path).toBe('/v2/models/a%2Fb/infer');
    const body = JSON.parse(request.body) as { inputs: { shape: number[]; data: unknown[] }[] };
    expect(body.inputs.map((one) => [one.shape, one.data.length])).toEqual([
      [[1, 3, 2], 6],
      [[1], 1],
      [[1, 1], 1],
    ]);
    expect((body.inputs[2]!.data[0] as string).split(' ')).toHaveLength(3);
    expect(readInputs({ inputs: [{ name: 'h', datatype: 'FP16', shape: [1] }] })).toMatch(/FP16/);
    expect(readInputs({})).toMatch(/no inputs/);
  });
});
