import { describe, expect, it } from 'vitest';
import { A, AUTH, chat, left, refusal, usage, limitedWorld as world } from './limited-world.ts';
import { chatAnswer, chatStream, failing, NOTHING, never, status } from './virtual-gateway.ts';

describe('tokens', () => {
  it('are set aside before the call: those that come together cannot take more than there is', async () => {
    const { gateway } = world({ tokens: '60000/min' });
    const callers = Array.from({ length: 20 }, () => chat(gateway, { max_tokens: 10_000 }));
    expect(callers.filter(({ status: of }) => of === 429)).toHaveLength(15);
    await gateway.time.advance(10);
    const [first, refused] = [callers[0]!, callers[19]!];
    // What was not used is back before the answer tells what is left.
    expect(left(first, 'tokens')).toBeGreaterThan(60_000 - 5 * 10_100 + 9_900);
    expect(refusal(refused)).toEqual([429, 'quota_exceeded', '1']);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it('are settled on what was really used, and the answer says what is left', async () => {
    const { gateway } = world({ tokens: '60000/d', requests: '10/d' });
    const caller = chat(gateway, { max_tokens: 40_000 });
    await gateway.time.advance(10);
    expect(left(caller, 'tokens')).toBe(59_995);
    const names = ['limit', 'remaining', 'reset'].flatMap((what) =>
      ['requests', 'tokens'].map((kind) => caller.answerHeader(`x-ratelimit-${what}-${kind}`)),
    );
    expect(names).toEqual(['10', '60000', '9', '59995', '2h24m0s', '7.19s']);
  });

  it.each([
    ['without a maximum', {}, 200],
    ['of several answers', { max_tokens: 1000, n: 50 }, 200],
    ['of more answers than there can be', { max_tokens: 1000, n: 61 }, 429],
    ['of the whole limit', { max_completion_tokens: 60_000 }, 200],
    ['of more than the limit', { max_tokens: 60_001 }, 429],
    ['of absurdly many', { max_tokens: 1e12 }, 429],
  ])('%s', async (_name, body, expected) => {
    const { gateway } = world({ tokens: '60000/d' });
    const caller = chat(gateway, body);
    await gateway.time.advance(10);
    expect(caller.status).toBe(expected);
    if (expected === 429) {
      expect(caller.answerHeader('x-should-retry')).toBe('false');
      expect(caller.text).toContain('never');
      expect(left(caller, 'tokens')).toBe(60_000);
    } else expect(left(caller, 'tokens')).toBe(59_995);
  });

  it('without a maximum take a bounded guess, however small the limit', async () => {
    const { gateway } = world({ tokens: '100/min' });
    const callers = [chat(gateway), chat(gateway)];
    expect(callers.map(({ status: of }) => of)).toEqual([undefined, undefined]);
    await gateway.time.advance(10);
    expect(left(callers[1]!, 'tokens')).toBe(90);
  });

  it('of a prompt that is only reckoned wait at most for a full bucket, and leave a debt where it was true', async () => {
    const { gateway } = world({ tokens: '1000/min' });
    const messages = [{ role: 'user', content: 'x'.repeat(8000) }];
    gateway.engines.set(A, usage(2000, 100));
    const caller = chat(gateway, { messages });
    await gateway.time.advance(10);
    expect([caller.status, left(caller, 'tokens')]).toEqual([200, 0]);
    // 1,100 in debt, and a small one asks for about 116.
    await gateway.time.advance(66_000);
    expect(chat(gateway).status).toBe(429);
    await gateway.time.advance(10_000);
    expect(chat(gateway).status).toBe(200);
  });

  it('of streams without usage are counted by their deltas', async () => {
    const { gateway } = world({ tokens: '60000/d' });
    gateway.engines.set(A, chatStream(['a', 'b', 'c'], 5));
    const stream = chat(gateway, { stream: true, max_tokens: 40_000 });
    await gateway.time.advance(10);
    // The head is gone before anybody knows how many there will be.
    expect(left(stream, 'tokens')).toBeLessThan(20_000);
    await gateway.time.advance(100);
    expect(stream.text).toContain('[DONE]');
    const used = 60_000 - gateway.world.quotas.lineOf('web', 'chat')!.rates[0]!.bucket.level(0);
    // Three words, and the event that ends them.
    expect(Math.round(used)).toBe(Math.ceil(stream.body.length / 4) + 4);
    gateway.engines.set(A, chatAnswer('x', 0));
    const next = chat(gateway, { max_tokens: 40_000 });
    await gateway.time.advance(1);
    expect(next.status).toBe(200);
  });

  it.each([
    ['a stream', true, (words: number) => words > 0],
    ['a whole answer', false, (words: number) => words === 0],
  ])('of %s whose caller leaves are charged as far as they came', async (_name, stream, expectWords) => {
    const { gateway } = world({ tokens: '60000/d' });
    gateway.engines.set(A, chatStream(Array(50).fill('a'), 10));
    const caller = chat(gateway, { stream, max_tokens: 40_000 });
    await gateway.time.advance(205);
    caller.leave();
    const used = 60_000 - gateway.world.quotas.lineOf('web', 'chat')!.rates[0]!.bucket.level(205);
    const words = Math.round(used - Math.ceil(caller.body.length / 4));
    expect(expectWords(words)).toBe(true);
    expect(words).toBeLessThanOrEqual(20);
    expect(gateway.taken).toEqual(NOTHING);
  });

  it.each([
    ['the engine fails', status(500), 502],
    ['the engine says that the request is wrong', status(400), 400],
    ['the connection breaks', failing({ kind: 'reset', unsent: false }), 502],
    ['nothing comes in time', never, 504],
  ])('come back whole where %s', async (_name, engine, expected) => {
    const { gateway } = world({ tokens: '60000/d' });
    gateway.engines.set(A, engine);
    const caller = chat(gateway, { max_tokens: 40_000 });
    await gateway.time.advance(4000);
    expect([caller.status, left(caller, 'tokens')]).toEqual([expected, 60_000]);
  });

  it('of an answer that no engine gave are none', async () => {
    const { gateway } = world({ tokens: '60000/d' }, { route: { ladder: [{ answer: 'Later.' }] } });
    gateway.engines.set(A, status(500));
    const caller = chat(gateway, { max_tokens: 40_000 });
    await gateway.time.advance(10);
    expect([caller.status, left(caller, 'tokens')]).toEqual([200, 60_000]);
  });

  it('used beyond what was set aside leave a debt that the next one waits for', async () => {
    const { gateway } = world({ tokens: '60000/min' });
    gateway.engines.set(A, usage(10, 69_990));
    const caller = chat(gateway, { max_tokens: 100 });
    await gateway.time.advance(10);
    expect([caller.status, left(caller, 'tokens')]).toEqual([200, 0]);
    expect(refusal(chat(gateway, { max_tokens: 1 }))).toEqual([429, 'quota_exceeded', '11']);
  });

  it('are those of the prompt for embeddings, and none for tensors', async () => {
    const { gateway } = world({ tokens: '600/min' });
    gateway.engines.set(A, (served) => {
      const embeddings = served.request.path.endsWith('embeddings');
      served.sink.onHead(200, { 'content-type': 'application/json' });
      served.sink.onData(
        Buffer.from(embeddings ? '{"data":[],"usage":{"prompt_tokens":7}}' : '{"outputs":[]}'),
      );
      served.sink.onEnd();
    });
    const input = { model: 'chat', input: 'x'.repeat(4000) };
    const embedded = gateway.send('POST', '/v1/embeddings', input, AUTH);
    const tensors = { inputs: [{ name: 'x', shape: [1], datatype: 'FP32', data: [1] }] };
    const infer = gateway.send('POST', '/v2/models/tensors/infer', tensors, AUTH);
    await gateway.time.advance(1);
    expect([embedded.status, left(embedded, 'tokens')]).toEqual([200, 593]);
    expect([infer.status, left(infer, 'tokens')]).toEqual([200, 593]);
  });
});
