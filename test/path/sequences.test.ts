import { describe, expect, it } from 'vitest';
import { type Engine, failing, NOTHING, status, VirtualGateway } from './virtual-gateway.ts';

/** Tensors that belong to a sequence, or that are pinned to a version: what may not move does not move. */

const [A, B, C] = ['http://10.0.0.1:8000', 'http://10.0.0.2:8000', 'http://10.0.0.3:8000'];

function tensors(afterMs = 1): Engine {
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

function config(endpoints: string[] = [A, B], route: object = {}): object {
  const backend = (at: string[]) => ({ engine: 'triton', model: 'm', endpoints: at });
  return {
    backends: { b1: backend(endpoints), b2: backend([C]) },
    routes: {
      counter: { targets: [{ backend: 'b1' }], retry: { attempts: 3, budget: 1 }, ...route },
      other: { targets: [{ backend: 'b2' }] },
    },
  };
}

function world(of: object = config(), seed = 1) {
  const gateway = new VirtualGateway(of, seed);
  for (const origin of [A, B, C]) gateway.engines.set(origin, tensors());
  let count = 0;
  /** Sends one request and tells its status and which engines it went to. */
  const infer = async (path: string, parameters?: object) => {
    const before = gateway.records.length;
    const caller = gateway.send('POST', `/v2/models/${path}/infer`, { inputs: [], parameters });
    await gateway.time.advance(20);
    const record = gateway.records[before];
    const sent = record?.steps.filter((step) => step.figures['attempt'] !== undefined) ?? [];
    const tried = sent.map((step) => step.figures['endpoint']).filter((one) => one !== undefined);
    count++;
    return { caller, status: caller.status, endpoint: record?.endpoint, tried: [...new Set(tried)], count };
  };
  return { gateway, infer };
}

const begin = (id: unknown) => ({ sequence_id: id, sequence_start: true });
const go = (id: unknown) => ({ sequence_id: id });
const end = (id: unknown) => ({ sequence_id: id, sequence_end: true });

describe('a sequence', () => {
  it('stays on the endpoint it began on, and sequences are spread', async () => {
    const { gateway, infer } = world();
    const seen = new Set<string>();
    for (let id = 1; id <= 20; id++) {
      const { endpoint } = await infer('counter', begin(id));
      seen.add(endpoint!);
      for (let i = 0; i < 4; i++) expect((await infer('counter', go(id))).endpoint).toBe(endpoint);
      expect((await infer('counter', end(id))).endpoint).toBe(endpoint);
    }
    expect([...seen].sort()).toEqual([A, B]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('known by a text or a number stays too; 0 and "" are no sequence', async () => {
    const { infer } = world();
    const { endpoint } = await infer('counter', begin('conversation-7'));
    for (let i = 0; i < 10; i++)
      expect((await infer('counter', go('conversation-7'))).endpoint).toBe(endpoint);
    for (const none of [0, '']) {
      const seen = new Set<unknown>();
      for (let i = 0; i < 40; i++) seen.add((await infer('counter', go(none))).endpoint);
      expect(seen.size).toBe(2);
    }
  });

  it.each([
    ['fails', status(500, { error: 'boom' }), 502],
    ['is busy', status(503, { error: 'busy' }), 503],
    ['breaks off', failing({ kind: 'reset', unsent: false }), 502],
    ['had closed the connection', failing({ kind: 'reset', unsent: false, stale: true }), 502],
    ['refuses connections', failing(), 502],
  ] satisfies [string, Engine, number][])(
    'is not tried again when its endpoint %s',
    async (_, engine, expected) => {
      const { gateway, infer } = world();
      const { endpoint } = await infer('counter', begin(7));
      const other = endpoint === A ? B : A;
      gateway.engines.set(endpoint!, engine);
      const sent = gateway.served.length;
      const failed = await infer('counter', go(7));
      expect([failed.status, typeof JSON.parse(failed.caller.text).error]).toEqual([expected, 'string']);
      expect(failed.tried).toEqual([endpoint]);
      expect(gateway.served.length).toBe(sent + 1);
      // Without a sequence the same request is answered elsewhere.
      expect((await infer('counter')).endpoint === other || gateway.served.length > sent).toBe(true);
      gateway.engines.set(endpoint!, tensors());
      await gateway.time.advance(2_000);
      expect((await infer('counter', go(7))).endpoint).toBe(endpoint);
      expect(gateway.taken).toEqual(NOTHING);
    },
  );

  it('waits for its endpoint rather than go to an idle one', async () => {
    const backend = { engine: 'triton', model: 'm', endpoints: [A, B], limits: { concurrency: 1 } };
    const { gateway, infer } = world({
      backends: { b1: backend },
      routes: { counter: { targets: [{ backend: 'b1' }] } },
    });
    const { endpoint } = await infer('counter', begin(7));
    gateway.engines.set(endpoint!, tensors(100));
    const callers = [0, 1, 2].map(() =>
      gateway.send('POST', '/v2/models/counter/infer', { inputs: [], parameters: go(7) }),
    );
    await gateway.time.advance(1_000);
    expect(callers.map((caller) => caller.status)).toEqual([200, 200, 200]);
    expect(gateway.records.map((record) => record.endpoint)).toEqual([
      endpoint,
      endpoint,
      endpoint,
      endpoint,
    ]);
  });

  it('is refused, not moved, when its endpoint leaves the configuration; a new one begins elsewhere', async () => {
    const { gateway, infer } = world();
    const { endpoint } = await infer('counter', begin(7));
    const other = endpoint === A ? B : A;
    gateway.load(config([other]));
    const refused = await infer('counter', go(7));
    expect([refused.status, refused.tried]).toEqual([502, []]);
    expect((await infer('counter', begin(7))).endpoint).toBe(other);
    expect((await infer('counter', go(7))).endpoint).toBe(other);
  });

  it('of one route has nothing to do with one of the same number on another', async () => {
    const { gateway, infer } = world();
    // It begins where its number alone would not bring it, since its first choice is fenced then.
    const { endpoint: first } = await infer('counter', begin(7));
    gateway.engines.set(first!, status(503, { error: 'busy' }));
    await infer('counter', begin(7));
    gateway.engines.set(first!, tensors());
    const { endpoint } = await infer('counter', begin(7));
    expect(endpoint).not.toBe(first);
    await gateway.time.advance(2_000);
    expect((await infer('counter', go(7))).endpoint).toBe(endpoint);

    expect((await infer('other', begin(7))).endpoint).toBe(C);
    const [mine, others] = [await infer('counter', go(7)), await infer('other', go(7))];
    expect([mine.status, mine.endpoint]).toEqual([200, endpoint]);
    expect([others.status, others.endpoint]).toEqual([200, C]);
    expect((await infer('other', end(7))).endpoint).toBe(C);
    expect((await infer('counter', go(7))).endpoint).toBe(endpoint);
  });

  it('does not go down the ladder: its state is nowhere else', async () => {
    const { gateway, infer } = world(config([A], { ladder: [{ backend: 'b2' }] }));
    await infer('counter', begin(7));
    gateway.engines.set(A, failing());
    expect((await infer('counter', go(7))).status).toBe(502);
    expect((await infer('counter')).endpoint).toBe(C);
  });
});

describe('a pinned version', () => {
  it.each([
    ['fails', status(500, { error: 'boom' }), 502],
    ['is busy', status(503, { error: 'busy' }), 503],
    ['breaks off', failing({ kind: 'reset', unsent: false }), 502],
  ] satisfies [string, Engine, number][])(
    'is not asked for elsewhere when its engine %s',
    async (_, engine, expected) => {
      const { gateway, infer } = world(
        config([A, B], { ladder: [{ backend: 'b2' }], retry: { attempts: 2, budget: 1 } }),
      );
      for (const origin of [A, B]) gateway.engines.set(origin, engine);
      const pinned = await infer('counter/versions/3');
      expect([pinned.status, pinned.tried.length]).toEqual([expected, 1]);
      expect(gateway.served).toHaveLength(1);
      expect(gateway.served[0]!.request.path).toBe('/v2/models/m/versions/3/infer');
      await gateway.time.advance(2_000);
      expect((await infer('counter')).endpoint).toBe(C);
    },
  );
});
