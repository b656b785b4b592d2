import { describe, expect, it } from 'vitest';
import {
  answering,
  asked,
  chats,
  codes,
  config,
  open,
  serve,
  tensors,
  textOf,
  vectors,
} from './flow-world.ts';
import { chatStream, NOTHING, never, type VirtualGateway } from './virtual-gateway.ts';

const say = (content: string) => ({ model: 'search', messages: [{ role: 'user', content }] });

function idle(gateway: VirtualGateway): void {
  expect(gateway.taken).toEqual(NOTHING);
  expect(gateway.time.pending).toBe(0);
}

describe('a condition', () => {
  const stages = {
    intent: { route: 'chat', input: 'class of {{ request.text }}', classes: ['weather', 'travel'] },
    rain: {
      route: 'chat',
      after: ['intent'],
      when: 'stages.intent.class == "weather"',
      input: 'weather: {{ request.text }}',
    },
    trip: {
      route: 'other',
      after: ['intent'],
      when: 'stages.intent.class == "travel"',
      input: 'travel: {{ request.text }}',
    },
    answer: { first: ['rain', 'trip'] },
  };

  it('decides which of two stages answers', async () => {
    const gateway = open(stages, {
      chat: chats((text) =>
        text.startsWith('class') ? (text.includes('rain') ? 'It is **Weather**.' : 'travel') : `c<${text}>`,
      ),
      other: chats((text) => `o<${text}>`),
    });
    const one = gateway.chat(say('will it rain?'));
    await gateway.time.advance(100);
    expect(textOf(one)).toBe('c<weather: will it rain?>');
    expect(one.answerHeader('x-armature-degraded')).toBeUndefined();
    expect(asked(gateway, 'other')).toHaveLength(0);
    expect(codes(gateway)).toContain('trip stage-not-run');
    const two = gateway.chat(say('to Rome'));
    await gateway.time.advance(100);
    expect(textOf(two)).toBe('o<travel: to Rome>');
    expect(two.answerHeader('x-armature-backend')).toBe('other');
    idle(gateway);
  });

  it('fails the stage that gives no class, and takes its way out', async () => {
    const failing = open(stages, { chat: chats(() => 'weather or travel, who knows'), other: never });
    const caller = failing.chat(say('x'));
    await failing.time.advance(100);
    expect(caller.status).toBe(502);
    expect(caller.text).toContain("Stage 'intent'");
    idle(failing);
    const out = open(
      { ...stages, intent: { ...stages.intent, onFailure: { use: 'travel' } } },
      { chat: chats(() => 'neither'), other: chats((text) => text) },
    );
    const answered = out.chat(say('x'));
    await out.time.advance(100);
    expect(textOf(answered)).toBe('travel: x');
    expect(answered.answerHeader('x-armature-degraded')).toBe('intent:use');
    idle(out);
  });

  it('that speaks of what is not there does not hold', async () => {
    const gateway = open(
      {
        intent: {
          route: 'tensors',
          tensors: { t: { data: '{{ request.text }}' } },
          labels: ['no', 'yes'],
          onFailure: { use: 'yes' },
        },
        sure: { route: 'chat', after: ['intent'], when: 'stages.intent.score > 0.5', input: 'sure' },
        end: { route: 'other', after: ['sure'], input: '[{{ sure }}] {{ stages.intent.class }}' },
      },
      { tensors: tensors(() => undefined), chat: never, other: chats((text) => text) },
    );
    const caller = gateway.chat(say('x'));
    await gateway.time.advance(200);
    expect(textOf(caller)).toBe('[] yes');
    idle(gateway);
  });

  it('lets the chosen stage stream, and cancels what nobody asks for any more', async () => {
    const gateway = open(
      {
        slow: { route: 'other', when: 'request.text == "slow"', input: 'x', stream: true },
        fast: { route: 'chat', input: 'y', stream: true },
        late: { route: 'other', input: 'z', stream: true },
        answer: { first: ['slow', 'fast', 'late'] },
      },
      { chat: chatStream(['one ', 'two ']), other: never },
    );
    const caller = gateway.chat({ ...say('quick'), stream: true });
    await gateway.time.advance(12);
    expect(caller.text).toContain('one');
    expect(caller.text).not.toContain('[DONE]');
    await gateway.time.advance(100);
    expect(caller.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([false, true]);
    expect(codes(gateway)).toContain('late stage-cancelled');
    idle(gateway);
  });

  it('passes the words of a chosen stage on whole: tool calls and usage with them', async () => {
    const message = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    };
    const gateway = open(
      {
        a: { route: 'chat', input: 'x' },
        b: { route: 'other', after: ['a'], when: 'not a', input: 'y' },
        c: { first: ['a', 'b'] },
      },
      {
        chat: chats(() => 'hello'),
        other: chats(() => ({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })),
      },
    );
    const caller = gateway.chat({ ...say('x'), temperature: 0.3 });
    await gateway.time.advance(100);
    expect(JSON.parse(caller.text).usage).toMatchObject({ completion_tokens: 2 });
    expect(asked(gateway, 'chat')[0]).toMatchObject({ temperature: 0.3 });
    idle(gateway);
  });

  it('where none has a text, is a clear error', async () => {
    const gateway = open(
      { a: { route: 'chat', when: 'false', input: 'x' }, b: { first: ['a'] } },
      { chat: never },
    );
    const caller = gateway.chat(say('x'));
    await gateway.time.advance(10);
    expect(caller.status).toBe(502);
    expect(caller.text).toContain("Stage 'b'");
    idle(gateway);
  });
});

