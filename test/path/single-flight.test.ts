import { describe, expect, it } from 'vitest';
import { chatAnswer, chatStream, failing, NOTHING, status, VirtualGateway } from './virtual-gateway.ts';

/** The same request of several callers at one moment: one goes upstream, all get its answer. */

const A = 'http://10.0.0.1:8000';
const ZERO = { temperature: 0 };

function gatewayOf(route: object = {}, concurrency = 8) {
  const gateway = new VirtualGateway({
    backends: { b1: { engine: 'vllm', model: 'm', endpoints: [`${A}/v1`], limits: { concurrency } } },
    routes: { chat: { targets: [{ backend: 'b1' }], singleFlight: true, ...route } },
  });
  gateway.engines.set(A, chatAnswer('Hello', 50));
  return gateway;
}

const posts = (gateway: VirtualGateway) => gateway.served.length;

describe('single flight', () => {
  it('sends one of the same requests, and gives its answer to each as its own', async () => {
    const gateway = gatewayOf();
    const callers = Array.from({ length: 5 }, (_, i) => gateway.chat(ZERO, { 'x-request-id': `r-${i}` }));
    const other = gateway.chat({ ...ZERO, seed: 1 });
    await gateway.time.advance(100);
    expect(posts(gateway)).toBe(2);
    expect(new Set(callers.map(({ text }) => text)).size).toBe(1);
    expect(callers.map((caller) => caller.answerHeader('x-request-id'))).toEqual(
      callers.map((_, i) => `r-${i}`),
    );
    expect(new Set(callers.map((caller) => caller.answerHeader('x-armature-id'))).size).toBe(5);
    expect(callers.map((caller) => caller.answerHeader('x-armature-backend'))).toEqual(
      callers.map(() => 'b1'),
    );
    expect(other.status).toBe(200);
    expect(gateway.records).toHaveLength(6);
    expect(gateway.records.map(({ outcome }) => outcome)).toEqual(gateway.records.map(() => 'ok'));
    expect(gateway.records.map(({ tokensIn }) => tokensIn).sort()).toEqual([0, 0, 0, 0, 3, 3]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('shares nothing where repetition is not meant, or the caller wants an answer of its own', async () => {
    const gateway = gatewayOf();
    for (let i = 0; i < 2; i++) {
      gateway.chat();
      gateway.chat({ temperature: 0.5 });
      gateway.chat(ZERO, { 'cache-control': 'no-cache' });
    }
    expect(posts(gateway)).toBe(6);
    await gateway.time.advance(100);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('shares a stream from its first content on, and with those who come later from its beginning', async () => {
    const gateway = gatewayOf();
    gateway.engines.set(A, (served) => {
      const asked = JSON.parse(served.request.body!.toString()) as { stream?: boolean };
      (asked.stream ? chatStream(['a', 'b', 'c', 'd'], 10) : chatAnswer('abcd', 10))(served);
    });
    const stream = { ...ZERO, stream: true };
    const first = gateway.chat(stream);
    await gateway.time.advance(25);
    const text = first.text;
    expect(text).toContain('"a"');
    const second = gateway.chat(stream);
    expect(second.text).toBe(text);
    const whole = gateway.chat(ZERO);
    await gateway.time.advance(12);
    expect(second.text).toBe(first.text);
    expect(second.ended).toBe(false);
    await gateway.time.advance(200);
    expect(second.text).toBe(first.text);
    expect(first.text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect([posts(gateway), whole.ended]).toEqual([2, true]); // framed otherwise, it is not the same bytes
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('goes on while one of them stays, and ends with the last', async () => {
    const gateway = gatewayOf();
    const [first, second] = [gateway.chat(ZERO), gateway.chat(ZERO)];
    await gateway.time.advance(10);
    first.leave();
    expect(gateway.served[0]!.aborted).toBe(false);
    const third = gateway.chat(ZERO);
    await gateway.time.advance(50);
    expect([second.status, third.status, posts(gateway)]).toEqual([200, 200, 1]);
    const last = gateway.chat(ZERO);
    await gateway.time.advance(10);
    last.leave();
    expect(gateway.served[1]!.aborted).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.records.map(({ outcome }) => outcome)).toEqual(['aborted', 'ok', 'ok', 'aborted']);
  });

  it('leaves each its own deadline', async () => {
    const gateway = gatewayOf();
    const hasty = gateway.chat(ZERO, { 'x-armature-deadline-ms': '20' });
    const patient = gateway.chat(ZERO);
    await gateway.time.advance(25);
    expect([hasty.status, patient.ended]).toEqual([504, false]);
    await gateway.time.advance(50);
    expect([patient.status, posts(gateway)]).toEqual([200, 1]);
    const short = gateway.chat(ZERO, { 'x-armature-deadline-ms': '20' });
    await gateway.time.advance(10);
    const long = gateway.chat(ZERO, { 'x-armature-deadline-ms': '100' });
    await gateway.time.advance(100);
    expect([short.status, long.status]).toEqual([504, 200]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('waits with the highest priority of those who wait', async () => {
    const gateway = gatewayOf({}, 1);
    const order: string[] = [];
    gateway.chat();
    const low = gateway.chat({ ...ZERO }, { 'x-armature-priority': 'batch' });
    const middle = gateway.chat({ temperature: 1 }, { 'x-armature-priority': 'standard' });
    const high = gateway.chat({ ...ZERO }, { 'x-armature-priority': 'critical' });
    for (let i = 0; i < 4; i++) {
      await gateway.time.advance(50);
      if (low.ended && high.ended && !order.includes('shared')) order.push('shared');
      if (middle.ended && !order.includes('alone')) order.push('alone');
    }
    expect(order).toEqual(['shared', 'alone']);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it.each([
    ['fails', status(500), 502, 'failed'],
    ['is busy', status(503), 503, 'refused'],
    ['cannot be reached', failing(), 502, 'failed'],
    ['finds the request wrong', status(400), 400, 'invalid'],
  ])('asks an engine that %s no more often than for one caller', async (_, engine, code, outcome) => {
    const alone = gatewayOf();
    alone.engines.set(A, engine);
    alone.chat(ZERO);
    await alone.time.advance(5000);
    const gateway = gatewayOf();
    gateway.engines.set(A, engine);
    const callers = Array.from({ length: 20 }, () => gateway.chat(ZERO));
    await gateway.time.advance(5000);
    expect(callers.map(({ status: got }) => got)).toEqual(callers.map(() => code));
    expect(posts(gateway)).toBe(posts(alone));
    expect(gateway.records.map((record) => record.outcome)).toEqual(callers.map(() => outcome));
    expect(gateway.records.every(({ steps }) => steps.some(({ what }) => what === 'attempt'))).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('goes down the ladder once for all', async () => {
    const gateway = gatewayOf({ ladder: [{ answer: 'Busy.' }] });
    gateway.engines.set(A, failing());
    const callers = Array.from({ length: 3 }, () => gateway.chat(ZERO));
    await gateway.time.advance(1000);
    expect(callers.map((caller) => caller.answerHeader('x-armature-degraded'))).toEqual(
      callers.map(() => 'answer'),
    );
    expect(gateway.records.map(({ rung }) => rung)).toEqual(['answer', 'answer', 'answer']);
  });

  it('ends a stream that breaks off for all of them, told as an error', async () => {
    const gateway = gatewayOf();
    gateway.engines.set(A, (served) => {
      served.time.set(5, () => {
        served.sink.onHead(200, { 'content-type': 'text/event-stream' });
        served.sink.onData(Buffer.from('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'));
      });
      served.time.set(20, () =>
        served.sink.onError({ kind: 'reset', message: '', unsent: false, stale: false }),
      );
    });
    const callers = Array.from({ length: 3 }, () => gateway.chat({ ...ZERO, stream: true }));
    await gateway.time.advance(100);
    for (const { text, ended } of callers) {
      expect(ended).toBe(true);
      expect(text).toContain('"error"');
      expect(text).not.toContain('[DONE]');
    }
    expect(gateway.records.map(({ outcome }) => outcome)).toEqual(['failed', 'failed', 'failed']);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('lets no slow reader hold up the others, and gives it all of the answer', async () => {
    const gateway = gatewayOf();
    const words = Array.from({ length: 20 }, (_, i) => `w${i}`);
    gateway.engines.set(A, chatStream(words, 5));
    const stream = { ...ZERO, stream: true };
    const slow = gateway.chat(stream);
    const quick = gateway.chat(stream);
    slow.full = true;
    await gateway.time.advance(50);
    expect(quick.text.length).toBeGreaterThan(slow.text.length);
    slow.full = false;
    slow.onDrain?.();
    expect(slow.text).toBe(quick.text);
    slow.full = quick.full = true;
    await gateway.time.advance(10);
    expect(gateway.served[0]!.paused).toBe(true);
    slow.full = quick.full = false;
    quick.onDrain?.();
    expect(gateway.served[0]!.paused).toBe(false);
    await gateway.time.advance(200);
    expect(slow.text).toBe(quick.text);
    expect(slow.text.endsWith('[DONE]\n\n')).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('keeps its answer where the route has a cache', async () => {
    const gateway = gatewayOf({ cache: {} });
    gateway.engines.set(A, chatStream(['Hel', 'lo']));
    gateway.chat({ ...ZERO, stream: true });
    gateway.chat({ ...ZERO, stream: true });
    await gateway.time.advance(100);
    const later = gateway.chat(ZERO);
    expect(JSON.parse(later.text).choices[0].message.content).toBe('Hello');
    expect(posts(gateway)).toBe(1);
  });

  it('is refused whole when the gateway leaves', async () => {
    const gateway = gatewayOf();
    const callers = [gateway.chat(ZERO), gateway.chat(ZERO)];
    await gateway.time.advance(10);
    gateway.path.draining = true;
    gateway.path.endAll();
    expect(callers.map(({ status: got }) => got)).toEqual([503, 503]);
    expect(gateway.taken).toEqual(NOTHING);
  });
});
