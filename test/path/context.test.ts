import { describe, expect, it } from 'vitest';
import { A, B, C, chatOf, codes, sentTo, stepOf, turn, world } from './context-world.ts';
import { chatAnswer, chatStream, type Engine, failing, NOTHING, never, status } from './virtual-gateway.ts';

/** What is sent of a conversation to backends with different windows, and summaries of what is not, on counts by bytes. */

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
