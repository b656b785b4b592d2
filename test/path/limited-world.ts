import { chatAnswer, type Engine, type VirtualCaller, VirtualGateway } from './virtual-gateway.ts';

/** A gateway with one tenant, `web`, that is held to limits, and what its callers see of them. */

export const A = 'http://10.0.0.1:8000';
/** Of the key `k`. */
const HASH = 'sha256:8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a';
export const AUTH = { authorization: 'Bearer k' };

export function limitedWorld(
  limits: object,
  more: { backend?: object; route?: object; tenant?: object } = {},
) {
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

/** An answer that took so many tokens, as its engine says. */
export function usage(tokensIn: number, tokensOut: number): Engine {
  return ({ sink }) => {
    sink.onHead(200, { 'content-type': 'application/json' });
    const body = {
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: tokensIn, completion_tokens: tokensOut },
    };
    sink.onData(Buffer.from(JSON.stringify(body)));
    sink.onEnd();
  };
}

export const chat = (gateway: VirtualGateway, more: object = {}) => gateway.chat(more, AUTH);
export const left = (caller: VirtualCaller, kind: 'requests' | 'tokens') =>
  Number(caller.answerHeader(`x-ratelimit-remaining-${kind}`));
export const refusal = (caller: VirtualCaller) => [
  caller.status,
  JSON.parse(caller.text).error?.code,
  caller.answerHeader('retry-after'),
];
