import { describe, expect, it } from 'vitest';
import { type Engine, VirtualGateway } from './virtual-gateway.ts';

/** What workers observe of answers, and how many. */

const ENGINE = 'http://e:1';
const backend = (engine: string) => ({
  engine,
  model: 'm',
  endpoints: [engine === 'openai' ? `${ENGINE}/v1` : ENGINE],
});

function gatewayWith(drift: object, engine: Engine, more: object = {}): VirtualGateway {
  const gateway = new VirtualGateway({
    backends: { b1: backend('openai'), t1: backend('triton') },
    routes: {
      chat: { targets: [{ backend: 'b1' }], ...more, drift },
      tensor: { targets: [{ backend: 't1' }], drift },
      plain: { targets: [{ backend: 'b1' }] },
    },
  });
  gateway.engines.set(ENGINE, engine);
  return gateway;
}

const json =
  (document: object, headers: Record<string, string> = {}): Engine =>
  ({ sink }) => {
    sink.onHead(200, { 'content-type': 'application/json', ...headers });
    sink.onData(Buffer.from(JSON.stringify(document)));
    sink.onEnd();
  };

const events =
  (...chunks: object[]): Engine =>
  ({ sink }) => {
    sink.onHead(200, { 'content-type': 'text/event-stream' });
    for (const each of chunks) sink.onData(Buffer.from(`data: ${JSON.stringify(each)}\n\n`));
    sink.onData(Buffer.from('data: [DONE]\n\n'));
    sink.onEnd();
  };

