import { describe, expect, it } from 'vitest';
import { type Engine, NOTHING, never, VirtualGateway } from './virtual-gateway.ts';

/** Time limits: of an attempt (`timeouts`), of a request (`deadline`), and which of them holds when. */

const [A, B] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000'];
const SSE_HEAD = { 'content-type': 'text/event-stream' };
const event = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const WORD = event({ content: 'word ' });
const ROLE = event({ role: 'assistant', content: '' });
const END = `${event({}, 'stop')}data: [DONE]\n\n`;

/** Sends a head at once and each piece at its moment, milliseconds after the request. */
function pieces(head: Record<string, string>, ...timed: [number, string][]): Engine {
  return (served) => {
    const { sink, time } = served;
    time.set(0, () => !served.aborted && sink.onHead(200, head));
    for (const [atMs, text] of timed) {
      time.set(atMs, () => {
        if (served.aborted) return;
        sink.onData(Buffer.from(text));
        if (text.endsWith('[DONE]\n\n') || text.endsWith('}]}')) sink.onEnd();
      });
    }
  };
}
const streaming = (...timed: [number, string][]) => pieces(SSE_HEAD, ...timed);

function world(more: { backend?: object; route?: object; endpoints?: string[] } = {}) {
  const endpoints = (more.endpoints ?? [A]).map((origin) => `${origin}/v1`);
  const timeouts = { connect: '100ms', firstByte: '300ms', idle: '200ms', total: '1s' };
  return new VirtualGateway({
    backends: { b1: { engine: 'vllm', model: 'm', endpoints, timeouts, ...more.backend } },
    routes: { chat: { targets: [{ backend: 'b1' }], deadline: '5s', ...more.route } },
  });
}

const codeOf = (text: string): string | undefined => {
  const data = text.includes('data: ') ? text.trimEnd().split('data: ').at(-1)! : text;
  return JSON.parse(data).error?.code;
};

