import { describe, expect, it } from 'vitest';
import { echo, open, origins, textOf, user } from './pipelines-world.ts';
import { chatAnswer, chatStream, type Engine, NOTHING, never, status } from './virtual-gateway.ts';

describe('a pipeline', () => {
  it('runs its stages one after another, each with what the ones before said', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a {{ request.text }}' },
        b: { route: 'r2', after: ['a'], messages: user('b {{ a }} {{ stages.a.text }}') },
      },
      [echo(), echo()],
    );
    const caller = gateway.chat({ model: 'search', temperature: 0.5, seed: 7 });
    await gateway.time.advance(50);
    expect(textOf(caller)).toBe('<b <a Hi> <a Hi>>');
    expect(caller.answerHeader('x-armature-route')).toBe('search');
    expect(caller.answerHeader('x-armature-backend')).toBe('b2');
    expect(caller.answerHeader('x-armature-degraded')).toBeUndefined();
    expect(JSON.parse(String(gateway.served[0]!.request.body)).temperature).toBeUndefined();
    expect(JSON.parse(String(gateway.served[1]!.request.body))).toMatchObject({ temperature: 0.5, seed: 7 });
    expect(gateway.records).toHaveLength(1);
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it('streams its last stage', async () => {
    const gateway = open(
      { a: { route: 'r1', input: 'a' }, b: { route: 'r2', after: ['a'], input: '{{ a }}', stream: true } },
      [echo(), chatStream(['one ', 'two'])],
    );
    const caller = gateway.chat({ model: 'search', stream: true });
    await gateway.time.advance(50);
    expect(caller.text).toContain('"one "');
    expect(caller.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('cuts a stage at its budget, and goes on with what stands in', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a', budget: '100ms', onFailure: { use: 'general' } },
        b: { route: 'r2', after: ['a'], input: '{{ a }}' },
      },
      [never, echo()],
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(99);
    expect(gateway.served).toHaveLength(1);
    await gateway.time.advance(50);
    expect(textOf(caller)).toBe('<general>');
    expect(caller.answerHeader('x-armature-degraded')).toBe('a:use');
    expect(gateway.served[0]!.aborted).toBe(true);
    expect(gateway.records[0]).toMatchObject({ outcome: 'degraded', rung: 'a:use' });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('fails as its stage does, and lets the others go', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a' },
        b: { route: 'r2', input: 'b' },
        c: { route: 'r3', after: ['a', 'b'], input: '{{ a }}{{ b }}' },
      },
      [status(422), never, echo()],
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(5);
    expect(caller.status).toBe(422);
    expect(JSON.parse(caller.text).error.message).toContain("Stage 'a'");
    expect(gateway.served[1]!.aborted).toBe(true);
    expect(gateway.served).toHaveLength(2);
    expect(gateway.taken).toEqual(NOTHING);
  });
});

describe('the order of stages', () => {
  it('is that of `after` alone, and stages that do not wait for one another overlap', async () => {
    const gateway = open(
      {
        last: { route: 'r3', after: ['l', 'r'], input: '{{ l }}{{ r }}' },
        r: { route: 'r2', input: 'r' },
        l: { route: 'r1', input: 'l' },
      },
      [echo(100), echo(100), echo(10)],
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(0);
    expect(gateway.served).toHaveLength(2);
    await gateway.time.advance(115);
    expect(textOf(caller)).toBe('<<l><r>>');
  });

  it('starts a stage as soon as those before it are over, whatever others do', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a' },
        slow: { route: 'r2', input: 'slow' },
        b: { route: 'r3', after: ['a'], input: '{{ a }}' },
        end: { route: 'r4', after: ['b', 'slow'], input: '{{ b }}{{ slow }}' },
      },
      [echo(10), echo(500), echo(10), echo(10)],
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(15);
    expect(gateway.served).toHaveLength(3);
    await gateway.time.advance(600);
    expect(textOf(caller)).toBe('<<<a>><slow>>');
  });

  it('says what a stage can see, even by a name that is only known then', async () => {
    const named = '{{ stages[request.text].text }}{% for name in stages %}[{{ name }}]{% endfor %}';
    const gateway = open(
      {
        one: { route: 'r1', input: 'quick' },
        slow: { route: 'r2', input: 'slow' },
        b: { route: 'r3', after: ['slow'], input: named },
        end: { route: 'r4', after: ['one', 'b'], input: '{{ b }}' },
      },
      [echo(), echo(100), echo(), echo()],
    );
    const hidden = gateway.chat({ model: 'search', messages: user('one') });
    const seen = gateway.chat({ model: 'search', messages: user('slow') });
    await gateway.time.advance(200);
    expect(textOf(hidden)).toBe('<<[slow]>>');
    expect(textOf(seen)).toBe('<<<slow>[slow]>>');
  });
});

