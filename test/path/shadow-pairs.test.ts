import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ReleaseArms } from '../../src/links/messages.ts';
import { A, type Compare, compared, config, J, S, settled, world } from './shadow-world.ts';
import {
  chatAnswer,
  chatStream,
  type Engine,
  failing,
  NOTHING,
  never,
  status,
  VirtualGateway,
} from './virtual-gateway.ts';

/** Answers to copies held against those of callers: which pairs there are, what is skipped and why, and that callers feel none of it. */

describe('a copy whose answer is compared', () => {
  it('is counted as alike or worse, and told once a minute with the request that was answered worst', async () => {
    const { gateway, engines } = world();
    gateway.chat();
    await gateway.time.advance(50);
    engines(chatAnswer('yes', 30), chatAnswer('no', 5));
    gateway.chat({}, { 'x-request-id': 'other' });
    await gateway.time.advance(50);
    engines(chatAnswer('yes', 5), chatAnswer('no', 30));
    gateway.chat();
    await settled(gateway);
    expect(await compared(gateway)).toEqual({ alike: 1, worse: 2 });
    const [told, ...more] = gateway.events('answers-compared');
    expect(more).toEqual([]);
    expect(told).toMatchObject({
      subject: 'route:chat',
      data: { backend: 'next', by: 'exact', pairs: 3, alike: 1, worse: 2, better: 0, difference: 0.6667 },
    });
    expect(told!.data['example']).toBe(gateway.records[1]!.id);
  });

  it('may be a stream, compared by its words and not by its pieces', async () => {
    const { gateway, engines } = world();
    engines(chatStream(['one ', 'two'], 5), chatStream(['one', ' two'], 9));
    const caller = gateway.chat({ stream: true });
    await settled(gateway);
    expect(caller.text).toContain('[DONE]');
    expect(await compared(gateway)).toEqual({ alike: 1 });
  });

  it('leaves a kept answer to who keeps it', async () => {
    const { gateway } = world({ by: 'exact' }, { cache: { ttl: '1m' } });
    gateway.chat({ temperature: 0 });
    await gateway.time.advance(50);
    gateway.chat({ temperature: 0 });
    await gateway.time.advance(50);
    expect(gateway.served).toHaveLength(2); // one request and its copy: the second was answered from what was kept
    expect(await compared(gateway)).toEqual({ alike: 1 });
  });

  it.each([
    ['dropped', { limits: { concurrency: 1, adaptive: 'off' } }, chatAnswer('a', 20), chatAnswer('a', 900)],
    ['failed', {}, chatAnswer('a'), failing()],
    ['failed', {}, chatAnswer('a'), never],
    ['caller-failed', {}, status(400), chatAnswer('a')],
    ['too-long', {}, chatAnswer('a'), chatAnswer('a'.repeat(1_100_000))],
    ['unreadable', {}, chatAnswer('a'), status(200, { choices: [] })],
  ] satisfies [string, object, Engine, Engine][])(
    'that cannot be is skipped as %s',
    async (cause, next, caller, copy) => {
      const { gateway, engines } = world({ by: 'exact' }, {}, next);
      engines(caller, copy);
      gateway.chat();
      gateway.chat();
      await settled(gateway);
      expect((await compared(gateway))[cause]).toBeGreaterThanOrEqual(1);
      expect(gateway.events('answers-compared')[0]!.data).toMatchObject({
        skipped: { [cause]: expect.any(Number) },
      });
    },
  );

  it('is skipped where the caller left, or got a rougher answer', async () => {
    const { gateway, engines } = world({ by: 'exact' }, { ladder: [{ answer: 'busy' }] });
    engines(chatAnswer('a', 500), chatAnswer('a'));
    const caller = gateway.chat();
    await gateway.time.advance(50);
    caller.leave();
    engines(status(500), chatAnswer('a'));
    gateway.chat();
    await settled(gateway);
    expect(await compared(gateway)).toEqual({ 'caller-left': 1, degraded: 1 });
  });

  it('holds no more than there is room for, and is skipped beyond it', async () => {
    const { gateway, engines } = world();
    gateway.buffers.bytesMax = 1_000;
    engines(chatAnswer('a', 100), chatAnswer('b'.repeat(600)));
    const callers = [gateway.chat(), gateway.chat(), gateway.chat()];
    await settled(gateway);
    expect(callers.map(({ status: code }) => code)).toEqual([200, 200, 200]);
    expect((await compared(gateway))['no-room']).toBeGreaterThan(0);
  });

  it('leaves nothing held where the caller was gone before the copy was sent', async () => {
    const { gateway, engines } = world();
    engines(chatAnswer('a'), chatStream(['one', 'two'], 5));
    for (let i = 0; i < 5; i++) {
      const caller = gateway.chat({ stream: true });
      caller.leave();
    }
    await settled(gateway);
    expect(await compared(gateway)).toEqual({ 'caller-left': 5 });
  });

  it('that hang leave callers three quarters of the room', async () => {
    const { gateway, engines } = world();
    gateway.buffers.bytesMax = 40_000;
    engines(chatAnswer('a'.repeat(2_000)), never);
    for (let i = 0; i < 100; i++) {
      gateway.chat();
      await gateway.time.advance(2);
      expect(gateway.buffers.held).toBeLessThanOrEqual(10_000 + 2_000);
    }
    expect(gateway.buffers.held).toBeGreaterThan(8_000);
    await settled(gateway);
    expect(gateway.records.every(({ outcome }) => outcome === 'ok')).toBe(true);
    const { 'no-room': none = 0, dropped = 0 } = await compared(gateway);
    expect(none + dropped).toBeGreaterThan(50);
  });

  it('ends with the worker, and what is known is told', async () => {
    const { gateway, engines } = world();
    gateway.chat();
    await gateway.time.advance(50);
    engines(chatAnswer('a'), never);
    gateway.chat();
    await gateway.time.advance(50);
    gateway.path.draining = true;
    gateway.path.endAll();
    expect(gateway.events('answers-compared')[0]!.data).toMatchObject({ pairs: 1, skipped: { dropped: 1 } });
    expect(gateway.taken).toEqual(NOTHING);
    expect(gateway.time.pending).toBe(0);
  });
});

