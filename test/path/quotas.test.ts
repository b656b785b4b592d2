import { describe, expect, it } from 'vitest';
import { replayable } from '../../src/policies/register.ts';
import {
  chatAnswer,
  chatStream,
  type Engine,
  failing,
  NOTHING,
  never,
  status,
  type VirtualCaller,
  VirtualGateway,
} from './virtual-gateway.ts';

/** What tenants may use: reserved before, settled after, given back on every way out. */

const A = 'http://10.0.0.1:8000';

/** The open tenant would not be limited: every caller has the key of `web`. */
const KEY = 'k';
const HASH = 'sha256:8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a';
const AUTH = { authorization: `Bearer ${KEY}` };

function world(limits: object, more: { backend?: object; route?: object; tenant?: object } = {}) {
  const config = (of: object) => ({
    backends: {
      b1: {
        engine: 'vllm',
        model: 'm',
        endpoints: [`${A}/v1`],
        timeouts: { firstByte: '5s', idle: '5s', total: '5s' },
        ...more.backend,
      },
      t1: { engine: 'triton', model: 'm', endpoints: [A] },
    },
    routes: {
      chat: { targets: [{ backend: 'b1' }], deadline: '3s', retry: { attempts: 1 }, ...more.route },
      other: { targets: [{ backend: 'b1' }] },
      tensors: { targets: [{ backend: 't1' }] },
    },
    tenants: { web: { limits: of, keys: [{ hash: HASH }], ...more.tenant }, free: {} },
  });
  const gateway = new VirtualGateway(config(limits));
  gateway.engines.set(A, chatAnswer('x', 10));
  return { gateway, limit: (changed: object) => gateway.load(config(changed)) };
}

/** An answer that took so many tokens, as its engine says. */
function usage(tokensIn: number, tokensOut: number): Engine {
  return ({ sink }) => {
    sink.onHead(200, { 'content-type': 'application/json' });
    const body = {
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: tokensIn, completion_tokens: tokensOut },
    };
    sink.onData(Buffer.from(JSON.stringify(body)));
    sink.onEnd();
  };
}

const chat = (gateway: VirtualGateway, more: object = {}) => gateway.chat(more, AUTH);
const left = (caller: VirtualCaller, kind: 'requests' | 'tokens') =>
  Number(caller.answerHeader(`x-ratelimit-remaining-${kind}`));
const refusal = (caller: VirtualCaller) => [
  caller.status,
  JSON.parse(caller.text).error?.code,
  caller.answerHeader('retry-after'),
];

