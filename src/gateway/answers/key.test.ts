import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Call, readCall } from '../call.ts';
import type { Caller } from '../contracts.ts';
import { NOT_IN_KEY, requestKey } from './key.ts';

function keyOf(body: string | Buffer, headers: Record<string, string> = {}, target = '/v1/chat/completions') {
  const caller = {
    method: 'POST',
    target,
    body: Buffer.from(body),
    header: (name: string) => headers[name],
    headerCount: (name: string) => (headers[name] === undefined ? 0 : 1),
  } as unknown as Caller;
  const call = readCall(caller);
  if (!('route' in call)) throw new Error(JSON.stringify(call));
  return requestKey(headers['tenant'] ?? 't', call as Call, caller);
}

const hashOf = (...args: Parameters<typeof keyOf>) => keyOf(...args)!.hash;
const infer = (body: string, headers = {}, model = 'm') => hashOf(body, headers, `/v2/models/${model}/infer`);

const name = fc.oneof(
  fc.constantFrom('temperature', 'seed', 'tools', 'logit_bias', 'prompt_cache_key', 'n', 'top_p', 'x'),
  fc.string(),
);
const members = fc.dictionary(name, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 }).map((given) => {
  const { model: _, stream: __, stream_options: ___, ...rest } = given as Record<string, unknown>;
  return JSON.parse(JSON.stringify({ model: 'm', messages: [], ...rest })) as Record<string, unknown>;
});

describe('the key of a request', () => {
  it('is another for any other value of any member that counts', () => {
    fc.assert(
      fc.property(members, fc.string(), fc.jsonValue({ maxDepth: 2 }), (body, key, value) => {
        if (NOT_IN_KEY.includes(key) || key === 'model' || key === '__proto__') return;
        const other = { ...body, [key]: JSON.parse(JSON.stringify(value)) as unknown };
        const same = Object.hasOwn(body, key) && isDeepStrictEqual(body[key], other[key]);
        expect(hashOf(JSON.stringify(other)) === hashOf(JSON.stringify(body))).toBe(same);
      }),
    );
  });

  it('is the same for the same members in another order, with other white space, and whoever asks', () => {
    fc.assert(
      fc.property(members, fc.string(), fc.boolean(), (body, user, stream) => {
        const turned = Object.fromEntries(Object.entries(body).reverse());
        const other = {
          metadata: { user },
          ...turned,
          user,
          stream,
          stream_options: { include_usage: stream },
        };
        expect(hashOf(JSON.stringify(other, null, 2))).toBe(hashOf(JSON.stringify(body)));
      }),
    );
  });

  const chat = '{"model":"m","messages":[]}';
  it('is another for another tenant, route, kind of call and beta', () => {
    const keys = [
      hashOf(chat),
      hashOf(chat, { tenant: 'other' }),
      hashOf(chat.replace('"m"', '"n"')),
      hashOf(chat, {}, '/v1/completions'),
      hashOf(chat, {}, '/v1/embeddings'),
      hashOf(chat, { 'openai-beta': 'x' }),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('tells how the answer is framed, apart from what is asked', () => {
    const framings = ['', ',"stream":true', ',"stream":true,"stream_options":{"include_usage":true}'].map(
      (more) => keyOf(chat.replace('}', `${more}}`))!.framing,
    );
    expect(new Set(framings).size).toBe(3);
  });

  it.each([
    ['"temperature":0', true],
    ['"temperature":0.0', true],
    ['"temperature":-0e3', true],
    ['"temperature":0.1', false],
    ['"temperature":"0"', false],
    ['"temperature":null', false],
    ['"temperature":0,"temperature":1', false],
    ['"top_p":0', false],
  ])('of a chat with %s says whether it repeats: %s', (more, repeats) => {
    expect(keyOf(`{"model":"m",${more}}`)!.repeats).toBe(repeats);
  });

  it('of embeddings and tensors repeats', () => {
    expect(keyOf('{"model":"m","input":"a"}', {}, '/v1/embeddings')!.repeats).toBe(true);
    expect(keyOf('{"inputs":[]}', {}, '/v2/models/m/infer')!.repeats).toBe(true);
  });

  it('counts raw tensors, versions and where the JSON ends', () => {
    const header = { 'inference-header-content-length': '13' };
    const keys = [
      infer('{"inputs":[]}'),
      infer('{"inputs":[]}ab', header),
      infer('{"inputs":[]}ac', header),
      infer('{"inputs":[]}', {}, 'm/versions/1'),
      infer('{"inputs":[]}', {}, 'm/versions/2'),
      infer('{"inputs":[],"id":"1"}'),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });

  it.each([
    [
      'bytes that are no text',
      Buffer.concat([Buffer.from('{"model":"m","x":"'), Buffer.from([0xff]), Buffer.from('"}')]),
    ],
    ['what is no sound JSON', '{"model":"m","x":[1}}'],
    ['what is very long', `{"model":"m","x":"${'x'.repeat(2 ** 20)}"}`],
  ])('is not there for %s', (_, body) => {
    expect(keyOf(body)).toBeUndefined();
  });

  it('is not there for a sequence, nor for a question about a model', () => {
    expect(keyOf('{"inputs":[],"parameters":{"sequence_id":7}}', {}, '/v2/models/m/infer')).toBeUndefined();
  });
});
