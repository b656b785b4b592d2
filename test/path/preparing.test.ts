import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { A, bodyOf } from './batching-world.ts';
import { B, embeddingsIn, gatewayOf, idsOf } from './preparing-world.ts';
import { failing, NOTHING, never, status, type VirtualCaller } from './virtual-gateway.ts';

/** Texts that become token ids in the gateway, and go upstream in batches of like length. */

describe('texts that become token ids', () => {
  it('go upstream as ids, and each caller gets its own rows and its own tokens', async () => {
    const { gateway, embed, sent, pool } = gatewayOf();
    const callers = [embed('one two'), embed(['three', 'four five']), embed([5, 6, 7])];
    await gateway.time.advance(50);
    expect(sent()).toHaveLength(1);
    expect(callers.map(embeddingsIn)).toEqual([
      [idsOf('one two')],
      [idsOf('three'), idsOf('four five')],
      [[5, 6, 7]],
    ]);
    expect(callers.map(({ text }) => JSON.parse(text).usage.prompt_tokens)).toEqual([4, 7, 3]);
    expect(gateway.records.map(({ tokensIn }) => tokensIn).sort()).toEqual([3, 4, 7]);
    expect(callers.map((caller) => caller.answerHeader('x-armature-backend'))).toEqual(['b1', 'b1', 'b1']);
    expect(gateway.taken).toEqual(NOTHING);
    expect([pool.waiting, pool.running]).toEqual([0, 0]);
  });

  it('go in batches of like length, and come back in the order of their texts', async () => {
    const { gateway, embed, sent } = gatewayOf();
    const long = (n: number, word: string) => Array.from({ length: n }, () => word).join(' ');
    const texts = [long(50, 'a'), 'b', long(52, 'c'), 'd', long(3, 'e')];
    const caller = embed(texts);
    await gateway.time.advance(50);
    expect(embeddingsIn(caller)).toEqual(texts.map(idsOf));
    expect(sent().map((rows) => rows.map(({ length }) => length))).toEqual([
      [52, 54],
      [3, 3, 5],
    ]);
  });

  it('leave no later than half of the time that one of them has', async () => {
    const { gateway, embed } = gatewayOf({ delay: '40ms' });
    const one = embed('one');
    await gateway.time.advance(1);
    const hasty = embed('two', {}, { 'x-armature-deadline-ms': '30' });
    await gateway.time.advance(14);
    expect(gateway.served).toHaveLength(0);
    await gateway.time.advance(2);
    expect(gateway.served).toHaveLength(1);
    await gateway.time.advance(20);
    expect([one.status, hasty.status]).toEqual([200, 200]);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('are refused with 400 when they are too long, or cut where the route says so', async () => {
    const text = Array.from({ length: 70 }, () => 'a').join(' ');
    const { gateway, embed } = gatewayOf();
    const refused = embed(['fine', text]);
    const unread = embed('a'.repeat(64 * 64 + 1));
    await gateway.time.advance(50);
    expect([refused.status, unread.status]).toEqual([400, 400]);
    expect(JSON.parse(refused.text).error).toMatchObject({ code: 'invalid_request', param: 'input' });
    expect(JSON.parse(refused.text).error.message).toContain('72 tokens');
    expect(gateway.served).toHaveLength(0);
    const cutting = gatewayOf({ overlong: 'cut' });
    const cut = cutting.embed(text);
    await cutting.gateway.time.advance(50);
    const [row] = embeddingsIn(cut) as [number[]];
    expect([row.length, row[0], row.at(-1)]).toEqual([64, 1, 2]);
    expect(JSON.parse(cut.text).usage.prompt_tokens).toBe(64);
    expect([gateway.taken, cutting.gateway.taken]).toEqual([NOTHING, NOTHING]);
  });

  it.each([
    ['no input', {}],
    ['an empty text', { input: '' }],
    ['no text', { input: [] }],
    ['an empty one among others', { input: ['a', ''] }],
    ['numbers that are no tokens', { input: [[1.5]] }],
    ['negative tokens', { input: [-1] }],
    ['something else', { input: { a: 1 } }],
    ['too many', { input: Array.from({ length: 2049 }, () => 'a') }],
  ])('are refused when the input is %s', async (_, rest) => {
    const { gateway } = gatewayOf();
    const caller = gateway.send('POST', '/v1/embeddings', { model: 'embed', ...rest });
    await gateway.time.advance(20);
    expect(caller.status).toBe(400);
    expect(JSON.parse(caller.text).error.param).toBe('input');
    expect(gateway.served).toHaveLength(0);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('only the caller that is meant gets the error of the engine', async () => {
    const { gateway, embed } = gatewayOf();
    const callers = [embed('one'), embed(['bad', 'two']), embed('three')];
    await gateway.time.advance(100);
    expect(callers.map((caller) => caller.status)).toEqual([200, 400, 200]);
    expect(JSON.parse(callers[1]!.text).error.message).toBe('bad token');
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('are given up when the caller leaves, wherever they are', async () => {
    for (const leaveAt of [0, 2, 8, 15]) {
      const { gateway, embed, pool } = gatewayOf({}, { msPerText: 1 });
      const leaves = embed(['one', 'two']);
      const stays = embed('three');
      await gateway.time.advance(leaveAt);
      leaves.leave();
      await gateway.time.advance(100);
      expect(embeddingsIn(stays)).toEqual([idsOf('three')]);
      expect(gateway.taken).toEqual(NOTHING);
      expect([pool.waiting, pool.running]).toEqual([0, 0]);
    }
    const { gateway, embed } = gatewayOf();
    gateway.engines.set(A, never);
    const only = embed('one');
    await gateway.time.advance(20);
    only.leave();
    expect(gateway.served[0]!.aborted).toBe(true);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('are refused as overloaded when too many wait, or walk the ladder as the texts that they are', async () => {
    const { gateway, embed } = gatewayOf({}, { pool: { queueMax: 40 }, msPerText: 10 });
    const first = embed(Array.from({ length: 96 }, () => 'a'));
    const second = embed(Array.from({ length: 20 }, () => 'b'));
    await gateway.time.advance(1);
    expect(second.status).toBe(503);
    expect(JSON.parse(second.text).error.code).toBe('overloaded');
    expect(second.answerHeader('retry-after')).toBeDefined();
    expect(gateway.records[0]!.steps.map(({ code }) => code)).toContain('not-prepared-full');
    await gateway.time.advance(2000);
    expect(first.status).toBe(200);
    expect(gateway.taken).toEqual(NOTHING);

    const laddered = gatewayOf({}, { route: { ladder: [{ backend: 'plain' }] } });
    laddered.gateway.engines.set(A, failing());
    const asked: unknown[] = [];
    laddered.gateway.engines.set(B, (served) => {
      asked.push(bodyOf(served.request)['input']);
      const data = [{ object: 'embedding', index: 0, embedding: [1] }];
      status(200, { object: 'list', data })(served);
    });
    const caller = laddered.embed('one two');
    await laddered.gateway.time.advance(500);
    expect([caller.status, caller.answerHeader('x-armature-degraded')]).toEqual([200, 'backend']);
    expect(asked).toEqual(['one two']);
    expect(laddered.gateway.taken).toEqual(NOTHING);
  });

  it('that meet their deadline get 504, and an engine that fails 502', async () => {
    const { gateway, embed } = gatewayOf({}, { route: { deadline: '100ms' } });
    gateway.engines.set(A, never);
    const late = embed('one');
    await gateway.time.advance(200);
    expect(late.status).toBe(504);
    gateway.engines.set(A, status(500));
    const failed = embed('one');
    await gateway.time.advance(200);
    expect(failed.status).toBe(502);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('end with a retryable error when a drain ends', async () => {
    const { gateway, embed, pool } = gatewayOf({}, { msPerText: 5 });
    gateway.engines.set(A, never);
    const sent = embed('one');
    await gateway.time.advance(20);
    const waits = embed('two');
    gateway.path.draining = true;
    gateway.path.endAll();
    expect([sent.status, waits.status]).toEqual([503, 503]);
    await gateway.time.advance(50);
    expect(gateway.taken).toEqual(NOTHING);
    expect([pool.waiting, pool.running]).toEqual([0, 0]);
  });

  it('make prompts of completions, one at a time', async () => {
    const { gateway } = gatewayOf();
    const asked: unknown[] = [];
    gateway.engines.set(A, (served) => {
      asked.push(bodyOf(served.request));
      status(200, { choices: [{ index: 0, text: 'x', finish_reason: 'stop' }] })(served);
    });
    const caller = gateway.send('POST', '/v1/completions', { model: 'embed', prompt: 'one two', n: 1 });
    const list = gateway.send('POST', '/v1/completions', { prompt: ['a', 'b c'], model: 'embed' });
    const given = gateway.send('POST', '/v1/completions', { model: 'embed', prompt: [7, 8] });
    await gateway.time.advance(50);
    expect([caller.status, list.status, given.status]).toEqual([200, 200, 200]);
    expect(asked).toContainEqual({ model: 'm', prompt: idsOf('one two'), n: 1 });
    expect(asked).toContainEqual({ model: 'm', prompt: [idsOf('a'), idsOf('b c')] });
    expect(asked).toContainEqual({ model: 'm', prompt: [7, 8] });
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('none is lost or mixed up, whoever asks beside and whatever is refused', async () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c', 'dd', 'bad'), { minLength: 1, maxLength: 60 });
    const asks = fc.array(
      fc.record({
        texts: fc.array(
          text.map((list) => list.join(' ')),
          { minLength: 1, maxLength: 12 },
        ),
        afterMs: fc.nat(8),
        leaves: fc.boolean(),
      }),
      { minLength: 1, maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(asks, async (all) => {
        const { gateway, embed, sent, pool } = gatewayOf({}, { msPerText: 0.1 });
        const callers: VirtualCaller[] = [];
        for (const { texts, afterMs } of all) {
          await gateway.time.advance(afterMs);
          callers.push(embed(texts));
        }
        for (const [at, { leaves }] of all.entries()) if (leaves && !callers[at]!.ended) callers[at]!.leave();
        await gateway.time.advance(2000);
        for (const [at, { texts, leaves }] of all.entries()) {
          const caller = callers[at]!;
          if (leaves && caller.status === undefined) continue;
          if (texts.some((each) => each.split(' ').includes('bad'))) expect(caller.status).toBe(400);
          else {
            expect(embeddingsIn(caller)).toEqual(texts.map(idsOf));
            const tokens = texts.reduce((sum, each) => sum + idsOf(each).length, 0);
            expect(JSON.parse(caller.text).usage).toEqual({ prompt_tokens: tokens, total_tokens: tokens });
          }
        }
        for (const rows of sent()) {
          expect(Math.max(...rows.map(({ length }) => length)) * rows.length).toBeLessThanOrEqual(128);
        }
        expect(gateway.taken).toEqual(NOTHING);
        expect([pool.waiting, pool.running]).toEqual([0, 0]);
      }),
      { numRuns: 100 },
    );
  });
});

describe('a long list of texts', () => {
  it('holds up nobody who comes later', async () => {
    const { gateway, embed } = gatewayOf({ inflightMax: 1, batchTokensMax: 64 });
    const long = embed(Array.from({ length: 100 }, () => Array.from({ length: 30 }, () => 'a').join(' ')));
    await gateway.time.advance(25);
    const late = embed('b');
    await gateway.time.advance(60);
    expect([late.status, long.status]).toEqual([200, undefined]);
    await gateway.time.advance(2000);
    expect(long.status).toBe(200);
    expect(gateway.taken).toEqual(NOTHING);
  });
});
