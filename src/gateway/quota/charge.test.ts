import { describe, expect, it } from 'vitest';
import { limitsOf } from '../../config/rate-limits.ts';
import { settingsSchema } from '../../config/schema/index.ts';
import { TokenBucket } from '../../policies/token-bucket/index.ts';
import { readOpenaiRequest } from '../../protocols/openai/request.ts';
import type { Call } from '../call.ts';
import { reckonCost } from '../cost.ts';
import { Exchange } from '../exchange.ts';
import { amountsOf, counts, tokensUsed } from './charge.ts';

const limits = { requests: '5/s', tokens: '1000/min', routes: { chat: { tokens: '100000/min' } } };
const { tenants } = settingsSchema.parse({ tenants: { web: { limits } } });
const rates = limitsOf('web', tenants!['web']!).rates.map((limit) => {
  return { limit, bucket: new TokenBucket(limit, 0), closed: false, owed: 0, dirty: false, share: undefined };
});

function chat(more: object = {}): Call {
  const request = readOpenaiRequest(Buffer.from(JSON.stringify({ model: 'chat', ...more })));
  if ('message' in request) throw new Error(request.message);
  return {
    protocol: 'openai',
    kind: 'chat',
    path: '/chat/completions',
    route: 'chat',
    stream: false,
    request,
  };
}

function exchange(more: Partial<Exchange> = {}): Exchange {
  const x = new Exchange({} as Exchange['caller'], 'req_1', 'req_1', 0, 0);
  return Object.assign(x, { call: chat(), cost: { tokensIn: 40, tokensOut: 300 } }, more);
}

describe('what is set aside', () => {
  it.each([
    ['what answers usually have, and a quarter of a limit at most', {}, [1, 40 + 250, 40 + 300]],
    ['of several answers as many times that', { n: 3 }, [1, 290, 940]],
    ['the maximum', { max_tokens: 500 }, [1, 540, 540]],
    ['the newer maximum before the older', { max_tokens: 500, max_completion_tokens: 20 }, [1, 60, 60]],
    ['of several answers the maximum of all', { max_tokens: 100, n: 4 }, [1, 440, 440]],
    ['no more than a full bucket for what is only reckoned', { max_tokens: 990 }, [1, 1000, 1030]],
    ['what can never be, as it is', { max_tokens: 1001 }, [1, 1001, 1041]],
    ['nothing for no answer', { max_tokens: 0 }, [1, 40, 40]],
  ])('is %s', (_what, body, amounts) => {
    const cost = reckonCost(chat(body), 160, 300);
    expect(amountsOf(exchange({ cost }), chat(body), rates)).toEqual(amounts);
  });

  it('is no request for a stage of a pipeline, which is one already', () => {
    expect(amountsOf(exchange({ charged: 'stage' }), chat({ max_tokens: 5 }), rates)).toEqual([0, 45, 45]);
  });
});

describe('what is charged', () => {
  it.each([
    ['the count of the engine', { outcome: 'ok', attempts: 1, tokensIn: 7, tokensOut: 9 }, { in: 7, out: 9 }],
    ['deltas', { outcome: 'ok', attempts: 1, tokensOut: 9 }, { in: 40, out: 9 }],
    ['what was reckoned, where nothing counted', { outcome: 'ok', attempts: 1 }, { in: 40, out: 300 }],
    ['what came before it broke', { outcome: 'failed', committed: true, tokensOut: 3 }, { in: 40, out: 3 }],
    ['the prompt of one who left early', { outcome: 'aborted', attempts: 1 }, { in: 40, out: 0 }],
    ['nothing of one who left before it was sent', { outcome: 'aborted' }, undefined],
    ['nothing where it failed', { outcome: 'failed', attempts: 2 }, undefined],
    ['nothing for a fixed answer', { outcome: 'degraded', degraded: 'answer', attempts: 1 }, undefined],
    ['a shared answer', { outcome: 'ok', attempts: 1, tokensIn: 1, tokensOut: 2 }, { in: 1, out: 2 }],
    ['nothing for a kept answer', { outcome: 'ok', tokensIn: 0, tokensOut: 0 }, { in: 0, out: 0 }],
  ] as [string, Partial<Exchange>, unknown][])('is %s', (_what, more, used) => {
    expect(tokensUsed(exchange(more))).toEqual(used);
  });

  it('is a request only where it was sent or answered', () => {
    expect(counts(exchange({ outcome: 'refused' }))).toBe(false);
    expect(counts(exchange({ outcome: 'refused', attempts: 1 }))).toBe(true);
    expect(counts(exchange({ outcome: 'degraded' }))).toBe(true);
  });
});
