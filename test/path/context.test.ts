import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { VirtualTime } from '../../src/kernel/virtual-time.ts';
import type { TokenizerPool } from '../../src/pipelines/preprocessing/contracts.ts';
import { InlineHand } from '../../src/pipelines/preprocessing/inline-hand.ts';
import { Pool } from '../../src/pipelines/preprocessing/pool.ts';
import { openTokenizer } from '../../src/pipelines/preprocessing/tokenizer.ts';
import {
  chatAnswer,
  chatStream,
  type Engine,
  failing,
  NOTHING,
  never,
  status,
  VirtualGateway,
} from './virtual-gateway.ts';

/** What is sent of a conversation to backends with different windows, on counts by bytes: no files are needed here. */

const [A, B, C] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000', 'http://10.0.0.3:8000'];

function world(more: { a?: object; b?: object; route?: object; backends?: object; routes?: object } = {}) {
  const gateway = new VirtualGateway({
    backends: {
      small: {
        engine: 'vllm',
        model: 's',
        endpoints: [`${A}/v1`],
        limits: { concurrency: 1 },
        context: { window: 800, reserve: 100 },
        ...more.a,
      },
      large: {
        engine: 'vllm',
        model: 'l',
        endpoints: [`${B}/v1`],
        context: { window: 4000, reserve: 100 },
        ...more.b,
      },
      ...more.backends,
    },
    routes: {
      chat: {
        targets: [{ backend: 'small' }],
        context: { fit: true, keep: { first: 0, last: 1 } },
        ...more.route,
      },
      ...more.routes,
    },
  });
  for (const origin of [A, B, C]) gateway.engines.set(origin, chatAnswer('fine'));
  return gateway;
}

const turn = (at: number, more = {}) => [
  { role: 'user', content: `question ${at} ${'.'.repeat(80)}`, ...more },
  { role: 'assistant', content: `answer ${at} ${'.'.repeat(60)}` },
];
const chatOf = (turns: number, more = {}) => [
  { role: 'system', content: 'Be short.' },
  ...turn(0, more),
  ...Array.from({ length: turns - 1 }, (_, at) => turn(at + 1)).flat(),
  { role: 'user', content: 'and now?' },
];

const sentTo = (gateway: VirtualGateway, at = -1) => JSON.parse(String(gateway.served.at(at)!.request.body));
const codes = (gateway: VirtualGateway) => gateway.records.at(-1)!.steps.map(({ code }) => code);
const stepOf = (gateway: VirtualGateway, code: string) =>
  gateway.records.at(-1)!.steps.find((step) => step.code === code)!;

