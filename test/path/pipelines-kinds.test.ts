import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { answering, asked, chats, config, open, serve, tensors, textOf, vectors } from './flow-world.ts';
import { NOTHING, type VirtualGateway } from './virtual-gateway.ts';

const say = (content: string) => ({ model: 'search', messages: [{ role: 'user', content }] });

function idle(gateway: VirtualGateway): void {
  expect(gateway.taken).toEqual(NOTHING);
  expect(gateway.time.pending).toBe(0);
}

describe('lists', () => {
  const documents = ['trains to Rome', 'sun and rain', 'rain, rain, rain', 'a train in the sun'];

  it('are ranked by nearness, merged and cut', async () => {
    const gateway = open(
      {
        query: { route: 'vectors', kind: 'embeddings', input: '{{ request.text }}' },
        docs: { route: 'vectors', kind: 'embeddings', inputs: 'request.body.documents' },
        near: { rank: { query: 'query', of: 'docs', top: 2 } },
        scored: { route: 'tensors', tensors: { q: { texts: 'request.body.documents' } } },
        best: { merge: { of: ['near', 'scored'], by: 'score', top: 2 } },
        fused: { merge: { of: ['near', 'scored'], top: 3 } },
        end: { route: 'chat', after: ['best', 'fused'], input: '{{ near }}|{{ best }}|{{ fused }}' },
      },
      {
        vectors: vectors(),
        tensors: tensors(([input]) => [
          { name: 's', datatype: 'FP32', shape: [input!.data.length, 1], data: input!.data.map((_, i) => i) },
        ]),
        chat: chats((text) => text),
      },
    );
    const caller = gateway.chat({ ...say('rain'), documents });
    await gateway.time.advance(100);
    const [near, best, fused] = textOf(caller).split('|');
    expect(near).toBe('rain, rain, rain\nsun and rain');
    expect(best).toBe('a train in the sun\nrain, rain, rain');
    expect(fused!.split('\n')[0]).toBe('rain, rain, rain');
    idle(gateway);
  });

  it('without anything in them are empty, and no engine is asked', async () => {
    const gateway = open(
      {
        query: { route: 'vectors', kind: 'embeddings', input: '{{ request.text }}' },
        docs: { route: 'vectors', kind: 'embeddings', inputs: 'request.body.documents' },
        near: { rank: { query: 'query', of: 'docs' } },
        end: { route: 'chat', after: ['near'], input: '[{{ near }}]' },
      },
      { vectors: vectors(), chat: chats((text) => text) },
    );
    const caller = gateway.chat({ ...say('x'), documents: [] });
    await gateway.time.advance(100);
    expect(textOf(caller)).toBe('[]');
    expect(asked(gateway, 'vectors')).toHaveLength(1);
    idle(gateway);
  });
});