describe('timeouts of a stream', () => {
  it('firstByte: an engine that says nothing is left for another one', async () => {
    const gateway = world({ endpoints: [A, B] });
    gateway.engines.set(A, streaming());
    gateway.engines.set(B, streaming());
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(299);
    const first = gateway.served[0]!;
    expect([gateway.served.length, first.aborted]).toEqual([1, false]);
    await gateway.time.advance(1);
    expect([gateway.served.length, first.aborted]).toEqual([2, true]);
    await gateway.time.advance(299);
    expect(caller.ended).toBe(false);
    await gateway.time.advance(1);
    expect([caller.status, codeOf(caller.text)]).toEqual([504, 'deadline_exceeded']);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('idle: before the first content another one is asked, after it the caller is told', async () => {
    const gateway = world({ endpoints: [A, B] });
    const silent = streaming([10, ROLE]);
    const halting = streaming([10, ROLE], [150, WORD], [340, WORD]);
    for (const origin of [A, B]) gateway.engines.set(origin, silent);
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(200);
    expect(gateway.served).toHaveLength(1);
    for (const origin of [A, B]) gateway.engines.set(origin, halting);
    await gateway.time.advance(10);
    expect(gateway.served).toHaveLength(2);
    await gateway.time.advance(539);
    expect([caller.status, caller.ended]).toEqual([200, false]);
    await gateway.time.advance(1);
    expect([caller.ended, codeOf(caller.text)]).toEqual([true, 'deadline_exceeded']);
    expect(caller.text).not.toContain('[DONE]');
    expect(gateway.served[1]!.aborted).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('idle: it is no fault of the engine when the caller does not read', async () => {
    const gateway = world();
    gateway.engines.set(A, streaming([10, WORD], [800, END]));
    const caller = gateway.chat({ stream: true });
    caller.full = true;
    await gateway.time.advance(15);
    expect(gateway.served[0]!.paused).toBe(true);
    await gateway.time.advance(600);
    expect(caller.ended).toBe(false);
    caller.full = false;
    caller.onDrain?.();
    expect(gateway.served[0]!.paused).toBe(false);
    await gateway.time.advance(190);
    expect([caller.ended, caller.text.endsWith('[DONE]\n\n')]).toEqual([true, true]);
  });

  it('total: the longest that one attempt may take', async () => {
    const gateway = world();
    gateway.engines.set(
      A,
      streaming(...Array.from({ length: 20 }, (_, i): [number, string] => [i * 100 + 10, WORD])),
    );
    const caller = gateway.chat({ stream: true });
    await gateway.time.advance(999);
    expect(caller.ended).toBe(false);
    await gateway.time.advance(1);
    expect([caller.ended, codeOf(caller.text)]).toEqual([true, 'deadline_exceeded']);
  });
});

describe('timeouts of a whole answer', () => {
  it('total alone: neither the first byte nor a pause is looked at', async () => {
    const gateway = world();
    const body = '{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}';
    gateway.engines.set(
      A,
      pieces({ 'content-type': 'application/json' }, [500, body.slice(0, 10)], [950, body.slice(10)]),
    );
    const caller = gateway.chat();
    await gateway.time.advance(950);
    expect([caller.status, caller.text]).toEqual([200, body]);
    gateway.engines.set(A, never);
    const late = gateway.chat();
    await gateway.time.advance(999);
    expect(late.ended).toBe(false);
    await gateway.time.advance(2);
    expect(gateway.served[1]!.aborted).toBe(true);
  });
});

describe('the deadline of a request', () => {
  const long = { timeouts: { firstByte: '60s', idle: '60s', total: '60s' } };

  it.each([
    [{}, 1000],
    [{ 'x-armature-deadline-ms': '400' }, 400],
    [{ 'x-armature-deadline-ms': '90000' }, 1000],
    [{ 'x-armature-deadline-ms': '99999999999999999999' }, 1000],
  ])('is the route’s, or the shorter one of its caller: %j', async (headers: Record<string, string>, ms) => {
    const gateway = world({ backend: long, route: { deadline: '1s' } });
    gateway.engines.set(A, never);
    for (const stream of [false, true]) {
      const caller = gateway.chat({ stream }, headers);
      await gateway.time.advance(ms - 1);
      expect(caller.ended).toBe(false);
      await gateway.time.advance(1);
      expect([caller.status, codeOf(caller.text)]).toEqual([504, 'deadline_exceeded']);
      expect(gateway.served.at(-1)!.aborted).toBe(true);
    }
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('covers a stream up to its first content: frames without any do not count, what follows is not cut', async () => {
    const gateway = world({ backend: long, route: { deadline: '1s' } });
    gateway.engines.set(A, streaming([10, ROLE], [990, WORD], [30_000, END]));
    const caller = gateway.chat({ stream: true });
    gateway.engines.set(A, streaming([10, ROLE], [1010, WORD], [1020, END]));
    const late = gateway.chat({ stream: true });
    await gateway.time.advance(1000);
    expect([late.status, codeOf(late.text)]).toEqual([504, 'deadline_exceeded']);
    expect(caller.status).toBe(200);
    await gateway.time.advance(29_000);
    expect(caller.text.endsWith('[DONE]\n\n')).toBe(true);
  });

  it('covers the wait for a place, and what is left of it is all that an attempt gets', async () => {
    const gateway = world({ backend: { ...long, limits: { concurrency: 1 } }, route: { deadline: '1s' } });
    gateway.engines.set(A, never);
    const first = gateway.chat({}, { 'x-armature-deadline-ms': '700' });
    const second = gateway.chat();
    const third = gateway.chat({}, { 'x-armature-deadline-ms': '500' });
    await gateway.time.advance(500);
    expect([third.status, codeOf(third.text)]).toEqual([504, 'deadline_exceeded']);
    expect(gateway.served).toHaveLength(1);
    await gateway.time.advance(200);
    expect([first.status, gateway.served.length]).toEqual([504, 2]);
    await gateway.time.advance(299);
    expect(second.ended).toBe(false);
    await gateway.time.advance(1);
    expect(second.status).toBe(504);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('leaves no time for a retry once it has passed, but for a rung that needs none', async () => {
    const gateway = world({
      backend: long,
      endpoints: [A, B],
      route: { deadline: '1s', retry: { attempts: 5, budget: 1 }, ladder: [{ answer: 'Later.' }] },
    });
    for (const origin of [A, B]) gateway.engines.set(origin, never);
    const caller = gateway.chat();
    await gateway.time.advance(1000);
    expect([caller.status, caller.answerHeader('x-armature-degraded')]).toEqual([200, 'answer']);
    expect(gateway.served).toHaveLength(1);
    expect(gateway.taken).toEqual(NOTHING);
  });
});