const logprob = (value: number, ...tops: number[]) => ({
  token: 'a',
  logprob: value,
  top_logprobs: tops.map((each) => ({ token: 'a', logprob: each })),
});
const answer = (choice: object) => ({
  choices: [
    { index: 0, message: { role: 'assistant', content: 'Hello there' }, finish_reason: 'stop', ...choice },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});
const chatOf = (model: string, more: object = {}) => ({
  model,
  messages: [{ role: 'user', content: 'Good day to you' }],
  ...more,
});

const WORDS = {
  features: [
    'promptTokens',
    'answerTokens',
    'finishReason',
    'promptLanguage',
    'answerLanguage',
    'confidence',
    'entropy',
  ],
};

describe('observations', () => {
  it('tell what a chat and its answer are like, and texts for no longer than their language takes', async () => {
    const half = Math.log(0.5);
    const gateway = gatewayWith(
      WORDS,
      json(answer({ logprobs: { content: [logprob(half, half, half), logprob(0, 0)] } })),
    );
    const caller = gateway.send('POST', '/v1/chat/completions', chatOf('chat'), { 'x-request-id': 'mine' });
    await gateway.time.advance(100);
    expect(caller.status).toBe(200);
    const [seen] = gateway.observations;
    expect(seen).toMatchObject({
      route: 'chat',
      backend: 'b1',
      model: 'm',
      request: caller.answerHeader('x-armature-id'),
      requestId: 'mine',
      texts: { promptLanguage: 'Good day to you', answerLanguage: 'Hello there' },
      score: Math.exp(half / 2),
    });
    expect(seen!.values).toEqual({
      promptTokens: 3,
      answerTokens: 2,
      finishReason: 'stop',
      confidence: half / 2,
      entropy: Math.log(2) / 2,
    });
  });

  it('tell the same of a stream, and do not take what an engine does not tell for nothing', async () => {
    const chunk = (delta: object, finish: string | null = null) => ({
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const gateway = gatewayWith(
      WORDS,
      events(chunk({ role: 'assistant', content: '' }), chunk({ content: 'Hello' }), chunk({}, 'length')),
    );
    const caller = gateway.send('POST', '/v1/chat/completions', chatOf('chat', { stream: true }));
    await gateway.time.advance(100);
    expect(caller.text).toContain('[DONE]');
    expect(gateway.observations[0]!.values).toEqual({
      promptTokens: null,
      answerTokens: 2,
      finishReason: 'length',
    });
    expect(gateway.observations[0]!.texts!['answerLanguage']).toBe('Hello');
  });

  it('tell an embedding by 16 numbers, as list or in base 64, near to each other where the vectors are', async () => {
    const vector = Array.from({ length: 384 }, (_, i) => Math.sin(i));
    const moved = vector.map((each) => each + 0.001);
    const coded = Buffer.from(Float32Array.from(vector).buffer).toString('base64');
    for (const embedding of [vector, moved, coded, 'no']) {
      const gateway = gatewayWith({ features: ['embedding'] }, json({ data: [{ index: 0, embedding }] }));
      gateway.send('POST', '/v1/embeddings', { model: 'chat', input: 'x' });
      await gateway.time.advance(100);
      const told = gateway.observations[0]!.values['embedding'] as number[];
      if (embedding === 'no') expect(told).toBeNull();
      else {
        expect(told).toHaveLength(16);
        const size = Math.hypot(...told);
        expect(Math.abs(size - Math.hypot(...vector)) / size).toBeLessThan(0.5);
      }
    }
  });

  it('tell tensors by name: a scalar, a shape, the class and how sure it is', async () => {
    const features = [
      'input:age',
      'inputShape:age',
      'output:note',
      'output:none',
      'class',
      'confidence',
      'entropy',
    ];
    const outputs = [
      { name: 'p', datatype: 'FP32', shape: [1, 3], data: [0.25, 0.5, 0.25] },
      { name: 'note', datatype: 'BYTES', shape: [1], data: ['x'.repeat(1000)] },
    ];
    const gateway = gatewayWith({ features, score: 'p' }, json({ model_name: 'm', outputs }));
    const inputs = [{ name: 'age', datatype: 'INT32', shape: [1, 2], data: [41, 7] }];
    const caller = gateway.send('POST', '/v2/models/tensor/infer', { inputs });
    await gateway.time.advance(100);
    expect(caller.status).toBe(200);
    expect(gateway.observations[0]).toMatchObject({ route: 'tensor', score: 0.5, class: '1' });
    expect(gateway.observations[0]!.values).toEqual({
      'input:age': 41,
      'inputShape:age': '1x2',
      'output:note': 'x'.repeat(48),
      'output:none': null,
      class: '1',
      confidence: 0.5,
      entropy: expect.closeTo(1.0397, 3),
    });
  });

  it('are bounded by the sample, one of a session, of routes that are watched, and cost the caller nothing', async () => {
    const gateway = gatewayWith({ sample: '3/s' }, json(answer({})));
    const send = (model: string, session?: string) =>
      gateway.send(
        'POST',
        '/v1/chat/completions',
        chatOf(model),
        session ? { 'x-armature-session': session } : {},
      );
    for (let i = 0; i < 5; i++) send('plain');
    for (let i = 0; i < 5; i++) send('chat', 's1');
    await gateway.time.advance(100);
    expect(gateway.observations).toHaveLength(1);
    for (let i = 0; i < 5; i++) send('chat');
    await gateway.time.advance(100);
    expect(gateway.observations).toHaveLength(3);
    await gateway.time.advance(1000);
    for (let i = 0; i < 5; i++) send('chat', `t${i}`);
    await gateway.time.advance(100);
    expect(gateway.observations).toHaveLength(6);
    expect(gateway.buffers.held).toBe(0);
  });

  it('are made of full answers of engines alone, kept answers and failures not included', async () => {
    let fails = false;
    const gateway = gatewayWith(
      { sample: '1000/s' },
      (served) => (fails ? served.sink.onHead(500, {}) : json(answer({}))(served)),
      { cache: {}, retry: { attempts: 1 } },
    );
    const send = async (more: object) => {
      const caller = gateway.send(
        'POST',
        '/v1/chat/completions',
        chatOf('chat', { temperature: 0, ...more }),
      );
      await gateway.time.advance(200_000);
      return caller.status;
    };
    expect([await send({}), await send({})]).toEqual([200, 200]);
    expect(gateway.observations).toHaveLength(1);
    fails = true;
    expect(await send({ seed: 2 })).toBeGreaterThanOrEqual(500);
    expect(gateway.observations).toHaveLength(1);
  });
});