describe('time', () => {
  const three = {
    a: { route: 'r1', input: 'a' },
    b: { route: 'r2', after: ['a'], input: 'b' },
  };

  it('is the deadline of the pipeline, for all stages together', async () => {
    const gateway = open(three, [echo(300), never], { deadline: '500ms' });
    const callers = [gateway.chat({ model: 'search' }), gateway.chat({ model: 'search', stream: true })];
    await gateway.time.advance(499);
    expect(callers.map(({ status }) => status)).toEqual([undefined, undefined]);
    await gateway.time.advance(3);
    for (const caller of callers) {
      expect(caller.status).toBe(504);
      expect(JSON.parse(caller.text).error).toMatchObject({ code: 'deadline_exceeded' });
      expect(JSON.parse(caller.text).error.message).toMatch(/^Stage 'b': The deadline of 200 ms passed/);
    }
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });

  it('is narrowed by the caller, never widened', async () => {
    const gateway = open(three, [never, never], { deadline: '500ms' });
    const short = gateway.chat({ model: 'search' }, { 'x-armature-deadline-ms': '100' });
    const long = gateway.chat({ model: 'search' }, { 'x-armature-deadline-ms': '9999' });
    await gateway.time.advance(102);
    expect(short.status).toBe(504);
    expect(long.status).toBeUndefined();
    await gateway.time.advance(400);
    expect(long.status).toBe(504);
  });

  it('ends with a way out as well: what is left of the deadline is the budget of a stage without one', async () => {
    const gateway = open({ a: { route: 'r1', input: 'a', onFailure: { use: 'sorry' } } }, [never], {
      deadline: '300ms',
    });
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(302);
    expect(textOf(caller)).toBe('sorry');
    expect(caller.answerHeader('x-armature-degraded')).toBe('a:use');
  });

  it('of a stage is not given to another that has a budget', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a', budget: '400ms' },
        b: { route: 'r2', after: ['a'], input: 'b', budget: '100ms', onFailure: { use: 'late' } },
      },
      [echo(10), never],
      { deadline: '500ms' },
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(112);
    expect(textOf(caller)).toBe('late');
  });

  it('covers a rung, and a queue', async () => {
    const gateway = open(
      { a: { route: 'r1', input: 'a', budget: '100ms' }, b: { route: 'r2', after: ['a'], input: '{{ a }}' } },
      [never, echo()],
      { routes: { r1: { ladder: [{ answer: 'rung' }] } } },
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(150);
    expect(textOf(caller)).toBe('<rung>');
    expect(caller.answerHeader('x-armature-degraded')).toBe('a:answer');
  });

  it('of a stream ends with its first content', async () => {
    const gateway = open(
      { a: { route: 'r1', input: 'a', stream: true, budget: '100ms', onFailure: 'skip' } },
      [chatStream(['one ', 'two ', 'three'], 60)],
    );
    const late = gateway.chat({ model: 'search', stream: true });
    await gateway.time.advance(1000);
    expect(late.answerHeader('x-armature-degraded')).toBe('a:skip');
    expect(late.text.endsWith('data: [DONE]\n\n')).toBe(true);
    gateway.engines.set(origins[0]!, chatStream(['one ', 'two ', 'three'], 40));
    const caller = gateway.chat({ model: 'search', stream: true });
    await gateway.time.advance(1000);
    expect(caller.answerHeader('x-armature-degraded')).toBeUndefined();
    expect(caller.text).toContain('three');
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is spread by what stages took lately, where `auto` says so', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a', budget: 'auto', onFailure: 'skip' },
        b: { route: 'r2', after: ['a'], input: 'b', budget: 'auto', onFailure: 'skip' },
      },
      [echo(10), echo(90)],
      { deadline: '1s' },
    );
    for (let i = 0; i < 8; i++) {
      gateway.chat({ model: 'search' });
      await gateway.time.advance(200);
    }
    gateway.engines.set(origins[0]!, never);
    const caller = gateway.chat({ model: 'search' });
    // A tenth of the second, where equal parts would have been half of it.
    await gateway.time.advance(99);
    expect(gateway.served).toHaveLength(17);
    await gateway.time.advance(5);
    expect(gateway.served).toHaveLength(18);
    await gateway.time.advance(200);
    expect(caller.answerHeader('x-armature-degraded')).toBe('a:skip');
  });
});

