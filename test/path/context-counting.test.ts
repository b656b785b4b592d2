import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { VirtualTime } from '../../src/kernel/virtual-time.ts';
import type { TokenizerPool } from '../../src/pipelines/preprocessing/contracts.ts';
import { InlineHand } from '../../src/pipelines/preprocessing/inline-hand.ts';
import { Pool } from '../../src/pipelines/preprocessing/pool.ts';
import { openTokenizer } from '../../src/pipelines/preprocessing/tokenizer.ts';
import { A, chatOf, sentTo, stepOf, world } from './context-world.ts';
import { chatAnswer, type Engine, NOTHING, never, VirtualGateway } from './virtual-gateway.ts';

/** Who counts the tokens of a conversation: engines that are asked, and threads. */

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
