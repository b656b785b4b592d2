import { expect, it } from 'vitest';
import { type OpenaiRequest, readOpenaiRequest } from '../protocols/openai/request.ts';
import type { OpenaiCall } from './call.ts';
import { reckonCost, serviceSize } from './cost.ts';

function chat(more: object): OpenaiCall {
  const body = Buffer.from(JSON.stringify({ model: 'm', messages: [], ...more }));
  const request = readOpenaiRequest(body) as OpenaiRequest;
  return { protocol: 'openai', kind: 'chat', path: '/chat/completions', route: 'm', stream: false, request };
}

it('reckons all the choices that are asked for, up to what OpenAI allows', () => {
  const tokensOut = (more: object, usual?: number) => reckonCost(chat(more), 40, usual).tokensOut;
  expect(tokensOut({ max_tokens: 10 })).toBe(10);
  expect(tokensOut({ max_tokens: 10, n: 4 })).toBe(40);
  expect(tokensOut({ n: 4 }, 100)).toBe(400);
  expect(tokensOut({ max_tokens: 1_000, n: 4 }, 100)).toBe(400);
  expect(tokensOut({ max_tokens: 1, n: 1_000_000 })).toBe(128);
});

it('takes choices to be made side by side', () => {
  for (const n of [1, 4]) {
    const call = chat({ n });
    expect(serviceSize(call, reckonCost(call, 40, 100))).toBe(100);
  }
});
