import { expect, it, vi } from 'vitest';
import type { Status } from '../../src/api/contracts.ts';
import type { Why } from '../../src/events/why.ts';
import { backendOf, chatBody, startArmature } from '../upstream/armature.ts';
import { startEngine } from '../upstream/engine.ts';
import { openaiOf } from './openai-client.ts';
import { answersLast, talk } from './responses-world.ts';

/** A conversation that moves between tiers, by OpenAI's own package over two workers, and what is told of its moves. */

it('a conversation moves between tiers with its length, what it asks for and what is well, and stays one', async () => {
  await using stack = new AsyncDisposableStack();
  const engines = [];
  for (let i = 0; i < 3; i++) engines.push(stack.use(await startEngine()));
  const [edge, mid, large] = engines as [(typeof engines)[0], (typeof engines)[0], (typeof engines)[0]];
  for (const engine of engines) engine.script = answersLast();
  const probe = { every: '100ms', healthy: 1, unhealthy: 1, path: '/v1/models' };
  const armature = stack.use(
    await startArmature({
      gateway: { workers: 2 },
      backends: {
        small: backendOf(edge, { model: 'small-model', tier: 'edge', probe }),
        middle: backendOf(mid, { model: 'middle-model', tier: 'mid', probe }),
        big: backendOf(large, { model: 'big-model', tier: 'large', probe }),
      },
      routes: {
        chat: {
          targets: [{ backend: 'small' }, { backend: 'middle' }, { backend: 'big' }],
          tiers: [
            { tier: 'asked' },
            { tier: 'edge', when: { promptTokensMax: 400 } },
            { tier: 'mid', when: { promptTokensMax: 2000 } },
            { tier: 'large' },
          ],
          deadline: '20s',
        },
      },
    }),
  );
  const openai = openaiOf(armature, { defaultHeaders: { connection: 'close' } });
  const { id } = await openai.conversations.create();
  let turns = 0;
  const ids: string[] = [];
  const turn = async (words: number, tier?: string) => {
    const { data, response } = await openai.responses
      .create(
        { model: 'chat', input: `${turns} ${'word'.repeat(words)}`, conversation: id },
        tier === undefined ? {} : { headers: { 'x-armature-tier': tier } },
      )
      .withResponse();
    expect(data.output_text).toContain(`answer:${turns}`);
    expect(response.headers.get('x-armature-degraded')).toBeNull();
    turns++;
    ids.push(response.headers.get('x-armature-id')!);
    const backend = response.headers.get('x-armature-backend')!;
    // Whichever model it is, it hears everything that was said.
    const engine = { small: edge, middle: mid, big: large }[backend]!;
    expect(talk(engine.posts.at(-1)!)).toHaveLength(2 * turns - 1);
    return backend;
  };

  expect(await turn(10)).toBe('small');
  expect(await turn(10)).toBe('small');
  expect(await turn(500)).toBe('middle');
  expect(await turn(1, 'large')).toBe('big');
  expect(await turn(1, 'mid')).toBe('middle');

  // A busy machine may have a probe of another endpoint time out.
  const ofMiddle = async (type: string) =>
    (await armature.events(type)).filter(({ subject }) => subject.startsWith('endpoint:middle|')).length;
  mid.die();
  await vi.waitFor(async () => expect(await ofMiddle('endpoint-unwell')).toBe(1), { timeout: 10_000 });
  expect(await turn(1, 'mid')).toBe('big');
  await mid.listen();
  await vi.waitFor(async () => expect(await ofMiddle('endpoint-well')).toBe(1), { timeout: 10_000 });
  // Each worker has heard of it a moment later; the state of an endpoint is the worst that one of them has.
  const states = async () => {
    const { backends } = JSON.parse((await armature.admin('/api/v1/status')).content.toString()) as Status;
    return backends.flatMap(({ endpoints }) => endpoints.map(({ state }) => state));
  };
  await vi.waitFor(async () => expect(await states()).toEqual(['well', 'well', 'well']), { timeout: 10_000 });
  expect(await turn(1, 'mid')).toBe('middle');

  await vi.waitFor(async () => expect((await armature.events('session-moved')).length).toBe(5));
  const moves = await armature.events('session-moved');
  expect(moves.map(({ data: { fromTier, toTier } }) => `${fromTier} ${toTier}`)).toEqual([
    'edge mid',
    'mid large',
    'large mid',
    'mid large',
    'large mid',
  ]);
  expect(moves.map(({ causes }) => causes)).toEqual([2, 3, 4, 5, 6].map((at) => [ids[at]]));
  expect(moves[0]).toMatchObject({
    subject: `session:${id}`,
    data: { from: 'small', to: 'middle', reason: 'tier-by-rule', setting: 'routes.chat.tiers[2]' },
  });
  expect(moves[3]!.data.reason).toBe('tier-unwell');

  // By the session, by the request, and as the command tells it.
  const ofSession = (await armature.why(id)) as Why;
  expect(ofSession.subject).toBe(`session:${id}`);
  const codes = ofSession.steps.map(({ code }) => code);
  expect(codes.slice(0, 1)).toEqual(['session-moved']);
  for (const code of ['tier-by-rule', 'tier-stands-in', 'moved']) expect(codes).toContain(code);
  const ofRequest = (await armature.why(ids[5]!)) as Why;
  expect(ofRequest.steps.find(({ code }) => code === 'moved')?.figures).toMatchObject({
    from: 'middle',
    to: 'big',
    reason: 'tier-unwell',
  });
  const chosen = ofRequest.steps.find(({ code }) => code === 'tier-stands-in');
  expect(chosen).toMatchObject({
    figures: { wanted: 'mid', passed: 'unwell' },
    origin: { file: armature.file },
  });
  const told = await armature.run('why', ids[2]!);
  expect(told.stdout).toContain('moved to middle (mid)');

  // Plain chats of one session, which one worker remembers.
  const refused = await armature.chat(chatBody(), [['x-armature-tier', 'lagre']]);
  expect([refused.status, refused.json().error.param]).toEqual([400, 'x-armature-tier']);
  await armature.idle();
});
