import { describe, expect, it } from 'vitest';
import { type Engine, NOTHING, VirtualGateway } from './virtual-gateway.ts';

/** Who waits for a place, and who gets it. */

const [A, B] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000'];

function tensors(afterMs: number): Engine {
  return (served) => {
    const { sink, time } = served;
    time.set(afterMs, () => {
      if (served.aborted) return;
      sink.onHead(200, { 'content-type': 'application/json' });
      sink.onData(Buffer.from('{"model_name":"m","outputs":[]}'));
      sink.onEnd();
    });
  };
}

function world(endpoints: string[]) {
  const gateway = new VirtualGateway({
    backends: { b1: { engine: 'triton', model: 'm', endpoints, limits: { concurrency: 1 } } },
    routes: { counter: { targets: [{ backend: 'b1' }] } },
  });
  const infer = (parameters?: object, headers?: Record<string, string>) =>
    gateway.send('POST', '/v2/models/counter/infer', { inputs: [], parameters }, headers);
  return { gateway, infer };
}

describe('a place that comes free', () => {
  it('goes to the first who came, of the same priority', async () => {
    const { gateway, infer } = world([A]);
    gateway.engines.set(A, tensors(10));
    const callers = Array.from({ length: 8 }, () => infer());
    for (let served = 1; served <= callers.length; served++) {
      await gateway.time.advance(10);
      expect(callers.map((caller) => caller.ended)).toEqual(callers.map((_, at) => at < served));
    }
  });

  it('goes to the highest priority that waits', async () => {
    const { gateway, infer } = world([A]);
    gateway.engines.set(A, tensors(10));
    infer();
    const named = ['batch', 'standard', 'critical', 'interactive', 'critical'].map((priority) => ({
      priority,
      caller: infer(undefined, { 'x-armature-priority': priority }),
    }));
    const order: string[] = [];
    for (let i = 0; i < 6; i++) {
      await gateway.time.advance(10);
      for (const { priority, caller } of named.splice(0)) {
        if (caller.ended) order.push(priority);
        else named.push({ priority, caller });
      }
    }
    expect(order).toEqual(['critical', 'critical', 'interactive', 'standard', 'batch']);
  });

  it('is not left idle for those ahead who can only use another one', async () => {
    const { gateway, infer } = world([A, B]);
    for (const origin of [A, B]) gateway.engines.set(origin, tensors(1));
    infer({ sequence_id: 7, sequence_start: true });
    await gateway.time.advance(10);
    const own = gateway.records[0]!.endpoint!;
    const other = own === A ? B : A;
    gateway.engines.set(own, tensors(10_000));
    gateway.engines.set(other, tensors(100));
    const running = infer({ sequence_id: 7 });
    const brief = infer();
    await gateway.time.advance(1);
    for (let i = 0; i < 3; i++) infer({ sequence_id: 7 });
    const plain = infer();
    await gateway.time.advance(250);
    expect([running.ended, brief.ended, plain.ended]).toEqual([false, true, true]);
    await gateway.time.advance(60_000);
    expect(gateway.records.filter(({ endpoint }) => endpoint === own)).toHaveLength(5);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('is not used up by one who has nothing to wait for any more', async () => {
    const { gateway, infer } = world([A, B]);
    for (const origin of [A, B]) gateway.engines.set(origin, tensors(1));
    infer({ sequence_id: 7, sequence_start: true });
    await gateway.time.advance(10);
    const own = gateway.records[0]!.endpoint!;
    const other = own === A ? B : A;
    gateway.engines.set(own, tensors(10_000));
    gateway.engines.set(other, tensors(100));
    infer({ sequence_id: 7 });
    infer();
    await gateway.time.advance(1);
    const lost = infer({ sequence_id: 7 });
    const plain = infer();
    gateway.world.read({ health: { [`b1|${own}`]: 'unwell' } });
    await gateway.time.advance(250);
    expect([lost.status, plain.status]).toEqual([502, 200]);
  });
});
