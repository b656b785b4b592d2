import { APIError } from 'openai';
import { describe, expect, test } from 'vitest';
import { backendOf, type Config, startArmature } from '../upstream/armature.ts';
import { type Script, type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { chat, cutStream, delayed, endless, failWith, never } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';
import { openaiOf, thrown } from './openai-client.ts';

/** Pipelines over real sockets, asked for by OpenAI's own package. */

const messages = [{ role: 'user' as const, content: 'Will it rain?' }];

/** Says what it was asked, behind its own name. */
const echo =
  (name: string): Script =>
  async (x) =>
    chat([`${name}(`, x.request.json().messages.at(-1).content, ')'])(x);

const STAGES = {
  intent: { route: 'r0', input: '{{ request.text }}', budget: '2s', onFailure: { use: 'general' } },
  summary: { route: 'r1', input: 'sum up', budget: '2s', onFailure: 'skip' },
  answer: { route: 'r2', after: ['intent', 'summary'], input: '{{ intent }}, {{ summary }}', stream: true },
};

/** A pipeline `search` over one route for each engine. */
function configOf(engines: readonly ScriptedEngine[], more: Config = {}): Config {
  const { stages = STAGES, ...top } = more;
  return {
    backends: Object.fromEntries(
      engines.map((engine, i) => [`b${i}`, backendOf(engine, { model: `m${i}` })]),
    ),
    routes: Object.fromEntries(
      engines.map((_, i) => [
        `r${i}`,
        { targets: [{ backend: `b${i}` }], deadline: '20s', retry: { attempts: 1 } },
      ]),
    ),
    pipelines: { search: { deadline: '10s', stages } },
    ...top,
  };
}

async function world(scripts: [Script, Script, Script], more: Config = {}) {
  const stack = new AsyncDisposableStack();
  try {
    const engines: ScriptedEngine[] = [];
    for (const script of scripts) engines.push(stack.use(await startEngine(script)));
    const armature = stack.use(await startArmature(configOf(engines, more)));
    return {
      engines,
      armature,
      openai: openaiOf(armature),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function failed(promise: Promise<unknown>): Promise<APIError> {
  const error = await thrown(promise);
  expect(error).toBeInstanceOf(APIError);
  return error as APIError;
}

describe("a pipeline, by OpenAI's own package", () => {
  test('answers whole and streamed, is listed, ready, counted and told by why', async () => {
    await using it = await world([echo('intent'), echo('summary'), echo('answer')]);
    const { openai, armature, engines } = it;
    const said = 'answer(intent(Will it rain?), summary(sum up))';
    const { data, response } = await openai.chat.completions
      .create({ model: 'search', messages, temperature: 0 })
      .withResponse();
    expect(data.choices[0]!.message.content).toBe(said);
    expect(response.headers.get('x-armature-route')).toBe('search');
    expect(response.headers.get('x-armature-backend')).toBe('b2');
    let text = '';
    for await (const { choices } of await openai.chat.completions.create({
      model: 'search',
      messages,
      stream: true,
    }))
      text += choices[0]?.delta.content ?? '';
    expect(text).toBe(said);
    const completion = await openai.completions.create({ model: 'search', prompt: 'Will it rain?' });
    expect(completion.choices[0]!.text).toBe(said);
    expect(engines.map(({ posts }) => posts.length)).toEqual([3, 3, 3]);
    expect(engines[2]!.posts[0]!.json()).toMatchObject({ model: 'm2', temperature: 0 });

    const models = await openai.models.list();
    expect(models.data.map(({ id }) => id)).toContain('search');
    expect((await armature.ask({ method: 'GET', path: '/readyz?route=search' })).status).toBe(200);
    await eventually(
      'three are counted',
      async () => (await armature.metric('armature_requests_total', { route: 'search' })) === 3,
    );
    for (const stage of ['intent', 'summary', 'answer'])
      expect(await armature.metric('armature_stage_seconds_count', { pipeline: 'search', stage })).toBe(3);
    expect(await armature.metric('armature_route_ready', { route: 'search' })).toBe(1);
    expect(await armature.metric('armature_requests_total', { route: 'r0' })).toBe(0);

    const { stdout } = await armature.run('why', response.headers.get('x-armature-id')!);
    for (const words of [
      'Stage intent answered after',
      'Stage summary answered after',
      'Stage answer answered after',
      'answer: Sent to',
    ])
      expect(stdout).toContain(words);
    await armature.idle();
  });

  test('goes on without an engine that hangs or is gone, and says so', async () => {
    const stages = { ...STAGES, intent: { ...STAGES.intent, budget: '200ms' } };
    await using it = await world([never, failWith(500), echo('answer')], { stages });
    const { data, response } = await it.openai.chat.completions
      .create({ model: 'search', messages })
      .withResponse();
    expect(data.choices[0]!.message.content).toBe('answer(general, )');
    expect(response.headers.get('x-armature-degraded')!.split(', ').sort()).toEqual([
      'intent:use',
      'summary:skip',
    ]);
    await eventually('the hanging one is left alone', () => it.engines[0]!.active === 0);
    await it.armature.idle();
    const { steps } = await it.armature.why(response.headers.get('x-armature-id')!);
    const codes = steps.map(({ code }: { code: string }) => code);
    for (const code of ['stage-failed', 'stage-stood-in', 'stage-skipped', 'stage-answered'])
      expect(codes).toContain(code);
    const cut = steps.find(
      ({ code, figures }: { code: string; figures: Config }) =>
        code === 'stage-failed' && figures['stage'] === 'intent',
    );
    expect(cut.origin).toMatchObject({ path: 'pipelines.search.stages.intent.budget' });
  });

  test('fails as its last stage does: before its first word with a status, after it with an event', async () => {
    await using it = await world([echo('intent'), echo('summary'), failWith(500)]);
    const { openai, engines, armature } = it;
    const before = await failed(openai.chat.completions.create({ model: 'search', messages, stream: true }));
    expect([before.status, before.code]).toEqual([502, 'backend_error']);
    expect(before.message).toContain("Stage 'answer'");
    engines[2]!.script = cutStream(['One ', 'two'], 'reset');
    const stream = await openai.chat.completions.create({ model: 'search', messages, stream: true });
    let text = '';
    const after = await failed(
      (async () => {
        for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';
      })(),
    );
    expect(text).toBe('One two');
    expect(after.code).toBe('backend_error');
    await armature.idle();
  });

  test('is let go of by those who leave, and ends with a drain', async () => {
    await using it = await world([delayed(50, echo('intent')), never, endless(5)], {
      gateway: { drain: '1s', workers: 2 },
      stages: { ...STAGES, summary: { ...STAGES.summary, budget: '300ms' } },
    });
    const { openai, engines, armature } = it;
    const leaver = await openai.chat.completions.create({ model: 'search', messages, stream: true });
    for await (const { choices } of leaver) if (choices[0]?.delta.content) break;
    await eventually('the stream is left', () => engines[2]!.active === 0);
    const controller = new AbortController();
    const gone = openai.chat.completions.create({ model: 'search', messages }, { signal: controller.signal });
    await engines[1]!.posted(2);
    controller.abort();
    await gone.catch(() => undefined);
    await eventually('every stage is left', () => engines.every(({ active }) => active === 0));
    await armature.idle();
    const stays = await openai.chat.completions.create({ model: 'search', messages, stream: true });
    const told = failed(
      (async () => {
        for await (const _ of stays);
      })(),
    );
    expect(await armature.stop()).toBe(0);
    expect((await told).code).toBe('draining');
  });

  test("is the tenant's as a route is, and its stages are not asked after", async () => {
    await using it = await world([echo('intent'), echo('summary'), echo('answer')], {
      tenants: {
        web: { routes: ['search'], limits: { concurrency: 1, tokens: '2000/d' } },
        other: { routes: ['r0'] },
      },
    });
    const web = openaiOf(it.armature, { apiKey: await it.armature.key('web') });
    const other = openaiOf(it.armature, { apiKey: await it.armature.key('other') });
    const { data, response } = await web.chat.completions
      .create({ model: 'search', messages })
      .withResponse();
    expect(data.choices[0]!.message.content).toContain('answer(');
    expect(Number(response.headers.get('x-ratelimit-remaining-tokens'))).toBeLessThan(2000);
    expect((await failed(web.chat.completions.create({ model: 'r0', messages }))).status).toBe(403);
    expect((await failed(other.chat.completions.create({ model: 'search', messages }))).status).toBe(403);
    await it.armature.idle();
    expect(await it.armature.metric('armature_tokens_total', { tenant: 'web' })).toBe(21);
  });
});