describe('a comparison that asks a route', () => {
  const judged = { by: 'judge', route: 'judge', budget: '500ms' };

  it('asks at the lowest priority for nobody, and reads the verdict whichever answer stood first', async () => {
    const { gateway, engines } = world(judged);
    engines(chatAnswer('right'), chatAnswer('wrong'));
    gateway.engines.set(J, (served) => {
      const body = JSON.parse(String(served.request.body));
      const asked = body.messages[1].content as string;
      expect(asked).toContain('"Hi');
      chatAnswer(`Well.\nVERDICT: ${asked.indexOf('right') < asked.indexOf('wrong') ? 1 : 2}`)(served);
    });
    for (let i = 0; i < 20; i++) {
      gateway.chat();
      await gateway.time.advance(50);
    }
    await settled(gateway);
    expect(await compared(gateway)).toEqual({ worse: 20 });
    const orders = gateway.served.flatMap(({ request }) => {
      const { messages } = JSON.parse(String(request.body));
      return messages.length < 2
        ? []
        : [messages[1].content.indexOf('right') < messages[1].content.indexOf('wrong')];
    });
    expect([orders.length, new Set(orders)]).toEqual([20, new Set([true, false])]);
    expect(gateway.records).toHaveLength(20);
    const requests = await gateway.registry.getSingleMetric('armature_requests_total')!.get();
    expect(requests.values.map(({ labels }) => labels['route'])).toEqual(['chat']);
  });

  it('charges no tenant, and asks a route that the tenant may not call', async () => {
    const key = 'key-of-web';
    const hash = `sha256:${createHash('sha256').update(key).digest('hex')}`;
    const web = { routes: ['chat'], limits: { requests: '2/h', tokens: '100000/h' }, keys: [{ hash }] };
    const gateway = new VirtualGateway({ ...config(judged), tenants: { web } });
    gateway.engines.set(A, chatAnswer('one'));
    gateway.engines.set(S, chatAnswer('two'));
    gateway.engines.set(J, chatAnswer('VERDICT: TIE'));
    const callers = [1, 2].map(() => gateway.chat({}, { authorization: `Bearer ${key}` }));
    await settled(gateway);
    expect(callers.map(({ status: code }) => code)).toEqual([200, 200]);
    expect(await compared(gateway)).toEqual({ alike: 2 });
    const refused = gateway.chat({}, { authorization: `Bearer ${key}` });
    expect(refused.status).toBe(429);
  });

  it.each([
    ['does not say', chatAnswer('Both are nice.')],
    ['fails', status(500)],
    ['says nothing in time', never],
  ] satisfies [string, Engine][])('skips the pair where the judge %s', async (_, judge) => {
    const { gateway, engines } = world(judged);
    engines(chatAnswer('a'), chatAnswer('b'));
    gateway.engines.set(J, judge);
    gateway.chat();
    await settled(gateway);
    expect(await compared(gateway)).toEqual({ 'judge-failed': 1 });
  });

  it('has the distance of two texts from an embeddings route', async () => {
    const { gateway, engines } = world({ by: 'embedding', route: 'judge', margin: 0.3 });
    engines(chatAnswer('a'), chatAnswer('b'));
    const vectors = [
      [1, 0],
      [0.6, 0.8],
    ];
    gateway.engines.set(J, status(200, { data: vectors.map((embedding, index) => ({ index, embedding })) }));
    gateway.chat();
    await settled(gateway);
    expect(gateway.events('answers-compared')[0]!.data).toMatchObject({ worse: 1, difference: 0.4 });
  });

  it('keeps waiting pairs within bounds', async () => {
    const { gateway, engines } = world({ ...judged, budget: '1s' });
    engines(chatAnswer('a'), chatAnswer('b'));
    gateway.engines.set(J, never);
    for (let i = 0; i < 100; i++) {
      gateway.chat();
      await gateway.time.advance(2);
    }
    await settled(gateway);
    const { busy = 0, 'judge-failed': failed = 0 } = await compared(gateway);
    expect(busy).toBe(100 - 64 - 4);
    expect(failed).toBe(64 + 4);
  });
});