describe('classes with examples', () => {
  const stages = {
    topic: {
      route: 'vectors',
      kind: 'embeddings',
      input: '{{ request.text }}',
      budget: '100ms',
      classes: { weather: ['rain', 'sun'], travel: ['train', 'rome'] },
      onFailure: { use: 'travel' },
    },
    end: { route: 'chat', after: ['topic'], input: '{{ topic }} {{ stages.topic.class }}' },
  };

  it('are learnt once for everybody, and the nearest is taken', async () => {
    const gateway = open(stages, { vectors: vectors(), chat: chats((text) => text) });
    const callers = ['sun and rain', 'a train', 'rain'].map((text) => gateway.chat(say(text)));
    await gateway.time.advance(100);
    expect(callers.map(textOf)).toEqual(['weather weather', 'travel travel', 'weather weather']);
    const later = gateway.chat(say('rome'));
    await gateway.time.advance(100);
    expect(textOf(later)).toBe('travel travel');
    const examples = asked(gateway, 'vectors').filter(({ input }) => Array.isArray(input));
    expect(examples).toHaveLength(1);
    expect(
      gateway.records.at(-1)!.steps.find(({ code }) => code === 'stage-answered')!.figures,
    ).toMatchObject({ class: 'travel' });
    idle(gateway);
  });

  it('are learnt again where the model is another one, and not after a change that has nothing to do with them', async () => {
    const gateway = open(stages, { vectors: vectors(), chat: chats((text) => text) });
    const ask = async () => {
      const caller = gateway.chat(say('rain'));
      await gateway.time.advance(100);
      return textOf(caller);
    };
    await ask();
    gateway.load(config(stages, { deadline: '3s' }));
    expect(await ask()).toBe('weather weather');
    const examples = () => asked(gateway, 'vectors').filter(({ input }) => Array.isArray(input)).length;
    expect(examples()).toBe(1);
    serve(gateway, 'vectors', vectors('next'));
    gateway.load(config(stages, { vectors: { model: 'next' } }));
    expect(await ask()).toBe('weather weather');
    expect(examples()).toBe(2);
  });

  it('go on being learnt for those who come later, where the first has no time for it', async () => {
    const gateway = open(stages, { vectors: vectors('m', 150), chat: chats((text) => text) });
    const first = gateway.chat(say('rain'));
    await gateway.time.advance(120);
    expect(textOf(first)).toBe('travel travel');
    expect(first.answerHeader('x-armature-degraded')).toBe('topic:use');
    serve(gateway, 'vectors', vectors('m', 10));
    await gateway.time.advance(100);
    const later = gateway.chat(say('rain'));
    await gateway.time.advance(50);
    expect(textOf(later)).toBe('weather weather');
    idle(gateway);
  });

  it('are learnt for the next tenant where the one who came first has used up what is its own', async () => {
    const keys = (key: string) => [{ hash: `sha256:${createHash('sha256').update(key).digest('hex')}` }];
    const tenants = {
      poor: { limits: { tokens: '120/h' }, keys: keys('poor') },
      rich: { keys: keys('rich') },
    };
    const rain = Array.from({ length: 60 }, (_, i) => `rain ${i}`);
    const classes = { weather: rain, travel: ['train'] };
    const topic = { ...stages.topic, classes, budget: '1s' };
    const gateway = open(
      { ...stages, topic },
      { vectors: vectors(), chat: chats((text) => text) },
      { tenants },
    );
    const ask = (key: string) =>
      gateway.send('POST', '/v1/chat/completions', say('rain'), { authorization: `Bearer ${key}` });
    const poor = ask('poor');
    const rich = ask('rich');
    await gateway.time.advance(500);
    expect(poor.answerHeader('x-armature-degraded')).toBe('topic:use');
    expect(textOf(rich)).toBe('weather weather');
    expect(rich.answerHeader('x-armature-degraded')).toBeUndefined();
    // The first of two asks was poor's own, and both were made once more.
    expect(asked(gateway, 'vectors').filter(({ input }) => Array.isArray(input))).toHaveLength(3);
    idle(gateway);
  });

  it('that cannot be learnt fail the stage, and are tried again', async () => {
    const gateway = open(stages, { vectors: answering(5, () => undefined), chat: chats((text) => text) });
    const first = gateway.chat(say('rain'));
    await gateway.time.advance(1000);
    expect(textOf(first)).toBe('travel travel');
    serve(gateway, 'vectors', vectors());
    await gateway.time.advance(20_000);
    const later = gateway.chat(say('rain'));
    await gateway.time.advance(100);
    expect(textOf(later)).toBe('weather weather');
    idle(gateway);
  });
});

