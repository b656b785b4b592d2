import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { backendOf, chatBody, startArmature } from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chat, chatAnswer, failWith, inTurn, never } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';
import { openaiOf } from './openai-client.ts';

/** Hedges, shadows and shorter answers over real sockets, asked for by OpenAI's own package. */

const messages = [{ role: 'user' as const, content: 'Hi' }];

async function streamed(openai: OpenAI): Promise<{ text: string; headers: Headers }> {
  const { data, response } = await openai.chat.completions
    .create({ model: 'chat', messages, stream: true })
    .withResponse();
  let text = '';
  for await (const { choices } of data) text += choices[0]?.delta.content ?? '';
  return { text, headers: response.headers };
}

describe('a hedge', () => {
  test('answers for an engine that says nothing; the other connection is closed at once', async () => {
    const script: Script = inTurn(never, chat(['from ', 'the second']));
    await using first = await startEngine(script);
    await using second = await startEngine(script);
    await using armature = await startArmature({
      backends: { b1: backendOf([first, second]) },
      routes: { chat: { targets: [{ backend: 'b1' }], hedge: { after: '200ms', budget: 1 } } },
    });
    const { text, headers } = await streamed(openaiOf(armature));
    expect(text).toBe('from the second');
    expect([first.posts.length, second.posts.length]).toEqual([1, 1]);
    await eventually('the slow one is left alone', () => first.active + second.active === 0);
    expect(await armature.metric('armature_hedges_total', { route: 'chat', outcome: 'won' })).toBe(1);
    expect(await armature.metric('armature_breaker_state')).toBe(0);
    await armature.idle();
    const { steps } = await armature.why(headers.get('x-armature-id')!);
    const codes = steps.map(({ code }: { code: string }) => code);
    for (const code of ['hedge-granted', 'hedge-won']) expect(codes).toContain(code);
    expect(steps.find(({ code }: { code: string }) => code === 'hedge-won').reason).toMatch(
      /cancelled after/,
    );
  });

  test('is not sent for an answer that comes in time, nor for a whole one', async () => {
    await using engine = await startEngine(chat(['quick']));
    await using other = await startEngine(chat(['quick']));
    await using armature = await startArmature({
      backends: { b1: backendOf([engine, other]) },
      routes: { chat: { targets: [{ backend: 'b1' }], hedge: { after: '2s', budget: 1 } } },
    });
    const openai = openaiOf(armature);
    for (let i = 0; i < 10; i++) expect((await streamed(openai)).text).toBe('quick');
    await openai.chat.completions.create({ model: 'chat', messages });
    expect(engine.posts.length + other.posts.length).toBe(11);
  });
});

