import { describe, expect, it } from 'vitest';
import {
  chatAnswer,
  chatStream,
  failing,
  NOTHING,
  never,
  status,
  type VirtualCaller,
  VirtualGateway,
} from './virtual-gateway.ts';

/** What tenants may use: reserved before, settled after, given back on every way out. */

const A = 'http://10.0.0.1:8000';

/** The open tenant would not be limited: every caller has the key of `web`. */
const KEY = 'k';
const HASH = 'sha256:8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a';
const AUTH = { authorization: `Bearer ${KEY}` };

function world(limits: object, more: { backend?: object; route?: object; tenant?: object } = {}) {
  const config = (of: object) => ({
    backends: {
      b1: {
        engine: 'vllm',
        model: 'm',
        endpoints: [`${A}/v1`],
        timeouts: { firstByte: '5s', idle: '5s', total: '5s' },
        ...more.backend,
      },
      t1: { engine: 'triton', model: 'm', endpoints: [A] },
    },
    routes: {
      chat: { targets: [{ backend: 'b1' }], deadline: '3s', retry: { attempts: 1 }, ...more.route },
      other: { targets: [{ backend: 'b1' }] },
      tensors: { targets: [{ backend: 't1' }] },
    },
    tenants: { web: { limits: of, keys: [{ hash: HASH }], ...more.tenant }, free: {} },
  });
  const gateway = new VirtualGateway(config(limits));
  gateway.engines.set(A, chatAnswer('x', 10));
  return { gateway, limit: (changed: object) => gateway.load(config(changed)) };
}

const chat = (gateway: VirtualGateway, more: object = {}) => gateway.chat(more, AUTH);
const left = (caller: VirtualCaller, kind: 'requests' | 'tokens') =>
  Number(caller.answerHeader(`x-ratelimit-remaining-${kind}`));
const refusal = (caller: VirtualCaller) => [
  caller.status,
  JSON.parse(caller.text).error?.code,
  caller.answerHeader('retry-after'),
];

describe('requests', () => {
  it('may come at once as many as the rate says, then as time brings them', async () => {
    const { gateway } = world({ requests: '5/s' });
    const callers = Array.from({ length: 8 }, () => chat(gateway));
    await gateway.time.advance(20);
    expect(callers.map(({ status: of }) => of)).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
    expect(refusal(callers[5]!)).toEqual([429, 'quota_exceeded', '1']);
    await gateway.time.advance(379);
    expect(chat(gateway).status).toBeUndefined();
    expect(chat(gateway).status).toBe(429);
    await gateway.time.advance(1000);
    expect(gateway.taken).toEqual(NOTHING);
  });
});