describe('a pipeline over the Open Inference Protocol', () => {
  const stages = {
    topic: {
      route: 'tensors',
      tensors: { text: { data: '{{ request.text }}', shape: [1, 1] } },
      labels: ['weather', 'travel'],
    },
  };
  const engines = {
    tensors: tensors(() => [{ name: 'p', datatype: 'FP32', shape: [1, 2], data: [0.2, 0.8] }]),
  };
  const infer = (gateway: VirtualGateway, body: object, path = '/v2/models/search/infer') =>
    gateway.send('POST', path, body);
  const text = (data: string[], name = 'text') => ({ name, datatype: 'BYTES', shape: [data.length], data });

  it('takes one text, and answers with what the last stage has found', async () => {
    const gateway = open(stages, engines);
    const caller = infer(gateway, { id: 'r1', inputs: [text(['to Rome'], 'anything')] });
    await gateway.time.advance(50);
    expect(caller.status).toBe(200);
    expect(JSON.parse(caller.text)).toEqual({
      id: 'r1',
      model_name: 'search',
      model_version: '1',
      outputs: [
        { name: 'text', datatype: 'BYTES', shape: [1], data: ['travel'] },
        { name: 'class', datatype: 'BYTES', shape: [1], data: ['travel'] },
        { name: 'score', datatype: 'FP64', shape: [1], data: [0.8] },
      ],
    });
    expect(asked(gateway, 'tensors')[0].inputs[0]).toMatchObject({ shape: [1, 1], data: ['to Rome'] });
    const some = infer(gateway, { inputs: [text(['x'])], outputs: [{ name: 'class' }] });
    await gateway.time.advance(50);
    expect(JSON.parse(some.text).outputs).toHaveLength(1);
    idle(gateway);
  });

  it('answers a chat by the protocol of the caller', async () => {
    const gateway = open(
      { a: { route: 'chat', input: '{{ request.text }} {{ request.body.more }}' } },
      { chat: chats((said) => `<${said}>`) },
    );
    const caller = infer(gateway, {
      inputs: [
        text(['hi']),
        { name: 'more', datatype: 'INT64', shape: [2], data: [1, 2] },
        { name: 'temperature', datatype: 'FP32', shape: [1], data: [0.5] },
      ],
    });
    await gateway.time.advance(50);
    expect(JSON.parse(caller.text).outputs[0].data).toEqual(['<hi [1, 2]>']);
    expect(caller.answerHeader('x-armature-route')).toBe('search');
    expect(asked(gateway, 'chat')[0].temperature).toBeUndefined();
  });

  it('tells errors as the protocol does', async () => {
    const gateway = open(stages, { tensors: tensors(() => undefined) });
    const callers = [
      infer(gateway, { inputs: [text(['x'])] }),
      infer(gateway, { inputs: [text(['x', 'y'])] }),
      infer(gateway, { inputs: [text(['x'], 'a'), text(['y'], 'b')] }),
      infer(gateway, { inputs: [{ name: 'n', datatype: 'INT64', shape: [1], data: [1] }] }),
      infer(gateway, { inputs: [text(['x'])], outputs: [{ name: 'logits' }] }),
      infer(gateway, {}),
      infer(gateway, { inputs: [text(['x'])] }, '/v2/models/search/versions/7/infer'),
    ];
    await gateway.time.advance(2000);
    expect(callers.map(({ status }) => status)).toEqual([502, 400, 400, 400, 400, 400, 404]);
    for (const caller of callers) expect(JSON.parse(caller.text)).toEqual({ error: expect.any(String) });
    idle(gateway);
  });

  it('says what it is', async () => {
    const gateway = open(stages, engines);
    const model = gateway.send('GET', '/v2/models/search', '');
    expect(JSON.parse(model.text)).toMatchObject({
      name: 'search',
      inputs: [{ name: 'text', datatype: 'BYTES' }],
      outputs: [{ name: 'text' }, { name: 'class' }, { name: 'score' }, { name: 'vectors' }],
    });
    const ready = gateway.send('GET', '/v2/models/search/ready', '');
    expect(ready.status).toBe(200);
    expect(gateway.send('GET', '/v2/models/search/versions/3', '').status).toBe(404);
    idle(gateway);
  });
});