describe('a shadow', () => {
  test('that hangs delays nobody, gets what it has places for, and holds up no shutdown', async () => {
    await using engine = await startEngine(chat(['answer']));
    await using shadow = await startEngine(never);
    await using armature = await startArmature({
      backends: {
        b1: backendOf(engine),
        next: backendOf(shadow, { model: 'next-model', limits: { concurrency: 4 } }),
      },
      routes: { chat: { targets: [{ backend: 'b1' }], shadow: [{ backend: 'next', percent: 100 }] } },
    });
    const openai = openaiOf(armature);
    for (let i = 0; i < 20; i++) {
      const { text, headers } = await streamed(openai);
      expect([text, headers.get('x-armature-backend')]).toEqual(['answer', 'b1']);
    }
    const copy = await shadow.posted(1);
    expect(copy.json().model).toBe('next-model');
    expect(shadow.peak).toBeLessThanOrEqual(4);
    const dropped = () => armature.metric('armature_shadow_total', { backend: 'next', outcome: 'dropped' });
    await eventually('the rest is dropped', async () => (await dropped()) === 20 - shadow.posts.length);
    expect(await armature.metric('armature_requests_total')).toBe(20);
    expect(await armature.stop(5_000)).toBe(0);
  });

  test('of three workers keeps to its limit, and every copy is accounted for', async () => {
    await using engine = await startEngine(chat(['answer']));
    await using shadow = await startEngine(async (x) => {
      await x.pause(100);
      await chat(['thrown away'])(x);
    });
    await using armature = await startArmature({
      gateway: { workers: 3 },
      backends: { b1: backendOf(engine), next: backendOf(shadow, { limits: { concurrency: 3 } }) },
      routes: { chat: { targets: [{ backend: 'b1' }], shadow: [{ backend: 'next', percent: 100 }] } },
    });
    const one = async (): Promise<number> => {
      using client = await RawClient.open(armature.gatewayPort);
      return (await client.request({ path: '/v1/chat/completions', body: chatBody() }).whole()).status;
    };
    for (let round = 0; round < 5; round++) {
      const statuses = await Promise.all(Array.from({ length: 12 }, one));
      expect(new Set(statuses)).toEqual(new Set([200]));
    }
    const copies = (outcome: string) => armature.metric('armature_shadow_total', { outcome });
    await eventually(
      'all copies are over',
      async () => (await copies('ok')) + (await copies('dropped')) === 60,
    );
    expect(await copies('ok')).toBe(shadow.posts.length);
    expect(shadow.posts.length).toBeGreaterThan(0);
    expect(shadow.peak).toBeLessThanOrEqual(3);
    await armature.idle();
  });

  test('goes on when the caller leaves, fails by itself, and is asked once', async () => {
    await using engine = await startEngine(never);
    await using shadow = await startEngine(never);
    await using armature = await startArmature({
      backends: { b1: backendOf(engine), next: backendOf(shadow) },
      routes: { chat: { targets: [{ backend: 'b1' }], shadow: [{ backend: 'next', percent: 100 }] } },
    });
    {
      using client = await RawClient.open(armature.gatewayPort);
      client.request({ path: '/v1/chat/completions', body: chatBody() });
      await shadow.posted(1);
    }
    await eventually('the engine is let go', () => engine.active === 0);
    expect(shadow.active).toBe(1);
    shadow.script = failWith(500);
    engine.script = chat(['answer']);
    for (let i = 0; i < 3; i++) expect((await streamed(openaiOf(armature))).text).toBe('answer');
    const failed = () => armature.metric('armature_shadow_total', { outcome: 'failed' });
    await eventually('three failed', async () => (await failed()) === 3);
    expect(shadow.posts).toHaveLength(4);
  });
});

describe('a rung of shorter answers', () => {
  /** 4 ms for each token of the answer, 100 tokens unless it is told fewer. */
  const generates: Script = async (x) => {
    const tokens = Math.min(100, x.request.json().max_tokens ?? 100);
    await x.pause(4 * tokens);
    await x.json(
      chatAnswer(`${tokens} tokens`, {
        usage: { prompt_tokens: 5, completion_tokens: tokens, total_tokens: tokens + 5 },
      }),
    );
  };

  test('is given, labelled, under a load that full answers do not fit, and full ones are again after it', async () => {
    await using engine = await startEngine(generates);
    await using armature = await startArmature({
      backends: { b1: backendOf(engine, { engine: 'vllm', limits: { concurrency: 2, adaptive: 'off' } }) },
      routes: {
        chat: {
          targets: [{ backend: 'b1' }],
          ladder: [{ output: { tokensMax: 10 } }, { answer: 'busy' }],
          queue: { max: 2 },
          deadline: '2s',
        },
      },
    });
    const openai = openaiOf(armature);
    const one = async () => {
      const { data, response } = await openai.chat.completions
        .create({ model: 'chat', messages })
        .withResponse();
      return { text: data.choices[0]!.message.content, rung: response.headers.get('x-armature-degraded') };
    };
    const seen = new Map<string | null, number>();
    let over = false;
    const callers = Array.from({ length: 8 }, async () => {
      while (!over) {
        const { text, rung } = await one();
        seen.set(rung, (seen.get(rung) ?? 0) + 1);
        expect(text).toBe({ output: '10 tokens', answer: 'busy' }[rung ?? ''] ?? '100 tokens');
      }
    });
    await eventually('shorter answers are given', () => (seen.get('output') ?? 0) >= 50, 20_000);
    over = true;
    await Promise.all(callers);
    expect(engine.posts.filter((request) => request.json().max_tokens === 10).length).toBe(
      seen.get('output'),
    );
    await eventually('full answers again', async () => (await one()).rung === null, 20_000);
    const asked = await armature.metric('armature_degraded_total', { route: 'chat', rung: 'output' });
    expect(asked).toBeGreaterThanOrEqual(seen.get('output')!);
    await armature.idle();
  });
});