describe('a stage for each item', () => {
  const each = (more: object = {}) => ({
    sums: {
      route: 'chat',
      each: 'request.body.documents',
      input: '{{ loop.index }}/{{ loop.length }} {{ item.text }}',
      ...more,
    },
    end: {
      route: 'other',
      after: ['sums'],
      input: '{% for s in stages.sums.items %}{{ s.id }}={{ s.text }};{% endfor %}',
    },
  });
  const documents = (count: number) => Array.from({ length: count }, (_, i) => ({ id: i, text: `doc ${i}` }));

  it('asks a few at once, and keeps the order', async () => {
    let now = 0;
    let most = 0;
    const gateway = open(each({ concurrency: 3 }), {
      chat: (served) => {
        now++;
        most = Math.max(most, now);
        const text = String(JSON.parse(String(served.request.body)).messages[0].content);
        served.time.set(text.startsWith('1/') ? 50 : 10, () => {
          now--;
          answering(1, () => ({ choices: [{ message: { content: `<${text}>` } }] }))(served);
        });
      },
      other: chats((text) => text),
    });
    const caller = gateway.chat({ ...say('x'), documents: documents(7) });
    await gateway.time.advance(500);
    expect(textOf(caller)).toBe(
      documents(7)
        .map(({ id }) => `${id}=<${id + 1}/7 doc ${id}>;`)
        .join(''),
    );
    expect(most).toBe(3);
    expect(gateway.records).toHaveLength(1);
    idle(gateway);
  });

  it('takes texts and lines as well, and an empty list', async () => {
    const gateway = open(
      {
        sums: { route: 'chat', each: 'request.text.split("\n")', input: '{{ item.text }}' },
        end: { route: 'other', after: ['sums'], input: '{{ sums }}' },
      },
      { chat: chats((text) => text.toUpperCase()), other: chats((text) => text) },
    );
    const caller = gateway.chat(say('a\nb {{ 7 * 7 }}'));
    await gateway.time.advance(100);
    expect(textOf(caller)).toBe('A\nB {{ 7 * 7 }}');
    const none = open(each(), { chat: never, other: chats((text) => `[${text}]`) });
    const empty = none.chat({ ...say('x'), documents: [] });
    await none.time.advance(100);
    expect(textOf(empty)).toBe('[]');
    idle(none);
  });

  it('goes by onFailure for each of them', async () => {
    const broken = chats((text) => (text.includes('doc 1') ? undefined : text));
    for (const [onFailure, text, label] of [
      ['skip', '0=1/3 doc 0;2=3/3 doc 2;', 'sums:skip'],
      [{ use: 'none' }, '0=1/3 doc 0;1=none;2=3/3 doc 2;', 'sums:use'],
      [{ route: 'other' }, '0=1/3 doc 0;1=2/3 doc 1;2=3/3 doc 2;', 'sums:route'],
    ] as const) {
      const gateway = open(each({ onFailure }), { chat: broken, other: chats((said) => said) });
      const caller = gateway.chat({ ...say('x'), documents: documents(3) });
      await gateway.time.advance(2000);
      expect(textOf(caller)).toBe(text);
      expect(caller.answerHeader('x-armature-degraded')).toBe(label);
      expect(codes(gateway)).toContain('sums item-failed');
      idle(gateway);
    }
    const gateway = open(each(), { chat: broken, other: never });
    const caller = gateway.chat({ ...say('x'), documents: documents(40) });
    await gateway.time.advance(2000);
    expect(caller.status).toBe(502);
    expect(caller.text).toContain("Stage 'sums'");
    expect(asked(gateway, 'chat').length).toBeLessThan(20);
    idle(gateway);
  });

  it('that is cut at its budget keeps what it has', async () => {
    const gateway = open(each({ budget: '100ms', concurrency: 1, onFailure: 'skip' }), {
      chat: chats((text) => text, 40),
      other: chats((text) => text),
    });
    const caller = gateway.chat({ ...say('x'), documents: documents(2000) });
    await gateway.time.advance(150);
    expect(textOf(caller)).toBe('0=1/2000 doc 0;1=2/2000 doc 1;');
    expect(gateway.records.at(-1)!.steps.length).toBeLessThan(300);
    idle(gateway);
  });

  it("of what the caller has not sent is the caller's fault, and more than can be is refused", async () => {
    const gateway = open(each(), { chat: never, other: never });
    const without = gateway.chat(say('x'));
    const strange = gateway.chat({ ...say('x'), documents: [{ title: 1 }] });
    const many = gateway.chat({ ...say('x'), documents: documents(3000) });
    await gateway.time.advance(10);
    for (const caller of [without, strange, many]) {
      expect(caller.status).toBe(400);
      expect(caller.text).toContain('`each`');
    }
    idle(gateway);
  });

  it('lets every engine go when the caller leaves', async () => {
    const gateway = open(each(), { chat: never, other: never });
    const caller = gateway.chat({ ...say('x'), documents: documents(9) });
    await gateway.time.advance(10);
    expect(gateway.served).toHaveLength(4);
    caller.leave();
    expect(gateway.served.every(({ aborted }) => aborted)).toBe(true);
    idle(gateway);
  });
});

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
      inputs: [text(['hi']), { name: 'more', datatype: 'INT64', shape: [2], data: [1, 2] }],
    });
    await gateway.time.advance(50);
    expect(JSON.parse(caller.text).outputs[0].data).toEqual(['<hi [1, 2]>']);
    expect(caller.answerHeader('x-armature-route')).toBe('search');
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
