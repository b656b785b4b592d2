import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { config, echo, open, origins, textOf, user } from './pipelines-world.ts';
import { chatStream, type Engine, NOTHING, never, status, VirtualGateway } from './virtual-gateway.ts';

const KEY = 'key-of-web';
const KEY_HASH = `sha256:${createHash('sha256').update(KEY).digest('hex')}`;

describe('callers', () => {
  const one = { a: { route: 'r1', input: 'a: {{ request.text }}', stream: true } };

  it('of /v1/completions ask with a prompt, and get a completion', async () => {
    const gateway = open(one, [echo()]);
    const whole = gateway.send('POST', '/v1/completions', {
      model: 'search',
      prompt: 'Hi',
      max_tokens: 5,
      echo: true,
    });
    await gateway.time.advance(50);
    expect(JSON.parse(whole.text)).toMatchObject({
      object: 'text_completion',
      choices: [{ index: 0, text: '<a: Hi>', finish_reason: 'stop' }],
    });
    const asked = JSON.parse(String(gateway.served[0]!.request.body));
    expect(asked).toMatchObject({ max_tokens: 5 });
    expect(asked.echo).toBeUndefined();
    gateway.engines.set(origins[0]!, chatStream(['one ', 'two']));
    const stream = gateway.send('POST', '/v1/completions', { model: 'search', prompt: 'Hi', stream: true });
    await gateway.time.advance(50);
    const chunks = stream.text
      .trim()
      .split('\n\n')
      .map((each) => each.slice(6));
    expect(chunks.at(-1)).toBe('[DONE]');
    const parsed = chunks.slice(0, -1).map((each) => JSON.parse(each));
    expect(parsed.map(({ choices }) => choices[0].text).join('')).toBe('one two');
    expect(parsed.every(({ object }) => object === 'text_completion')).toBe(true);
  });

  it('are told what is wrong with their request', async () => {
    const gateway = open(one, [echo()]);
    const ask = (body: unknown, target = '/v1/chat/completions') => {
      const caller = gateway.send('POST', target, body);
      return [caller.status, JSON.parse(caller.text).error?.param];
    };
    for (const messages of [undefined, null, 'Hi', [], [1], [null], ['Hi'], {}]) {
      expect(ask({ model: 'search', messages })).toEqual([400, 'messages']);
    }
    expect(ask('{"model":"search","messages":[{"role":"user","content":tru}]}')[0]).toBe(400);
    for (const prompt of [undefined, 1, [], ['a', 'b'], [1, 2], [['x']], {}]) {
      expect(ask({ model: 'search', prompt }, '/v1/completions')).toEqual([400, 'prompt']);
    }
    expect(ask({ model: 'search', input: 'Hi' }, '/v1/embeddings')).toEqual([400, 'model']);
    expect(gateway.served).toHaveLength(0);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('say once what a pipeline goes by', async () => {
    const gateway = open(one, [echo()]);
    const said = (text: string) => `"messages":[{"role":"user","content":"${text}"}]`;
    const twice = gateway.send(
      'POST',
      '/v1/chat/completions',
      `{"model":"search",${said('a')},${said('b')}}`,
    );
    const tensor = { name: 'text', datatype: 'BYTES', shape: [1], data: ['a'] };
    const tensors = gateway.send('POST', '/v2/models/search/infer', { inputs: [tensor, tensor] });
    await gateway.time.advance(50);
    expect([twice.status, JSON.parse(twice.text).error.param]).toEqual([400, 'messages']);
    expect([tensors.status, tensors.text]).toEqual([400, '{"error":"input \'text\' is given twice"}']);
    expect(gateway.served).toHaveLength(0);
  });

  it('say as much as they like around their last words', async () => {
    const gateway = open(one, [echo()]);
    const messages = [
      { role: 'user', content: 'first' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: {} },
          { type: 'text', text: 'b' },
          7,
          null,
        ],
      },
      { role: 'assistant', content: null },
    ];
    const caller = gateway.chat({ model: 'search', messages, seed: 1 });
    await gateway.time.advance(50);
    expect(textOf(caller)).toBe('<a: ab>');
    const silent = gateway.chat({ model: 'search', messages: [{ role: 'system', content: 'x' }] });
    await gateway.time.advance(50);
    expect(textOf(silent)).toBe('<a: >');
  });

  it('keep the digits of their numbers', async () => {
    const gateway = open(one, [echo()]);
    gateway.send(
      'POST',
      '/v1/chat/completions',
      '{"model":"search","messages":[{"role":"user","content":"Hi"}],"seed":12345678901234567890,"top_p":1e400,' +
        '"__proto__":{"x":1},"metadata":{"order":9007199254740993,"of":["\\u00e9",0.5,18446744073709551615]}}',
    );
    await gateway.time.advance(50);
    const asked = String(gateway.served[0]!.request.body);
    expect(asked).toContain('"seed":12345678901234567890,"top_p":1e400,');
    expect(asked).toContain('"metadata":{"order":9007199254740993,"of":["\u00e9",0.5,18446744073709551615]}');
  });

  it('who leave cancel every stage that runs', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a' },
        b: { route: 'r2', input: 'b' },
        c: { route: 'r3', after: ['a', 'b'], input: 'c' },
      },
      [never, never, echo()],
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(100);
    caller.leave();
    expect(gateway.served.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
    expect(gateway.records[0]).toMatchObject({ outcome: 'aborted' });
    expect(gateway.records[0]!.steps.filter(({ code }) => code === 'stage-cancelled')).toHaveLength(2);
  });

  it('who leave in the middle of the stream cancel the last stage, and slow ones hold it up', async () => {
    const gateway = open(one, [chatStream(['one ', 'two ', 'three ', 'four'], 10)]);
    const caller = gateway.chat({ model: 'search', stream: true });
    caller.full = true;
    await gateway.time.advance(25);
    expect(gateway.served[0]!.paused).toBe(true);
    caller.full = false;
    caller.onDrain?.();
    expect(gateway.served[0]!.paused).toBe(false);
    await gateway.time.advance(10);
    caller.leave();
    expect(gateway.served[0]!.aborted).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('cannot make a template of their words', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: '{{ request.text }}' },
        b: { route: 'r2', after: ['a'], input: '{{ a }}{% if a %}{{ a }}{% endif %}' },
      },
      [echo(), echo()],
    );
    const hostile = '{{ 7 * 7 }}{% for i in range(9) %}x{% endfor %}{# gone #} {{ request }}\n';
    const caller = gateway.chat({ model: 'search', messages: user(hostile) });
    await gateway.time.advance(50);
    expect(textOf(caller)).toBe(`<<${hostile}><${hostile}>>`);
  });
});