describe('a stage that fails', () => {
  it('asks another route within what is left of its budget', async () => {
    const stages = {
      a: { route: 'r1', input: 'a', budget: '200ms', onFailure: { route: 'r3' } },
      b: { route: 'r2', after: ['a'], input: '{{ a }}' },
    };
    const gateway = open(stages, [status(500), echo(), echo()]);
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(100);
    expect(textOf(caller)).toBe('<<a>>');
    expect(caller.answerHeader('x-armature-degraded')).toBe('a:route');
    gateway.engines.set(origins[2]!, never);
    const failed = gateway.chat({ model: 'search' });
    await gateway.time.advance(203);
    expect(failed.status).toBe(504);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it.each([
    ['an engine without an answer', chatAnswer(undefined as never)],
    ['an error', status(500)],
    ['a refusal', status(400)],
    [
      'no JSON',
      (served: Parameters<Engine>[0]) => {
        served.sink.onHead(200, { 'content-type': 'application/json' });
        served.sink.onData(Buffer.from('<html>'));
        served.sink.onEnd();
      },
    ],
  ])('takes its way out at once: %s', async (_name, engine) => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a', budget: '1s', onFailure: { use: 'plain' } },
        b: { route: 'r2', after: ['a'], input: '{{ a }}' },
      },
      [engine, echo()],
      { routes: { r1: { retry: { attempts: 1 } } } },
    );
    const caller = gateway.chat({ model: 'search' });
    await gateway.time.advance(60);
    expect(textOf(caller)).toBe('<plain>');
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is told with status, code and name where it has no way out, and when to come again', async () => {
    const gateway = open({ a: { route: 'r1', input: 'a' } }, [status(503, {}, { 'retry-after': '7' })], {
      routes: { r1: { retry: { attempts: 1 } } },
    });
    const caller = gateway.chat({ model: 'search', stream: true });
    await gateway.time.advance(60);
    expect(caller.status).toBe(503);
    expect(caller.answerHeader('retry-after')).toBe('7');
    expect(JSON.parse(caller.text).error).toMatchObject({ code: 'overloaded', param: null });
    expect(gateway.records[0]).toMatchObject({ outcome: 'refused', code: 'overloaded', attempts: 1 });
  });

  it('in the middle of its stream is an error event, without an end', async () => {
    const gateway = open({ a: { route: 'r1', input: 'a', stream: true, onFailure: { use: 'no' } } }, [
      ({ sink }) => {
        sink.onHead(200, { 'content-type': 'text/event-stream' });
        sink.onData(Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n'));
        sink.onError({ kind: 'reset', message: 'reset', unsent: false, stale: false });
      },
    ]);
    const caller = gateway.chat({ model: 'search', stream: true });
    await gateway.time.advance(10);
    expect(caller.text.match(/"error"/g)).toHaveLength(1);
    expect(caller.text).not.toContain('[DONE]');
    expect(caller.ended).toBe(true);
    expect(gateway.records[0]).toMatchObject({ outcome: 'failed', status: 200, code: 'backend_error' });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('joins the labels of all that was rougher', async () => {
    const gateway = open(
      {
        a: { route: 'r1', input: 'a', onFailure: 'skip' },
        b: { route: 'r2', input: 'b' },
        c: { route: 'r3', after: ['a', 'b'], input: '{{ a }}{{ b }}', stream: true },
      },
      [status(500), status(500), chatStream(['hi'])],
      {
        routes: {
          r1: { retry: { attempts: 1 } },
          r2: { ladder: [{ answer: 'rung' }], retry: { attempts: 1 } },
        },
      },
    );
    const caller = gateway.chat({ model: 'search', stream: true });
    await gateway.time.advance(60);
    const label = caller.answerHeader('x-armature-degraded')!;
    expect(label.split(', ').sort()).toEqual(['a:skip', 'b:answer']);
    const metric = await gateway.registry.getMetricsAsJSON();
    const degraded = metric.find(({ name }) => name === 'armature_degraded_total') as unknown as {
      values: { labels: object; value: number }[];
    };
    expect(degraded.values).toContainEqual({ labels: { route: 'search', rung: 'a:skip' }, value: 1 });
    expect(degraded.values).toContainEqual({ labels: { route: 'search', rung: 'b:answer' }, value: 1 });
  });
});