describe('a route under release', () => {
  const arms: ReleaseArms = { id: 'rel_1', canary: 'next', share: 0, shadow: { percent: 100 } };

  function released(compare: Compare | undefined) {
    const gateway = new VirtualGateway({});
    const without = config(undefined) as { routes: { chat: object } };
    without.routes.chat = { ...without.routes.chat, shadow: [], ...(compare && { release: { compare } }) };
    gateway.load(without, {}, { chat: arms });
    gateway.engines.set(A, chatAnswer('one  and two'));
    gateway.engines.set(S, chatAnswer('one and two'));
    return gateway;
  }

  it('has its requests copied to what is released, and tells pairs and skips as evidence', async () => {
    const gateway = released(undefined);
    gateway.chat();
    await gateway.time.advance(50);
    gateway.engines.set(S, chatAnswer('three'));
    const caller = gateway.chat();
    gateway.chat({ tools: [{ type: 'web_search' }] });
    await gateway.time.advance(50);
    expect(caller.answerHeader('x-armature-backend')).toBe('b1');
    expect(gateway.served).toHaveLength(5);
    await settled(gateway);
    expect(gateway.evidence.flatMap(({ pairs }) => pairs)).toMatchObject([
      { request: gateway.records[0]!.id, difference: 0, by: 'exact' },
      { request: gateway.records[1]!.id, difference: 1, by: 'exact' },
    ]);
    expect(gateway.evidence.map(({ skipped }) => skipped)).toContainEqual({ effects: 1 });
    expect(gateway.events('answers-compared')).toEqual([]); // its evidence says it
  });

  it('compares as its settings say', async () => {
    const gateway = released({ by: 'exact', whitespace: 'exact' });
    gateway.chat();
    await settled(gateway);
    expect(gateway.evidence.flatMap(({ pairs }) => pairs)).toMatchObject([{ difference: 1 }]);
  });

  it('copies nothing of what the canary answers itself', async () => {
    const gateway = released(undefined);
    const whole = config(undefined, {
      shadow: [],
      targets: [{ backend: 'b1', weight: 0 }, { backend: 'next' }],
    });
    gateway.load(whole, {}, { chat: { ...arms, share: 1 } });
    for (let i = 0; i < 10; i++) gateway.chat();
    await settled(gateway);
    expect(gateway.served.length).toBe(10);
  });
});

describe('a slow shadow (traps 27, 28, 30)', () => {
  it.each([
    ['hangs', never],
    ['is a hundred times slower', chatAnswer('late', 500)],
  ] satisfies [string, Engine][])(
    'that %s moves no caller by a millisecond, and holds no place of theirs',
    async (_, shadow) => {
      const times = async (percent: number) => {
        const { gateway, engines } = world(
          { by: 'exact' },
          { shadow: [{ backend: 'next', percent, compare: { by: 'exact' } }] },
        );
        engines(chatAnswer('a', 5), shadow);
        for (let i = 0; i < 200; i++) {
          gateway.chat();
          await gateway.time.advance(3);
        }
        await settled(gateway);
        return gateway.records.map(({ durationMs }) => durationMs);
      };
      expect(await times(100)).toEqual(await times(0));
    },
  );
});