describe('requests', () => {
  it('may come at once as many as the rate says, then as time brings them', async () => {
    const { gateway } = world({ requests: '5/s' });
    const callers = Array.from({ length: 8 }, () => chat(gateway));
    await gateway.time.advance(20);
    expect(callers.map(({ status: of }) => of)).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
    expect(refusal(callers[5]!)).toEqual([429, 'quota_exceeded', '1']);
    await gateway.time.advance(379);
    expect(chat(gateway).status).toBeUndefined();
    expect(chat(gateway).status).toBe(429);
    await gateway.time.advance(1000);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('of a slow rate come one by one, and the promise of the next is kept', async () => {
    const { gateway } = world({ requests: '1/min' });
    expect(chat(gateway).status).toBeUndefined();
    await gateway.time.advance(20_000);
    const refused = chat(gateway);
    expect(refusal(refused)).toEqual([429, 'quota_exceeded', '40']);
    expect(refused.answerHeader('x-should-retry')).toBeUndefined();
    await gateway.time.advance(39_000);
    expect(refusal(chat(gateway))).toEqual([429, 'quota_exceeded', '1']);
    await gateway.time.advance(1000);
    const next = chat(gateway);
    await gateway.time.advance(10);
    expect(next.status).toBe(200);
  });

  it('are not to be tried again by clients that would not wait as long as it takes', async () => {
    const { gateway } = world({ requests: '1/h' });
    chat(gateway);
    await gateway.time.advance(1000);
    const refused = chat(gateway);
    expect([...refusal(refused), refused.answerHeader('x-should-retry')]).toEqual([
      429,
      'quota_exceeded',
      '3599',
      'false',
    ]);
  });

  it.each(['0.5/s', '30/min'])('at %s begin with what the rate says, or with one', async (requests) => {
    const { gateway } = world({ requests });
    const callers = Array.from({ length: 40 }, () => chat(gateway));
    await gateway.time.advance(20);
    expect(callers.filter(({ status: of }) => of === 200)).toHaveLength(requests === '0.5/s' ? 1 : 30);
    await gateway.time.advance(2000);
    expect([chat(gateway).status, chat(gateway).status]).toEqual([undefined, 429]);
  });

  it('of none are all refused', async () => {
    const { gateway } = world({ requests: '0/s' });
    const refused = chat(gateway);
    expect([refused.status, refused.answerHeader('x-should-retry')]).toEqual([429, 'false']);
    expect(Number(refused.answerHeader('retry-after'))).toBeGreaterThan(0);
  });

  it('that are never sent do not count, those that are do', async () => {
    const { gateway } = world(
      { requests: '2/min' },
      { backend: { limits: { concurrency: 1 } }, route: { queue: { max: 0 } } },
    );
    gateway.engines.set(A, never);
    const served = chat(gateway);
    for (let i = 0; i < 5; i++) expect(chat(gateway).status).toBe(503);
    served.leave();
    gateway.engines.set(A, status(500));
    const failed = chat(gateway);
    await gateway.time.advance(10);
    expect([failed.status, left(failed, 'requests')]).toEqual([502, 0]);
    expect(chat(gateway).status).toBe(429);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('of a connection that is refused do not count', async () => {
    const { gateway } = world({ requests: '1/min' });
    gateway.engines.set(A, failing());
    const failed = chat(gateway);
    await gateway.time.advance(10);
    expect([failed.status, left(failed, 'requests')]).toEqual([502, 1]);
  });
});

describe('tokens', () => {
  it('are set aside before the call: those that come together cannot take more than there is', async () => {
    const { gateway } = world({ tokens: '60000/min' });
    const callers = Array.from({ length: 20 }, () => chat(gateway, { max_tokens: 10_000 }));
    expect(callers.filter(({ status: of }) => of === 429)).toHaveLength(15);
    await gateway.time.advance(10);
    const [first, refused] = [callers[0]!, callers[19]!];
    // What was not used is back before the answer tells what is left.
    expect(left(first, 'tokens')).toBeGreaterThan(60_000 - 5 * 10_100 + 9_900);
    expect(refusal(refused)).toEqual([429, 'quota_exceeded', '1']);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('are settled on what was really used, and the answer says what is left', async () => {
    const { gateway } = world({ tokens: '60000/d', requests: '10/d' });
    const caller = chat(gateway, { max_tokens: 40_000 });
    await gateway.time.advance(10);
    expect(left(caller, 'tokens')).toBe(59_995);
    const names = ['limit', 'remaining', 'reset'].flatMap((what) =>
      ['requests', 'tokens'].map((kind) => caller.answerHeader(`x-ratelimit-${what}-${kind}`)),
    );
    expect(names).toEqual(['10', '60000', '9', '59995', '2h24m0s', '7.19s']);
  });

  it.each([
    ['without a maximum', {}, 200],
    ['of several answers', { max_tokens: 1000, n: 50 }, 200],
    ['of more answers than there can be', { max_tokens: 1000, n: 61 }, 429],
    ['of the whole limit', { max_completion_tokens: 60_000 }, 200],
    ['of more than the limit', { max_tokens: 60_001 }, 429],
    ['of absurdly many', { max_tokens: 1e12 }, 429],
  ])('%s', async (_name, body, expected) => {
    const { gateway } = world({ tokens: '60000/d' });
    const caller = chat(gateway, body);
    await gateway.time.advance(10);
    expect(caller.status).toBe(expected);
    if (expected === 429) {
      expect(caller.answerHeader('x-should-retry')).toBe('false');
      expect(caller.text).toContain('never');
      expect(left(caller, 'tokens')).toBe(60_000);
    } else expect(left(caller, 'tokens')).toBe(59_995);
  });

  it('without a maximum take a bounded guess, however small the limit', async () => {
    const { gateway } = world({ tokens: '100/min' });
    const callers = [chat(gateway), chat(gateway)];
    expect(callers.map(({ status: of }) => of)).toEqual([undefined, undefined]);
    await gateway.time.advance(10);
    expect(left(callers[1]!, 'tokens')).toBe(90);
  });

  it('of a prompt that is only reckoned wait at most for a full bucket, and leave a debt where it was true', async () => {
    const { gateway } = world({ tokens: '1000/min' });
    const messages = [{ role: 'user', content: 'x'.repeat(8000) }];
    gateway.engines.set(A, usage(2000, 100));
    const caller = chat(gateway, { messages });
    await gateway.time.advance(10);
    expect([caller.status, left(caller, 'tokens')]).toEqual([200, 0]);
    // 1,100 in debt, and a small one asks for about 116.
    await gateway.time.advance(66_000);
    expect(chat(gateway).status).toBe(429);
    await gateway.time.advance(10_000);
    expect(chat(gateway).status).toBe(200);
  });

  it('of streams without usage are counted by their deltas', async () => {
    const { gateway } = world({ tokens: '60000/d' });
    gateway.engines.set(A, chatStream(['a', 'b', 'c'], 5));
    const stream = chat(gateway, { stream: true, max_tokens: 40_000 });
    await gateway.time.advance(10);
    // The head is gone before anybody knows how many there will be.
    expect(left(stream, 'tokens')).toBeLessThan(20_000);
    await gateway.time.advance(100);
    expect(stream.text).toContain('[DONE]');
    const used = 60_000 - gateway.world.quotas.lineOf('web', 'chat')!.rates[0]!.bucket.level(0);
    // Three words, and the event that ends them.
    expect(Math.round(used)).toBe(Math.ceil(stream.body.length / 4) + 4);
    gateway.engines.set(A, chatAnswer('x', 0));
    const next = chat(gateway, { max_tokens: 40_000 });
    await gateway.time.advance(1);
    expect(next.status).toBe(200);
  });

  it.each([
    ['a stream', true, (words: number) => words > 0],
    ['a whole answer', false, (words: number) => words === 0],
  ])('of %s whose caller leaves are charged as far as they came', async (_name, stream, expectWords) => {
    const { gateway } = world({ tokens: '60000/d' });
    gateway.engines.set(A, chatStream(Array(50).fill('a'), 10));
    const caller = chat(gateway, { stream, max_tokens: 40_000 });
    await gateway.time.advance(205);
    caller.leave();
    const used = 60_000 - gateway.world.quotas.lineOf('web', 'chat')!.rates[0]!.bucket.level(205);
    const words = Math.round(used - Math.ceil(caller.body.length / 4));
    expect(expectWords(words)).toBe(true);
    expect(words).toBeLessThanOrEqual(20);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it.each([
    ['the engine fails', status(500), 502],
    ['the engine says that the request is wrong', status(400), 400],
    ['the connection breaks', failing({ kind: 'reset', unsent: false }), 502],
    ['nothing comes in time', never, 504],
  ])('come back whole where %s', async (_name, engine, expected) => {
    const { gateway } = world({ tokens: '60000/d' });
    gateway.engines.set(A, engine);
    const caller = chat(gateway, { max_tokens: 40_000 });
    await gateway.time.advance(4000);
    expect([caller.status, left(caller, 'tokens')]).toEqual([expected, 60_000]);
  });

  it('of an answer that no engine gave are none', async () => {
    const { gateway } = world({ tokens: '60000/d' }, { route: { ladder: [{ answer: 'Later.' }] } });
    gateway.engines.set(A, status(500));
    const caller = chat(gateway, { max_tokens: 40_000 });
    await gateway.time.advance(10);
    expect([caller.status, left(caller, 'tokens')]).toEqual([200, 60_000]);
  });

  it('used beyond what was set aside leave a debt that the next one waits for', async () => {
    const { gateway } = world({ tokens: '60000/min' });
    gateway.engines.set(A, usage(10, 69_990));
    const caller = chat(gateway, { max_tokens: 100 });
    await gateway.time.advance(10);
    expect([caller.status, left(caller, 'tokens')]).toEqual([200, 0]);
    expect(refusal(chat(gateway, { max_tokens: 1 }))).toEqual([429, 'quota_exceeded', '11']);
  });

  it('are those of the prompt for embeddings, and none for tensors', async () => {
    const { gateway } = world({ tokens: '600/min' });
    gateway.engines.set(A, (served) => {
      const embeddings = served.request.path.endsWith('embeddings');
      served.sink.onHead(200, { 'content-type': 'application/json' });
      served.sink.onData(
        Buffer.from(embeddings ? '{"data":[],"usage":{"prompt_tokens":7}}' : '{"outputs":[]}'),
      );
      served.sink.onEnd();
    });
    const input = { model: 'chat', input: 'x'.repeat(4000) };
    const embedded = gateway.send('POST', '/v1/embeddings', input, AUTH);
    const tensors = { inputs: [{ name: 'x', shape: [1], datatype: 'FP32', data: [1] }] };
    const infer = gateway.send('POST', '/v2/models/tensors/infer', tensors, AUTH);
    await gateway.time.advance(1);
    expect([embedded.status, left(embedded, 'tokens')]).toEqual([200, 593]);
    expect([infer.status, left(infer, 'tokens')]).toEqual([200, 593]);
  });
});

describe('requests at once', () => {
  it('are refused beyond the limit, and every way out gives the slot back', async () => {
    const { gateway } = world({ concurrency: 2 });
    gateway.engines.set(A, never);
    const [one, two, three] = [chat(gateway), chat(gateway, { stream: true }), chat(gateway)];
    expect(refusal(three!)).toEqual([429, 'quota_exceeded', '1']);
    one!.leave();
    const four = chat(gateway);
    expect([four.status, chat(gateway).status]).toEqual([undefined, 429]);
    await gateway.time.advance(3000);
    expect([two!.status, four.status]).toEqual([504, 504]);
    for (const engine of [status(500), failing(), status(400), chatAnswer('x'), chatStream(['a'])]) {
      gateway.engines.set(A, engine);
      const both = [chat(gateway, { stream: true }), chat(gateway, { stream: true })];
      await gateway.time.advance(2000);
      expect(both.map(({ ended }) => ended)).toEqual([true, true]);
      expect(both.map(({ status: of }) => of)).not.toContain(429);
    }
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.leases.used('|web')).toBe(0);
  });

  it('do not cost a request of the rate where they are refused', async () => {
    const { gateway } = world({ concurrency: 1, requests: '2/min' });
    gateway.engines.set(A, never);
    const one = chat(gateway);
    expect(left(chat(gateway), 'requests')).toBe(1);
    one.leave();
    expect([chat(gateway).status, chat(gateway).status]).toEqual([undefined, 429]);
  });
});

describe('limits of a route', () => {
  it('hold beside those of the tenant, and only there', async () => {
    const { gateway } = world({ requests: '4/min', routes: { chat: { requests: '1/min' } } });
    const on = (model: string) => chat(gateway, { model });
    const callers = [on('chat'), on('chat'), on('other'), on('other'), on('other'), on('other')];
    await gateway.time.advance(10);
    expect(callers.map(({ status: of }) => of)).toEqual([200, 429, 200, 200, 200, 429]);
    expect(callers[1]!.text).toContain("tenant 'web' on 'chat' is 1 requests/min");
    expect(callers[5]!.text).toContain("tenant 'web' is 4 requests/min");
    // Of two limits the one with less left is told.
    expect(callers[0]!.answerHeader('x-ratelimit-limit-requests')).toBe('1');
    expect(callers[2]!.answerHeader('x-ratelimit-limit-requests')).toBe('4');
  });

  it('hold alone where the tenant has no others', async () => {
    const { gateway } = world({ routes: { chat: { concurrency: 1, tokens: '1000/min' } } });
    gateway.engines.set(A, never);
    const on = (model: string) => chat(gateway, { model }).status;
    expect([on('chat'), on('chat'), on('other'), on('other')]).toEqual([
      undefined,
      429,
      undefined,
      undefined,
    ]);
  });
});

describe('a tenant', () => {
  it('whose limit is used up does not touch another one', async () => {
    const { gateway } = world({ requests: '1/min' });
    chat(gateway);
    expect(chat(gateway).status).toBe(429);
    gateway.world.tenants = undefined;
    const open = gateway.chat();
    await gateway.time.advance(10);
    expect([open.status, open.answerHeader('x-ratelimit-limit-requests')]).toEqual([200, undefined]);
  });

  it('is told in the record which limit it was, with its figures and its place in the configuration', async () => {
    const { gateway } = world({ routes: { chat: { tokens: '60000/min' } } });
    chat(gateway, { max_tokens: 50_000 });
    chat(gateway, { max_tokens: 50_000 });
    const [record] = gateway.records;
    expect([record!.outcome, record!.code]).toEqual(['refused', 'quota_exceeded']);
    const step = record!.steps.find(({ code }) => code === 'quota-short')!;
    expect(step).toMatchObject({
      what: 'admit',
      policy: 'token-bucket@1',
      setting: 'tenants.web.limits.routes.chat.tokens',
      figures: { asked: 50_020, there: 9980, max: 60_000, perSecond: 1000, retryAfterMs: 40_040 },
    });
    expect(replayable.get('token-bucket')!.replay(step.input, { next: () => 0 })).toEqual({
      choice: false,
      reason: { code: step.code, figures: step.figures },
    });
  });

  it('keeps its share when limits change, and nothing stays when they go', async () => {
    const { gateway, limit } = world({ requests: '10/min', concurrency: 2 });
    gateway.engines.set(A, never);
    const running = [chat(gateway), chat(gateway)];
    expect(chat(gateway).status).toBe(429);
    limit({ requests: '100/min', concurrency: 3 });
    const third = chat(gateway);
    expect([third.status, left(chat(gateway), 'requests')]).toEqual([undefined, 79]);
    limit({});
    expect(gateway.leases.held('|web')).toBe(3);
    expect(chat(gateway).status).toBeUndefined();
    for (const caller of [...running, third]) caller.leave();
    expect(gateway.leases.held('|web')).toBe(0);
    limit({ concurrency: 1 });
    expect([chat(gateway).status, chat(gateway).status]).toEqual([undefined, 429]);
    await gateway.time.advance(5000);
    expect([gateway.leases.used('|web'), gateway.taken]).toEqual([0, NOTHING]);
  });
});

it('tokens cost what the backend that used them asks', async () => {
  const { gateway } = world({}, { backend: { price: { in: 2, out: 10 } } });
  gateway.engines.set(A, usage(1000, 500));
  chat(gateway);
  await gateway.time.advance(10);
  gateway.engines.set(A, status(500));
  chat(gateway);
  await gateway.time.advance(10);
  const cost = await gateway.registry.getSingleMetric('armature_cost_total')!.get();
  expect(cost.values).toEqual([{ labels: { route: 'chat', tenant: 'web' }, value: 0.007 }]);
});