describe('a conversation', () => {
  it('goes as it is where it fits, and where nobody asked', async () => {
    const gateway = world();
    const caller = gateway.chat({ messages: chatOf(1) });
    await gateway.time.advance(50);
    expect(caller.status).toBe(200);
    expect(sentTo(gateway).messages).toEqual(chatOf(1));
    expect(codes(gateway)).toContain('context-whole');
    const plain = world({ route: { context: undefined } });
    plain.chat({ messages: chatOf(20) });
    await plain.time.advance(50);
    expect(sentTo(plain).messages).toEqual(chatOf(20));
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('loses its middle where it does not fit', async () => {
    const gateway = world();
    const caller = gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(50);
    expect(caller.status).toBe(200);
    const { messages } = sentTo(gateway);
    expect(messages[0].role).toBe('system');
    expect(messages.at(-1).content).toBe('and now?');
    expect(messages.length).toBeLessThan(chatOf(9).length);
    expect(messages.slice(1)).toEqual(chatOf(9).slice(1 - messages.length));
    const { figures, setting } = stepOf(gateway, 'context-dropped');
    expect(figures).toMatchObject({
      backend: 'small',
      counted: 'at most',
      by: 'bytes',
      window: 800,
      reserve: 100,
    });
    expect(figures.tokens).toBeLessThanOrEqual(700);
    expect(setting).toBe('routes.chat.context.keep');
  });

  it('keeps what is pinned, and says nothing of the pin upstream', async () => {
    const gateway = world();
    gateway.chat({ messages: chatOf(9, { armature: { pinned: true } }) });
    await gateway.time.advance(50);
    expect(sentTo(gateway).messages[1]).toEqual(turn(0)[0]);
    expect(String(gateway.served[0]!.request.body)).not.toContain('armature');
  });

  it('is refused with its figures where what must be kept is too long', async () => {
    const gateway = world();
    const caller = gateway.chat({ messages: [{ role: 'user', content: 'x'.repeat(900) }] });
    await gateway.time.advance(50);
    expect(caller.status).toBe(400);
    const { error } = JSON.parse(caller.text);
    expect(error).toMatchObject({ code: 'invalid_request', param: 'messages' });
    expect(error.message).toMatch(/at most \d+ tokens; the model's window is 800, of which 100/);
    expect(gateway.served).toHaveLength(0);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('goes to another target, or to a rung, whose window it fits', async () => {
    const long = [{ role: 'user', content: 'x'.repeat(900) }];
    const targets = world({
      route: {
        targets: [
          { backend: 'small', weight: 1000 },
          { backend: 'large', weight: 0.001 },
        ],
      },
    });
    const first = targets.chat({ messages: long });
    await targets.time.advance(50);
    expect([first.status, first.answerHeader('x-armature-backend')]).toEqual([200, 'large']);
    const rung = world({ route: { ladder: [{ answer: 'busy' }, { backend: 'large' }] } });
    const second = rung.chat({ messages: long });
    await rung.time.advance(50);
    expect([second.status, second.answerHeader('x-armature-degraded')]).toEqual([200, 'backend']);
    const nobody = world({ route: { ladder: [{ answer: 'busy' }] } }).chat({ messages: long });
    expect(nobody.status).toBe(400);
  });

  it('is refused where it is nested beyond what anybody could read', () => {
    const gateway = world();
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const bodies = {
      messages: `{"model":"chat","messages":[{"role":"user","content":${deep}}]}`,
      tools: `{"model":"chat","tools":${deep},"messages":[{"role":"user","content":"a"}]}`,
    };
    for (const [param, body] of Object.entries(bodies)) {
      const caller = gateway.send('POST', '/v1/chat/completions', body);
      expect([caller.status, JSON.parse(caller.text).error.param]).toEqual([400, param]);
    }
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is cut where that is asked for', async () => {
    const gateway = world({ route: { context: { fit: true, lastTurn: 'cut' } } });
    gateway.chat({ messages: [{ role: 'user', content: `begin ${'👩‍👩‍👧 '.repeat(100)} end` }] });
    await gateway.time.advance(50);
    const [{ content }] = sentTo(gateway).messages;
    expect(content).toMatch(/^begin (?:👩‍👩‍👧 )*\n\[\.\.\.\]\n ?(?:👩‍👩‍👧 )* end$/u);
    expect(codes(gateway)).toContain('context-cut');
  });

  it('may have an answer as long as there is room', async () => {
    const gateway = world();
    gateway.chat({ messages: chatOf(1), max_tokens: 5000 });
    await gateway.time.advance(50);
    const { max_tokens } = sentTo(gateway);
    expect(max_tokens).toBeGreaterThanOrEqual(400);
    expect(max_tokens).toBeLessThan(800);
    expect(stepOf(gateway, 'context-answer-shorter').figures.asked).toBe(5000);
  });

  it('is made anew for the backend that a retry goes to', async () => {
    const gateway = world({
      route: {
        targets: [
          { backend: 'small', weight: 1000 },
          { backend: 'large', weight: 0.001 },
        ],
      },
    });
    gateway.engines.set(A, failing());
    gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(200);
    expect(sentTo(gateway, 0).messages.length).toBeLessThan(20);
    expect(sentTo(gateway, 1).messages).toHaveLength(20);
    expect(sentTo(gateway, 1).model).toBe('l');
  });

  it('that only a failed backend could take is told of that failure', async () => {
    const gateway = world({
      route: {
        targets: [
          { backend: 'large', weight: 1000 },
          { backend: 'small', weight: 0.001 },
        ],
      },
    });
    gateway.engines.set(B, failing());
    const caller = gateway.chat({ messages: [{ role: 'user', content: 'x'.repeat(900) }] });
    await gateway.time.advance(500);
    expect(caller.status).toBe(502);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is heard by a shadow as the target heard it', async () => {
    const gateway = world({ route: { shadow: [{ backend: 'large', percent: 100 }] } });
    gateway.chat({ messages: chatOf(9, { armature: { pinned: true } }) });
    await gateway.time.advance(50);
    expect(gateway.served).toHaveLength(2);
    expect(sentTo(gateway, 1)).toEqual({ ...sentTo(gateway, 0), model: 'l' });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is hedged only where what is sent there is made already', async () => {
    const gateway = world({
      a: { limits: { concurrency: 8 } },
      route: {
        targets: [
          { backend: 'small', weight: 1000 },
          { backend: 'large', weight: 0.001 },
        ],
        hedge: { after: '20ms', budget: 1 },
      },
    });
    gateway.engines.set(A, chatStream(['a'], 100));
    const caller = gateway.chat({ messages: chatOf(9), stream: true });
    await gateway.time.advance(500);
    expect(caller.status).toBe(200);
    expect(gateway.served).toHaveLength(1);
    expect(codes(gateway)).toContain('hedge-without-place');
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is refused aloud where the model does not take what is in it', async () => {
    const gateway = world({ a: { context: { accepts: ['json'] } } });
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const image = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x/y.png' } }] }];
    expect(JSON.parse(gateway.chat({ tools }).text).error).toMatchObject({
      code: 'invalid_request',
      param: 'tools',
    });
    expect(gateway.chat({ messages: image }).status).toBe(400);
    const json = gateway.chat({ response_format: { type: 'json_object' } });
    await gateway.time.advance(50);
    expect(json.status).toBe(200);
    expect(gateway.taken).toEqual(NOTHING);
  });
});

describe('a summary', () => {
  const summarising = { context: { fit: true, keep: { first: 0, last: 1 }, middle: { summarise: 'short' } } };
  const backends = { short: { engine: 'vllm', model: 'short', endpoints: [`${C}/v1`] } };
  const routes = { short: { targets: [{ backend: 'short' }] } };
  const sees: Engine = (served) => {
    const { messages } = JSON.parse(String(served.request.body));
    chatAnswer(/question 0/.test(messages[1].content) ? 'The user likes teal.' : '?')(served);
  };

  it('stands for what is left out, in the words of the user, and is made once', async () => {
    const gateway = world({ route: summarising, backends, routes });
    gateway.engines.set(C, sees);
    gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(100);
    gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(100);
    expect(gateway.served.map(({ request }) => JSON.parse(String(request.body)).model)).toEqual([
      'short',
      's',
      's',
    ]);
    const { messages } = sentTo(gateway);
    expect(messages[0].content).toBe('Be short.');
    expect(messages[1].role).toBe('user');
    expect(messages[1].content).toContain('The user likes teal.');
    expect(stepOf(gateway, 'context-summarised').figures.tokens).toBeLessThanOrEqual(700);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('serves the turns that follow, and grows out of the one before', async () => {
    const a = { context: { window: 2200, reserve: 100 } };
    const gateway = world({ a, route: summarising, backends, routes });
    let made = 0;
    gateway.engines.set(C, (served) => chatAnswer(`summary ${++made}`)(served));
    for (let turns = 14; turns < 30; turns++) {
      gateway.chat({ messages: chatOf(turns) });
      await gateway.time.advance(100);
      expect(codes(gateway)).toContain('context-summarised');
    }
    expect(made).toBeLessThan(6);
    const asked = gateway.served.filter(({ request }) => JSON.parse(String(request.body)).model === 'short');
    const last = JSON.parse(String(asked.at(-1)!.request.body)).messages[1].content;
    expect(last).toContain(`summary ${made - 1}`);
    expect(last).not.toContain('question 0');
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('that fails or takes too long is done without, and said so', async () => {
    for (const engine of [status(500), failing(), never, chatAnswer(''), chatAnswer('x'.repeat(700))]) {
      const gateway = world({ route: { ...summarising, deadline: '2s' }, backends, routes });
      gateway.engines.set(C, engine);
      const caller = gateway.chat({ messages: chatOf(9) });
      await gateway.time.advance(3000);
      expect(caller.status).toBe(200);
      expect(codes(gateway)).toContain('context-without-summary');
      expect(codes(gateway)).toContain('context-dropped');
      expect(gateway.taken).toEqual(NOTHING);
    }
  });

  it('is made by the very backend that has one place', async () => {
    const gateway = world({ route: summarising, routes: { short: { targets: [{ backend: 'small' }] } } });
    const caller = gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(100);
    expect(caller.status).toBe(200);
    expect(codes(gateway)).toContain('context-summarised');
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('ends with its caller, and with its time', async () => {
    const gateway = world({ route: { ...summarising, deadline: '1s' }, backends, routes });
    gateway.engines.set(C, never);
    gateway.engines.set(A, never);
    const left = gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(10);
    left.leave();
    expect(gateway.served.at(-1)!.aborted).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
    const late = gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(1500);
    expect(late.status).toBe(504);
    expect(gateway.taken).toEqual(NOTHING);
  });
});

describe('an engine that counts', () => {
  const json = (sink: Parameters<Engine>[0]['sink'], body: object, code = 200) => {
    sink.onHead(code, { 'content-type': 'application/json' });
    sink.onData(Buffer.from(JSON.stringify(body)));
    sink.onEnd();
  };
  /** Thirty tokens a message. */
  const vllm: Engine = (served) => {
    if (served.request.path !== '/tokenize') chatAnswer('fine')(served);
    else {
      const { messages, model } = JSON.parse(String(served.request.body));
      served.time.set(1, () => json(served.sink, { count: messages.length * 30, max_model_len: 350, model }));
    }
  };

  it('tells its window and the tokens of each try', async () => {
    const gateway = world({ a: { context: { tokenizer: 'engine', reserve: 50 } } });
    gateway.engines.set(A, vllm);
    gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(100);
    expect(sentTo(gateway).messages).toHaveLength(10);
    expect(stepOf(gateway, 'context-dropped').figures).toMatchObject({
      tokens: 300,
      ofTokens: 600,
      counted: 'exactly',
      by: 'engine',
      window: 350,
    });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('of llama.cpp is asked for a prompt and its tokens', async () => {
    const gateway = world({ a: { engine: 'llama.cpp', context: { tokenizer: 'engine', reserve: 50 } } });
    gateway.engines.set(A, (served) => {
      const { path, body } = served.request;
      const said = body === undefined ? {} : JSON.parse(String(body));
      const tell = (body: object) => served.time.set(1, () => json(served.sink, body));
      if (path === '/props') tell({ default_generation_settings: { n_ctx: 350 } });
      else if (path === '/apply-template') tell({ prompt: 'x'.repeat(said.messages.length * 30) });
      else if (path === '/tokenize') tell({ tokens: [...said.content].map((_, at) => at) });
      else chatAnswer('fine')(served);
    });
    gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(100);
    expect(sentTo(gateway).messages).toHaveLength(10);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('that does not tell leaves the bound by bytes, and says why', async () => {
    const gateway = world({ a: { context: { window: 800, tokenizer: 'engine', reserve: 100 } } });
    gateway.engines.set(A, (served) =>
      served.request.path === '/tokenize' ? json(served.sink, {}, 404) : chatAnswer('fine')(served),
    );
    gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(100);
    expect(stepOf(gateway, 'context-dropped').figures).toMatchObject({ by: 'bytes', why: 'it answered 404' });
  });

  it('that hangs holds a caller no longer than its deadline', async () => {
    const gateway = world({
      a: { context: { tokenizer: 'engine' } },
      route: { deadline: '500ms', context: { fit: true } },
    });
    gateway.engines.set(A, never);
    const caller = gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(600);
    expect(caller.status).toBe(504);
    expect(gateway.served.every(({ aborted }) => aborted)).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });
});

describe('tokens made by threads', () => {
  const file = join(import.meta.dirname, '../context/reference/small/bytes/tokenizer.json');
  type Tokenizers = NonNullable<Parameters<typeof tokenized>[0]>;
  const config = {
    backends: {
      small: {
        engine: 'vllm',
        model: 's',
        endpoints: [`${A}/v1`],
        context: { window: 400, reserve: 50, tokenizer: { file } },
      },
    },
    routes: { chat: { targets: [{ backend: 'small' }], deadline: '2s', context: { fit: true } } },
  };
  const files = { ofModel: () => undefined, ofFile: () => undefined };

  function tokenized(tokenizersOf: (time: VirtualTime) => { pool: TokenizerPool; files: typeof files }) {
    const gateway = new VirtualGateway(config, 1, undefined, tokenizersOf);
    gateway.engines.set(A, chatAnswer('fine'));
    return gateway;
  }
  const pooled: Tokenizers = (time) => {
    const hire = () => new InlineHand(time, openTokenizer, 1);
    return {
      pool: new Pool({ clock: time, timers: time, hire, settings: { threads: 1, queueMax: 10 } }),
      files,
    };
  };

  it('count exactly, and are what the request counts for', async () => {
    const gateway = tokenized(pooled);
    gateway.engines.set(A, chatAnswer('fine', 50));
    const caller = gateway.chat({ messages: chatOf(9), max_tokens: 30 });
    const endpoint = [...gateway.world.endpoints.values()][0]!;
    await gateway.time.advance(20);
    const { figures } = [...gateway.path.running][0]!.steps.find(({ code }) => code === 'context-dropped')!;
    expect(figures).toMatchObject({ counted: 'exactly', by: 'tokenizer', window: 400, reserve: 30 });
    expect(endpoint.tokensInFlight).toBe(Number(figures.tokens) + 30);
    await gateway.time.advance(100);
    expect(caller.status).toBe(200);
    expect([endpoint.tokensInFlight, gateway.taken]).toEqual([0, NOTHING]);
  });

  it('that cannot be made leave the bound by bytes, and the record says why', async () => {
    const gateway = tokenized((time) => ({
      pool: {
        waiting: 0,
        running: 0,
        tokenize(_ask, done) {
          time.set(1, () => done({ failed: 'full', message: '9 texts wait already' }));
          return () => undefined;
        },
      },
      files,
    }));
    const caller = gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(100);
    expect(caller.status).toBe(200);
    expect(stepOf(gateway, 'context-dropped').figures).toMatchObject({
      counted: 'at most',
      by: 'bytes',
      why: '9 texts wait already',
    });
  });

  it('are given up with the request: by its caller, by its deadline, by a drain', async () => {
    let given = 0;
    const pool: TokenizerPool = { waiting: 0, running: 0, tokenize: () => () => void given++ };
    const gateway = tokenized(() => ({ pool, files }));
    const left = gateway.chat({ messages: chatOf(9) });
    left.leave();
    expect([given, gateway.taken]).toEqual([1, NOTHING]);
    const late = gateway.chat({ messages: chatOf(9) });
    await gateway.time.advance(2100);
    expect([late.status, given, gateway.taken]).toEqual([504, 2, NOTHING]);
    const drained = gateway.chat({ messages: chatOf(9) });
    gateway.path.endAll();
    expect([drained.status, given, gateway.taken]).toEqual([503, 3, NOTHING]);
  });
});
