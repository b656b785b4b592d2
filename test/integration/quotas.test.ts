import { RateLimitError } from 'openai';
import { describe, expect, test } from 'vitest';
import { type Armature, type Config, chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { type Answer, RawClient } from '../upstream/client.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chatAnswer } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';
import { openaiOf } from './openai-client.ts';

/** Tenants' limits over real sockets, most of them shared by three workers. */

const HASH = 'sha256:8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a'; // of "k"
const AUTH: [string, string] = ['authorization', 'Bearer k'];

function slowly(ms: number): Script {
  return async (x) => {
    await x.pause(ms);
    await x.json(chatAnswer());
  };
}

function limited(engine: Parameters<typeof plainConfig>[0], limits: Config, workers = 3): Config {
  const tenants = { web: { limits, keys: [{ hash: HASH }] } };
  return plainConfig(engine, { top: { gateway: { workers }, tenants } });
}

async function workersUp(armature: Armature, count: number): Promise<void> {
  const seen = async () => {
    const status = await armature.admin('/api/v1/status');
    return (
      status.status === 200 && status.json().workers.filter((it: Config) => it['state'] === 'serving').length
    );
  };
  await eventually('all workers serve', async () => (await seen()) === count, 20_000);
}

/** Each on a connection of its own, so that all workers are asked. */
async function asked(armature: Armature, count: number, body: object = {}): Promise<Answer[]> {
  const one = async () => {
    using client = await RawClient.open(armature.gatewayPort);
    const request = { path: '/v1/chat/completions', body: chatBody({ ...body }), headers: [AUTH] };
    return await client.request(request).whole(20_000);
  };
  return await Promise.all(Array.from({ length: count }, one));
}

const statuses = (answers: Answer[]) => new Set(answers.map(({ status }) => status));
const good = (answers: Answer[]) => answers.filter(({ status }) => status === 200).length;

describe('three workers', () => {
  test('let no more requests through together than the rate says, and all of those', async () => {
    await using engine = await startEngine(slowly(1));
    await using armature = await startArmature(limited(engine, { requests: '30/h' }));
    await workersUp(armature, 3);
    const answers = [...(await asked(armature, 60)), ...(await asked(armature, 60))];
    expect([good(answers), engine.posts.length, statuses(answers)]).toEqual([30, 30, new Set([200, 429])]);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.json().error.code).toBe('quota_exceeded');
    expect(Number(refused.header('retry-after'))).toBeGreaterThan(60);
    expect(refused.header('x-should-retry')).toBe('false');
    await armature.idle();
  });

  test('set tokens aside together, and give back what was not used', async () => {
    await using engine = await startEngine(slowly(300));
    await using armature = await startArmature(limited(engine, { tokens: '60000/h' }));
    await workersUp(armature, 3);
    const answers = await asked(armature, 20, { max_tokens: 10_000 });
    expect([good(answers), statuses(answers)]).toEqual([5, new Set([200, 429])]);
    // What one worker gives back comes to control a moment after its answer, and another worker may be quicker to ask.
    const known = async () => (await armature.admin('/api/v1/status')).json().quotas[0];
    await eventually('what was not used is given back', async () => (await known()).left > 59_000);
    const again = await asked(armature, 5, { max_tokens: 10_000 });
    expect(good(again)).toBe(5);
    const tokens = await known();
    const [web] = (await armature.admin('/api/v1/tenants')).json().data;
    const used = engine.posts.length * 7; // as the engine says
    expect(tokens).toMatchObject({ tenant: 'web', route: null, kind: 'tokens', max: 60_000 });
    expect(60_000 - tokens.left).toBeLessThanOrEqual(used);
    expect(60_000 - tokens.left).toBeGreaterThan(0);
    expect(web.left).toMatchObject([{ kind: 'tokens', max: 60_000 }]);
    await armature.idle();
  });

  test('share a number of requests at once: never more, and never fewer', async () => {
    await using engine = await startEngine(slowly(200));
    await using armature = await startArmature(limited(engine, { concurrency: 4 }));
    await workersUp(armature, 3);
    for (let round = 0; round < 3; round++) {
      const four = await asked(armature, 4);
      expect(statuses(four)).toEqual(new Set([200]));
    }
    const many = await asked(armature, 24);
    expect(statuses(many)).toEqual(new Set([200, 429]));
    expect(engine.peak).toBe(4);
    await armature.idle();
  });

  test('go on while control is dead, and do not get the whole limit anew with the next', async () => {
    await using engine = await startEngine(slowly(1));
    await using armature = await startArmature(limited(engine, { requests: '30/h' }));
    await workersUp(armature, 3);
    expect(good(await asked(armature, 20))).toBe(20);
    armature.kill('control');
    const alone = await asked(armature, 9);
    expect(alone.every(({ status }) => status === 200 || status === 429)).toBe(true);
    await workersUp(armature, 3);
    await asked(armature, 60);
    // What each worker knew was a little old; none of them thought that everything was there.
    expect(engine.posts.length).toBeLessThanOrEqual(30 + 10);
    expect(engine.posts.length).toBeGreaterThanOrEqual(28);
    await armature.idle();
  });
});

