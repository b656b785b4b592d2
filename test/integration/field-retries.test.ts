import { describe, expect, it } from 'vitest';
import {
  type Armature,
  backendOf,
  type Config,
  chatBody,
  plainConfig,
  startArmature,
} from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { nowMs, type Script, type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import {
  answerByPath,
  chat,
  cutStream,
  delayed,
  failWith,
  inTurn,
  never,
  reset,
} from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** Retries, fallbacks and timeouts, as they go wrong in the field. */

const stream = { path: '/v1/chat/completions', body: chatBody({ stream: true }) };
const whole = { path: '/v1/chat/completions', body: chatBody() };
const tensor = (more: object = {}) => ({
  path: '/v2/models/tensor/infer',
  body: { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }], ...more },
});

interface World extends AsyncDisposable {
  engines: ScriptedEngine[];
  armature: Armature;
  sent(): number;
}

/** Engines with these scripts as equal endpoints of one backend, behind the routes `chat` and `tensor`. */
async function world(scripts: Script[], more: { backend?: Config; route?: Config } = {}): Promise<World> {
  const stack = new AsyncDisposableStack();
  const engines: ScriptedEngine[] = [];
  for (const script of scripts) engines.push(stack.use(await startEngine(script)));
  const armature = stack.use(
    await startArmature({
      backends: {
        b1: backendOf(engines, { probe: { off: true }, ...more.backend }),
        t1: backendOf(engines, { engine: 'oip', probe: { off: true }, ...more.backend }),
      },
      routes: {
        chat: { targets: [{ backend: 'b1' }], deadline: '20s', ...more.route },
        tensor: { targets: [{ backend: 't1' }], deadline: '20s', ...more.route },
      },
    }),
  );
  const sent = () => engines.reduce((sum, engine) => sum + engine.posts.length, 0);
  return { engines, armature, sent, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

describe('attempts', () => {
  it.each([
    ['500', failWith(500)],
    ['503', failWith(503)],
    ['a reset', reset],
  ])('of one request do not multiply (%s)', async (_, script) => {
    await using it = await world([script, script, script], { route: { retry: { attempts: 2, budget: 1 } } });
    const answer = await it.armature.ask(whole);
    expect(answer.status).toBeGreaterThanOrEqual(502);
    expect(it.sent()).toBe(2);
    await it.armature.idle();
  });

  it('of all requests together stay within the budget', async () => {
    const scripts = [failWith(500), failWith(500)];
    await using it = await world(scripts, { route: { retry: { attempts: 3, budget: 0.1 } } });
    for (let i = 0; i < 100; i++) await it.armature.ask(whole);
    // A tenth of the traffic, and the few that a new gateway may begin with.
    expect(it.sent()).toBeLessThanOrEqual(100 + 10 + 10);
  });

  it('share one time: the deadline ends them', async () => {
    const slow = delayed(400, failWith(500));
    await using it = await world([slow, slow], {
      route: { deadline: '700ms', retry: { attempts: 10, budget: 1 } },
    });
    const startedAtMs = nowMs();
    const answer = await it.armature.ask(whole);
    expect(answer.status).toBe(504);
    expect(answer.error.code).toBe('deadline_exceeded');
    expect(nowMs() - startedAtMs).toBeLessThan(1200);
    await it.armature.idle();
  });

  it('go to another endpoint than the one that failed', async () => {
    await using it = await world([failWith(500), answerByPath], {
      route: { retry: { attempts: 2, budget: 1 } },
    });
    for (const request of [whole, stream, tensor()]) {
      for (let i = 0; i < 6; i++) expect((await it.armature.ask(request)).status).toBe(200);
    }
  });

  it('cost no caller an error where an endpoint refuses connections', async () => {
    await using it = await world([answerByPath, answerByPath], { route: { retry: { attempts: 1 } } });
    it.engines[0]!.die();
    for (let i = 0; i < 12; i++) {
      const request = [whole, stream, tensor()][i % 3]!;
      expect((await it.armature.ask(request)).status, `request ${i}`).toBe(200);
    }
    expect(it.engines[1]!.posts).toHaveLength(12);
  });

  it('are tried anew on a fresh connection where a reused one was dead', async () => {
    const script: Script = (x) => (x.request.sequence > 0 ? reset(x) : answerByPath(x));
    await using it = await world([script], { route: { retry: { attempts: 1 } } });
    for (let i = 0; i < 10; i++) expect((await it.armature.ask(whole)).status, `request ${i}`).toBe(200);
  });

  it('are none once content has gone out', async () => {
    await using it = await world([cutStream(['content '], 'reset'), cutStream(['content '], 'reset')]);
    const answer = await it.armature.ask(stream);
    expect([answer.text, it.sent()]).toEqual(['content ', 1]);
  });

  it('are none for a sequence, which stays on its endpoint', async () => {
    const scripts = [answerByPath, answerByPath];
    await using it = await world(scripts, { route: { retry: { attempts: 3, budget: 1 } } });
    const part = (more: object) => it.armature.ask(tensor({ parameters: { sequence_id: 42, ...more } }));
    expect((await part({ sequence_start: true })).status).toBe(200);
    for (let i = 0; i < 5; i++) expect((await part({})).status).toBe(200);
    const [home, other] = it.engines[0]!.posts.length > 0 ? it.engines : it.engines.toReversed();
    expect([home!.posts.length, other!.posts.length]).toEqual([6, 0]);
    home!.script = failWith(500);
    expect((await part({})).status).toBe(502);
    expect([home!.posts.length, other!.posts.length]).toEqual([7, 0]);
  });

  it('at a pinned version go nowhere else', async () => {
    await using it = await world([failWith(500), failWith(500)], {
      route: { retry: { attempts: 3, budget: 1 } },
    });
    const { body } = tensor();
    const answer = await it.armature.ask({ path: '/v2/models/tensor/versions/3/infer', body });
    expect(answer.status).toBe(502);
    expect(it.sent()).toBe(1);
    expect(it.engines.flatMap((engine) => engine.posts)[0]!.path).toBe(
      '/v2/models/engine-model/versions/3/infer',
    );
  });
});

describe('engines that ask for a pause', () => {
  it('are left alone, and the caller is told the shortest of the pauses', async () => {
    const scripts = [failWith(429, [['Retry-After', '9']]), failWith(429, [['Retry-After', '4']])];
    await using it = await world(scripts, { route: { retry: { attempts: 2, budget: 1 } } });
    const pauses: number[] = [];
    for (let i = 0; i < 4; i++) {
      const answer = await it.armature.ask(whole);
      expect([429, 503]).toContain(answer.status);
      pauses.push(Number(answer.header('retry-after')));
    }
    expect(it.sent()).toBe(2);
    expect(pauses.at(-1)).toBeLessThanOrEqual(4);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(1);
  });

  it('are passed over while another is well', async () => {
    await using it = await world([failWith(503, [['Retry-After', '30']]), answerByPath]);
    for (let i = 0; i < 10; i++) expect((await it.armature.ask(i % 2 ? whole : tensor())).status).toBe(200);
    // Once for each backend that it is an endpoint of.
    expect(it.engines[0]!.posts.length).toBeLessThanOrEqual(2);
  });
});

describe('timeouts', () => {
  it('a stream without a first byte goes on to the next endpoint', async () => {
    const more = {
      backend: { timeouts: { firstByte: '300ms' } },
      route: { retry: { attempts: 2, budget: 1 } },
    };
    await using it = await world([never, chat(['in time'])], more);
    for (let i = 0; i < 3; i++) expect((await it.armature.ask(stream)).text).toBe('in time');
  });

  it('a stream that falls silent ends with an error event', async () => {
    const silent: Script = inTurn(async (x) => {
      await x.sseHead();
      await x.event({ choices: [{ index: 0, delta: { content: 'one' } }] });
      await x.hang();
    });
    await using it = await world([silent], { backend: { timeouts: { idle: '300ms' } } });
    const answer = await it.armature.ask(stream);
    expect([answer.text, answer.done]).toEqual(['one', false]);
    expect(answer.error).toMatchObject({ message: expect.any(String) });
    await it.armature.idle();
  });

  it("a caller's own deadline holds for chat and tensors", async () => {
    await using it = await world([never]);
    for (const request of [whole, stream, tensor()]) {
      const startedAtMs = nowMs();
      const answer = await it.armature.ask({ ...request, headers: [['x-armature-deadline-ms', '300']] });
      expect(answer.status).toBe(504);
      expect(nowMs() - startedAtMs).toBeLessThan(1500);
    }
    await it.armature.idle();
  });
});

describe('endpoints that come and go', () => {
  it('leave no request hanging', async () => {
    const scripts = [delayed(20), delayed(20), delayed(20)];
    await using it = await world(scripts, {
      backend: { timeouts: { firstByte: '3s' } },
      route: { deadline: '8s' },
    });
    let churning = true;
    const statuses: (number | string)[] = [];
    const call = async (number: number) => {
      while (churning) {
        const answer = await it.armature.ask(number % 3 === 0 ? tensor() : number % 3 === 1 ? whole : stream);
        statuses.push(answer.fault === 'timeout' ? 'hung' : answer.status);
      }
    };
    const churn = async () => {
      for (let round = 0; round < 12; round++) {
        const engine = it.engines[round % 2]!;
        const seen = statuses.length;
        engine.die(round % 3 ? 'reset' : 'fin');
        await it.armature.ask(whole);
        while (statuses.length < seen + 20) await it.armature.ask(whole);
        await engine.listen();
      }
      churning = false;
    };
    await Promise.all([churn(), ...Array.from({ length: 12 }, (_, number) => call(number))]);
    expect(statuses.filter((status) => status === 'hung')).toEqual([]);
    expect(new Set(statuses)).toEqual(
      new Set([200, ...statuses.filter((status) => status === 502 || status === 503)]),
    );
    expect(statuses.filter((status) => status === 200).length / statuses.length).toBeGreaterThan(0.6);
    await it.armature.idle();
  });

  it('keep nobody waiting: who waits for one that is taken away goes to the one in its place', async () => {
    await using old = await startEngine(never);
    await using next = await startEngine();
    const config = (engine: ScriptedEngine) =>
      plainConfig(engine, { backend: { limits: { concurrency: 1 } } });
    await using armature = await startArmature(config(old));
    using first = await RawClient.open(armature.gatewayPort);
    first.request(whole);
    await old.posted(1);
    const waiting = Array.from({ length: 4 }, (_, i) => armature.ask(i % 2 ? whole : stream));
    await eventually('four wait', async () => (await armature.metric('armature_queue_depth')) === 4);
    await armature.configure(config(next));
    armature.kill('supervisor', 'SIGHUP');
    expect((await Promise.all(waiting)).map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
    expect(old.posts[0]!.goneAtMs).toBeUndefined();
    first.leave('fin');
    await armature.idle();
  });
});
