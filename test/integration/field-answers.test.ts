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

describe('an error', () => {
  const words = { error: { message: 'too long', type: 'x', param: null, code: 'context_length_exceeded' } };

  it('whose words never end costs nobody more than a moment', async () => {
    await using it = await world(async (x) => {
      await x.head(503, JSON_TYPE);
      await x.body('{"error"');
      await x.hang();
    });
    const answer = await it.armature.ask({ ...whole, body: chatBody({ model: 'safe' }) }, 5000);
    expect([answer.status, answer.text]).toEqual([200, 'spare']);
    it.engine.script = async (x) => {
      await x.head(500, JSON_TYPE);
      for (;;) await x.body('x'.repeat(65_536));
    };
    const endless = await it.armature.ask(tensor, 5000);
    expect([endless.status, typeof endless.json().error]).toEqual([502, 'string']);
    await it.armature.idle();
  });

  it('keeps its words though they come compressed', async () => {
    await using it = await world((x) => x.json(words, { status: 400, gzip: true }));
    const answer = await it.armature.ask(whole);
    expect([answer.status, answer.json()]).toEqual([400, words]);
    expect(answer.header('content-encoding')).toBeUndefined();
    it.engine.script = (x) => x.json({ error: 'bad shape' }, { status: 400, gzip: true });
    const tensors = await it.armature.ask({ ...tensor, headers: [['Accept-Encoding', 'gzip']] });
    expect([tensors.status, tensors.json()]).toEqual([400, { error: 'bad shape' }]);
  });

  it('that the caller made itself is not sent again by its client', async () => {
    await using it = await world((x) => x.json(words, { status: 409 }));
    const answer = await it.armature.ask(whole);
    expect([answer.status, answer.header('x-should-retry')]).toEqual([409, 'false']);
  });
});

describe('the events of a stream', () => {
  const line = (object: object) => `data: ${JSON.stringify(object)}`;
  const words = [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'all ' }),
    chunk({ content: 'of it' }),
  ];
  const usage = {
    ...chunk(),
    choices: [],
    usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
  };
  const told = [...[...words, chunk({}, 'stop'), usage].map(line), 'data: [DONE]'];

  it.each([
    ['end with CR alone', (event: string) => `${event}\r\r`],
    ['have comments before their data', (event: string) => `: ping\n${event}\n\n`],
    ['have a name and an id', (event: string) => `event: message\nid: 1\n${event}\n\n`],
    [
      'have their data on several lines',
      (event: string) => `${event.replace(',"created"', '\ndata: ,"created"')}\n\n`,
    ],
  ])('are understood where they %s', async (_, frame) => {
    await using it = await world(async (x) => {
      await x.sseHead();
      for (const event of told) await x.body(frame(event));
      await x.end();
    });
    const answer = await it.armature.ask(stream);
    expect([answer.status, answer.text, answer.error]).toEqual([200, 'all of it', undefined]);
    expect(answer.body.includes('data: [DONE]')).toBe(true);
    expect(answer.body.includes('prompt_tokens')).toBe(false);
    expect(await it.armature.metric('armature_tokens_total', { kind: 'in' })).toBe(7);
  });

  it('lose no word to a byte order mark', async () => {
    await using it = await world(async (x) => {
      await x.sseHead();
      await x.body('\ufeff');
      for (const event of told.slice(1)) await x.body(`${event}\n\n`);
      await x.end();
    });
    expect((await it.armature.ask(stream)).text).toBe('all of it');
  });

  it('with empty finish reasons are no end', async () => {
    await using it = await world(async (x) => {
      await x.sseHead();
      await x.event(chunk({ content: 'all ' }, ''));
      await x.event(chunk({ content: 'of' }, ''));
      await x.end();
    });
    const answer = await it.armature.ask(stream);
    expect([answer.done, answer.error?.code]).toEqual([false, 'backend_error']);
  });

  it.each(['data: {"error":"x"}', 'event: error\ndata: x', 'id: 3\nevent: error\ndata: {}'])(
    'tell a failure once, however shortly: %j',
    async (event) => {
      await using it = await world(async (x) => {
        await x.sseHead();
        await x.event(chunk({ content: 'all ' }));
        await x.body(`${event}\n\n`);
        await x.end();
      });
      const answer = await it.armature.ask(stream);
      expect([answer.done, answer.body.toString().match(/error/g)?.length]).toEqual([false, 1]);
      expect(await it.armature.metric('armature_requests_total', { outcome: 'failed' })).toBe(1);
    },
  );
});
