import { describe, expect, it } from 'vitest';
import { backendOf, chatBody, startArmature } from '../upstream/armature.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chat, chunk, textChunks } from '../upstream/scripts.ts';

/** Engines that answer 200 and something that is no answer: it is theirs to be sorry for, not the caller's to find out. */

const stream = { path: '/v1/chat/completions', body: chatBody({ stream: true }) };
const whole = { path: '/v1/chat/completions', body: chatBody() };
const tensor = { path: '/v2/models/tensor/infer', body: { inputs: [] } };
const JSON_TYPE = [['Content-Type', 'application/json']] as const;

/** Routes `chat` and `tensor` before the script alone, and `safe` with a rung below it. */
async function world(script: Script) {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine(script));
  const spare = stack.use(await startEngine(chat(['spare'])));
  const retry = { attempts: 1 };
  const armature = stack.use(
    await startArmature({
      backends: {
        b1: backendOf(engine),
        t1: backendOf(engine, { engine: 'oip' }),
        spare: backendOf(spare),
      },
      routes: {
        chat: { targets: [{ backend: 'b1' }], retry },
        safe: { targets: [{ backend: 'b1' }], ladder: [{ backend: 'spare' }], retry },
        tensor: { targets: [{ backend: 't1' }], retry },
      },
    }),
  );
  return { engine, armature, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const html: Script = (x) =>
  x.whole(Buffer.from('<html>It works!</html>'), 200, [['Content-Type', 'text/html']]);
const cut: Script = async (x) => {
  await x.head(200, JSON_TYPE, 'close');
  await x.body('{"id":"x","choices":[');
  x.fin();
};

describe('no answer, with status 200', () => {
  it.each([
    ['a page', html],
    ['nothing', (x) => x.whole(Buffer.alloc(0), 200, JSON_TYPE)],
    ['no content', (x) => x.whole(Buffer.alloc(0), 204, [])],
    ['JSON cut short where the connection tells the end', cut],
    ['an error', (x) => x.json({ error: { message: 'out of memory', type: 'x', param: null, code: 500 } })],
  ] satisfies [string, Script][])(
    '%s is an error of the engine, and the next rung answers',
    async (_, script) => {
      await using it = await world(script);
      const answer = await it.armature.ask(whole);
      expect([answer.status, answer.error?.code]).toEqual([502, 'backend_error']);
      const safe = await it.armature.ask({ ...whole, body: chatBody({ model: 'safe' }) });
      expect([safe.status, safe.text]).toEqual([200, 'spare']);
      const streamed = await it.armature.ask({ ...stream, body: chatBody({ model: 'safe', stream: true }) });
      expect([streamed.status, streamed.text, streamed.done]).toEqual([200, 'spare', true]);
    },
  );

  it('is one for tensors too', async () => {
    for (const script of [html, cut]) {
      await using it = await world(script);
      const answer = await it.armature.ask(tensor);
      expect([answer.status, typeof answer.json().error]).toEqual([502, 'string']);
    }
  });
});

describe('a stream', () => {
  it.each([
    [
      'an object of kind error',
      `data: ${JSON.stringify({ object: 'error', message: 'boom', code: 500 })}\n\n`,
    ],
    ['an error that is a text', `data: ${JSON.stringify({ error: 'boom' })}\n\n`],
    ['an event named error', `event: error\ndata: ${JSON.stringify({ message: 'boom' })}\n\n`],
  ])('that says %s before its first content leaves it to the next rung', async (_, event) => {
    await using it = await world(async (x) => {
      await x.sseHead();
      await x.event(chunk({ role: 'assistant', content: '' }));
      await x.body(event);
      await x.end();
    });
    const answer = await it.armature.ask({ ...stream, body: chatBody({ model: 'safe', stream: true }) });
    expect([answer.status, answer.text, answer.done]).toEqual([200, 'spare', true]);
    expect(answer.error).toBeUndefined();
  });

  it('ends for the caller with [DONE], though its engine keeps the connection', async () => {
    await using it = await world(async (x) => {
      await x.sseHead();
      for (const object of textChunks(['all'])) await x.event(object);
      await x.event('[DONE]');
      await x.hang();
    });
    const answer = await (await it.armature.ask(stream, 3000)).whole();
    expect([answer.complete, answer.done, answer.text]).toEqual([true, true, 'all']);
    await it.armature.idle();
  });

  it('of two choices, of which one is cut, is no clean end', async () => {
    const second = (delta: object) => ({ ...chunk(), choices: [{ index: 1, delta, finish_reason: null }] });
    await using it = await world(async (x) => {
      await x.sseHead();
      await x.event(chunk({ content: 'one' }));
      await x.event(second({ content: 'two' }));
      await x.event(chunk({}, 'stop'));
      await x.end();
    });
    const answer = await it.armature.ask({ ...stream, body: chatBody({ stream: true, n: 2 }) });
    expect([answer.done, answer.error?.code]).toEqual([false, 'backend_error']);
  });
});