describe('a pipeline among others', () => {
  const two = {
    a: { route: 'r1', input: 'a' },
    b: { route: 'r2', after: ['a'], input: '{{ a }}', stream: true },
  };

  it('finishes while the gateway drains, and ends with it', async () => {
    const gateway = open(two, [echo(50), echo(50)]);
    const finishes = gateway.chat({ model: 'search' });
    gateway.path.draining = true;
    await gateway.time.advance(110);
    expect(textOf(finishes)).toBe('<<a>>');
    gateway.path.draining = false;
    gateway.engines.set(origins[1]!, never);
    const ends = gateway.chat({ model: 'search' });
    await gateway.time.advance(60);
    gateway.path.draining = true;
    gateway.path.endAll();
    expect(ends.status).toBe(503);
    expect(JSON.parse(ends.text).error.code).toBe('draining');
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it('goes on as it began when the configuration changes', async () => {
    const gateway = open(two, [echo(50), echo(50)]);
    const old = gateway.chat({ model: 'search' });
    await gateway.time.advance(10);
    const next = config({ z: { route: 'r3', input: 'new' } });
    // The route of a stage that is still to come has another name now.
    const { r2, ...routes } = next.routes;
    gateway.load({ ...next, routes: { ...routes, renamed: r2 } });
    gateway.engines.set(origins[2]!, echo());
    const young = gateway.chat({ model: 'search' });
    await gateway.time.advance(200);
    expect(textOf(old)).toBe('<<a>>');
    expect(textOf(young)).toBe('<new>');
  });

  it('never waits for itself: one place of a tenant is enough, and its stages take their tokens', async () => {
    const settings = config({
      a: { route: 'r1', input: 'a' },
      c: { route: 'r1', input: 'c' },
      b: { route: 'r2', after: ['a', 'c'], input: 'b' },
    });
    const gateway = new VirtualGateway({
      ...settings,
      tenants: {
        web: {
          limits: { requests: '100/s', tokens: '1000/min', concurrency: 1 },
          keys: [{ hash: KEY_HASH }],
        },
      },
    });
    for (const origin of origins) gateway.engines.set(origin, echo());
    const headers = { authorization: `Bearer ${KEY}` };
    const caller = gateway.chat({ model: 'search', max_tokens: 10 }, headers);
    await gateway.time.advance(50);
    expect(textOf(caller)).toBe('<b>');
    expect(Number(caller.answerHeader('x-ratelimit-remaining-tokens'))).toBeLessThan(1000);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('takes kept answers, and answers that others wait for, where its routes do', async () => {
    const routes = { r1: { cache: { ttl: '1m' }, singleFlight: true } };
    const stages = {
      a: { route: 'r1', input: '{{ request.text }}', parameters: { temperature: 0 } },
      b: { route: 'r2', after: ['a'], input: '{{ a }}' },
    };
    const gateway = open(stages, [echo(), echo()], { routes });
    const callers = [gateway.chat({ model: 'search' }), gateway.chat({ model: 'search' })];
    await gateway.time.advance(50);
    callers.push(gateway.chat({ model: 'search' }));
    await gateway.time.advance(50);
    expect(callers.map(textOf)).toEqual(Array(3).fill('<<Hi>>'));
    expect(gateway.served.map(({ request }) => JSON.parse(String(request.body)).model)).toEqual([
      'm1',
      'm2',
      'm2',
      'm2',
    ]);
    expect(gateway.taken).toEqual({ ...NOTHING, bytes: expect.any(Number) });
    expect(gateway.time.pending).toBe(0);
  });

  it('of a batch waits out what passes, and lets stand in what does not', async () => {
    const stages = {
      a: { route: 'r1', input: 'a', budget: '1s', onFailure: { use: 'plain' } },
      b: { route: 'r2', after: ['a'], input: '{{ a }}' },
    };
    const line = async (engine: Engine) => {
      const gateway = open(stages, [engine, echo()], {
        routes: { r1: { retry: { attempts: 1 }, ladder: [{ answer: 'rung' }] } },
      });
      let answer: [number, string] | undefined;
      gateway.path.ask(
        {
          target: '/v1/chat/completions',
          body: Buffer.from(JSON.stringify({ model: 'search', messages: user('Hi') })),
          terms: {
            tenant: 'open',
            charged: 'request',
            priority: 'batch',
            deadlineAt: undefined,
            ladder: false,
            session: undefined,
          },
        },
        {
          whole: (status, _, body) => (answer = [status, body.toString()]),
          open: () => {},
          piece: () => true,
          end: () => {},
          broken: () => {},
        },
      );
      await gateway.time.advance(1500);
      expect(gateway.taken).toEqual(NOTHING);
      return [
        answer![0],
        answer![0] === 200 ? textOf({ text: answer![1] }) : JSON.parse(answer![1]).error.code,
      ];
    };
    expect(await line(status(503))).toEqual([503, 'overloaded']);
    expect(await line(status(500))).toEqual([502, 'backend_error']);
    expect(await line(status(400))).toEqual([200, '<plain>']);
    expect(await line(never)).toEqual([200, '<plain>']);
  });
});
