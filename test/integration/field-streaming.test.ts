import { describe, expect, it } from 'vitest';
import { type Armature, backendOf, type Config, chatBody, startArmature } from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { letGo, nowMs, type Script, startEngine } from '../upstream/engine.ts';
import {
  chat,
  chunk,
  cutStream,
  delayed,
  failWith,
  headOnly,
  never,
  oipEcho,
  rawStream,
  textChunks,
} from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** What goes wrong with streams and with callers that leave, in the field; each kind as one test. */

const stream = { path: '/v1/chat/completions', body: chatBody({ stream: true }) };
const whole = { path: '/v1/chat/completions', body: chatBody() };
const tensor = {
  path: '/v2/models/tensor/infer',
  body: { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }] },
};

/** Routes `chat` and `tensor` before two scripts, each with a ladder where one is given. */
async function world(script: Script, more: { backend?: Config; ladder?: Script; route?: Config } = {}) {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine(script));
  const spare = stack.use(await startEngine(more.ladder ?? failWith(500)));
  const ladder = more.ladder ? [{ backend: 'spare' }] : [];
  const armature: Armature = stack.use(
    await startArmature({
      backends: {
        b1: backendOf(engine, more.backend),
        t1: backendOf(engine, { engine: 'oip', ...more.backend }),
        spare: backendOf(spare, { model: 'spare-model' }),
      },
      routes: {
        chat: { targets: [{ backend: 'b1' }], deadline: '20s', ladder, ...more.route },
        tensor: { targets: [{ backend: 't1' }], deadline: '20s', ...more.route },
      },
    }),
  );
  return { engine, spare, armature, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe('a caller that leaves', () => {
  it.each([
    ['waits for a whole answer', never, whole],
    ['waits for the first byte of a stream', never, stream],
    ['waits for the first event', headOnly, stream],
    ['waits for tensors', never, tensor],
  ])('cancels the engine at once while it %s', async (_, script, request) => {
    await using it = await world(script);
    for (const how of ['fin', 'reset'] as const) {
      using client = await RawClient.open(it.armature.gatewayPort);
      const count = it.engine.posts.length;
      client.request(request);
      const received = await it.engine.posted(count + 1);
      const leftAtMs = nowMs();
      client.leave(how);
      expect((await letGo(received)) - leftAtMs, how).toBeLessThan(250);
    }
    await it.armature.idle();
    expect(it.engine.posts).toHaveLength(2);
  });

  it('while it waits in the queue is never sent to an engine', async () => {
    await using it = await world(never, { backend: { limits: { concurrency: 1 } } });
    using first = await RawClient.open(it.armature.gatewayPort);
    first.request(whole);
    await it.engine.posted(1);
    using second = await RawClient.open(it.armature.gatewayPort);
    second.request(whole);
    const waiting = () => it.armature.metric('armature_queue_depth');
    await eventually('one waits', async () => (await waiting()) === 1);
    second.leave('fin');
    await eventually('nobody waits', async () => (await waiting()) === 0);
    first.leave('fin');
    await it.armature.idle();
    expect(it.engine.posts).toHaveLength(1);
  });

  it('ends the retries of its request', async () => {
    const slowlyRefusing = delayed(200, failWith(500));
    await using it = await world(slowlyRefusing, { route: { retry: { attempts: 10, budget: 1 } } });
    using client = await RawClient.open(it.armature.gatewayPort);
    client.request(whole);
    await it.engine.posted(2);
    client.leave('reset');
    await letGo(it.engine.posts.at(-1)!);
    const count = it.engine.posts.length;
    await it.armature.idle();
    expect(it.engine.posts).toHaveLength(count);
  });
});

describe('an answer that breaks off', () => {
  it.each(['fin', 'reset'] as const)(
    'in the middle of a stream, by %s, is told as an error event',
    async (how) => {
      await using it = await world(cutStream(['one ', 'two '], how), { ladder: chat() });
      const answer = await it.armature.ask(stream);
      expect([answer.status, answer.text, answer.done]).toEqual([200, 'one two ', false]);
      expect(answer.error).toMatchObject({ message: expect.any(String), code: 'backend_error' });
      expect([it.engine.posts.length, it.spare.posts.length]).toEqual([1, 0]);
      await it.armature.idle();
    },
  );

  it('inside a character leaves whole events, and an error event that can be read', async () => {
    const [role, text] = textChunks(['whole ']).map((object) => `data: ${JSON.stringify(object)}\n\n`);
    const torn = Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"caf\xc3', 'latin1');
    const script: Script = async (x) => {
      await x.sseHead();
      for (const piece of [role!, text!, torn]) await x.body(piece);
      x.fin();
    };
    await using it = await world(script);
    const answer = await it.armature.ask(stream);
    expect(answer.text).toBe('whole ');
    expect(answer.error.code).toBe('backend_error');
    expect(answer.sse.rest).toBe('');
  });

  it('without a finish reason, though its connection ends as it should, is no clean end either', async () => {
    const lines = textChunks(['one ']).slice(0, -1);
    const script = rawStream(lines.map((object) => `data: ${JSON.stringify(object)}\n\n`));
    await using it = await world(script);
    const answer = await it.armature.ask(stream);
    expect(answer.text).toBe('one ');
    expect(answer.done).toBe(false);
    expect(answer.error).toBeDefined();
  });

  it.each([
    ['chat', whole, '{"id":"chatcmpl-1","object":"chat.'],
    ['tensors', tensor, '{"model_name":"engine-model","outp'],
  ])('in the middle of a whole answer (%s) never passes for a good one', async (_, request, part) => {
    const script: Script = async (x) => {
      await x.head(200, [['Content-Type', 'application/json']], 'length', 400);
      await x.body(part);
      x.reset();
    };
    await using it = await world(script);
    const answer = await it.armature.ask(request);
    expect(answer.status === 502 || (answer.status === 200 && !answer.complete)).toBe(true);
    await it.armature.idle();
  });
});

describe('before the first content', () => {
  const error = { message: 'out of memory', type: 'server_error', param: null, code: null };

  it('an error event still falls back to the next rung, labelled', async () => {
    const script: Script = async (x) => {
      await x.sseHead();
      await x.event(chunk({ role: 'assistant', content: '' }));
      await x.event({ error });
      await x.end();
    };
    await using it = await world(script, {
      ladder: chat(['fall', 'back']),
      route: { retry: { attempts: 1 } },
    });
    const answer = await it.armature.ask(stream);
    expect([answer.text, answer.done, answer.error]).toEqual(['fallback', true, undefined]);
    expect(answer.header('x-armature-degraded')).toBeTruthy();
    expect(answer.header('x-armature-backend')).toBe('spare');
  });

  it('when the fallback fails too, the caller gets the status of an error, not 200', async () => {
    await using it = await world(failWith(500), { ladder: failWith(500) });
    for (const request of [stream, whole]) {
      const answer = await it.armature.ask(request);
      expect([answer.status, answer.isStream]).toEqual([502, false]);
      expect(answer.error.code).toBe('backend_error');
    }
    expect(it.spare.posts.length).toBeGreaterThan(0);
  });
});

describe('pace', () => {
  it('each event goes on when it comes', async () => {
    const sentAtMs: number[] = [];
    const script: Script = async (x) => {
      await x.sseHead();
      for (let i = 0; i < 20; i++) {
        sentAtMs.push(nowMs());
        await x.event(chunk({ content: `w${i} ` }));
        await x.pause(20);
      }
      await x.event(chunk({}, 'stop'));
      await x.event('[DONE]');
      await x.end();
    };
    await using it = await world(script);
    const answer = await it.armature.ask(stream);
    const cameAtMs = sentAtMs.map(
      (_, i) =>
        answer.pieces.find(({ bytes }) => bytes.includes(`"w${i} "`))?.atMs ?? Number.POSITIVE_INFINITY,
    );
    const lateMs = cameAtMs.map((came, i) => came - sentAtMs[i]!).sort((a, b) => a - b);
    // The second-worst, for one pause of the machine is not the gateway's.
    expect(lateMs.at(-2)).toBeLessThan(50);
  });

  it('a caller that does not read holds its engine back, and loses nothing', async () => {
    const piece = 'x'.repeat(64 * 1024);
    const count = 600;
    let sent = 0;
    const script: Script = async (x) => {
      await x.sseHead();
      for (sent = 0; sent < count; sent++) await x.event(chunk({ content: piece }));
      await x.event(chunk({}, 'stop'));
      await x.event('[DONE]');
      await x.end();
    };
    await using it = await world(script, { backend: { timeouts: { idle: '60s' } } });
    using client = await RawClient.open(it.armature.gatewayPort);
    client.pause();
    const answer = client.request(stream);
    let before = -1;
    // Two looks apart with no event more: the engine waits.
    await eventually('the engine is held back', async () => {
      await it.armature.metrics();
      await it.armature.metrics();
      const held = sent > 0 && sent === before;
      before = sent;
      return held;
    });
    expect(sent).toBeLessThan(count / 2);
    client.resume();
    await answer.whole(30_000);
    expect([answer.done, answer.text.length]).toEqual([true, piece.length * count]);
  });
});

describe('tensors', () => {
  it('flow through the same path: answered, counted, given back', async () => {
    await using it = await world(oipEcho);
    const answer = await it.armature.ask(tensor);
    expect(answer.json().outputs[0].data).toEqual([1]);
    await it.armature.idle();
    expect(await it.armature.metric('armature_requests_total', { route: 'tensor', outcome: 'ok' })).toBe(1);
  });
});