test('a limit that is changed live holds at once, and gives nothing anew', async () => {
  await using engine = await startEngine(slowly(1));
  await using armature = await startArmature(limited(engine, { requests: '2/h' }, 1));
  expect(good(await asked(armature, 4))).toBe(2);
  await armature.configure(limited(engine, { requests: '4/h' }, 1));
  armature.kill('supervisor', 'SIGHUP');
  const limitTold = async () => {
    const [answer] = await asked(armature, 1);
    return answer!.header('x-ratelimit-limit-requests') === '4';
  };
  await eventually('the new limit holds', limitTold);
  expect(statuses(await asked(armature, 2))).toEqual(new Set([429]));
  await armature.idle();
});

describe("OpenAI's own package", () => {
  const messages = [{ role: 'user' as const, content: 'Hi' }];

  async function asOpenai(limits: Config) {
    const engine = await startEngine(slowly(1));
    const armature = await startArmature(limited(engine, limits, 1));
    const openai = openaiOf(armature, { apiKey: 'k', maxRetries: 2 });
    return {
      engine,
      refused: () => armature.metric('armature_shed_total', { reason: 'quota_exceeded' }),
      ask: (more: object = {}) =>
        openai.chat.completions.create({ model: 'chat', messages, ...more }).withResponse(),
      async [Symbol.asyncDispose]() {
        await armature[Symbol.asyncDispose]();
        await engine[Symbol.asyncDispose]();
      },
    };
  }

  test('does not come again where that cannot help, and reads what is left', async () => {
    await using it = await asOpenai({ requests: '2/h', tokens: '50000/h' });
    const { response } = await it.ask({ max_tokens: 100 });
    expect(Number(response.headers.get('x-ratelimit-remaining-requests'))).toBe(1);
    expect(Number(response.headers.get('x-ratelimit-remaining-tokens'))).toBeGreaterThan(49_900);
    expect(response.headers.get('x-ratelimit-reset-requests')).toMatch(/^(30m0s|29m5\ds)$/);
    for (const [more, code] of [
      [{ max_tokens: 50_001 }, 'quota-never'],
      [{}, undefined],
      [{}, 'quota-short'],
    ] as const) {
      const before = await it.refused();
      const asked = it.ask(more);
      if (code === undefined) await asked;
      else await expect(asked).rejects.toBeInstanceOf(RateLimitError);
      expect((await it.refused()) - before).toBe(code === undefined ? 0 : 1);
    }
    expect(it.engine.posts.length).toBe(2);
  });

  test('waits as long as it is told, and then there is enough', async () => {
    await using it = await asOpenai({ requests: '1/s' });
    await it.ask();
    await it.ask();
    await it.ask();
    // Each of the later two was told once to wait, or came late enough.
    expect(await it.refused()).toBeLessThanOrEqual(2);
    expect(it.engine.posts.length).toBe(3);
  });
});
