import { expect, test } from 'vitest';
import type { Why } from '../../src/events/why.ts';
import { backendOf, type Config, startArmature } from '../upstream/armature.ts';
import { type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { chat, failWith } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';
import { begin, releaseIs } from './releases.ts';

/** What a backend has to show before callers meet it, in a running Armature: a load test, and answers to copies. */

const RELEASE = {
  plan: [50, 100],
  step: { sessionsMin: 5, timeMin: '1s' },
  metrics: ['errors'],
  deadline: '10min',
  watch: '1s',
};

function configOf(old: ScriptedEngine, next: Config, release: Config): Config {
  return {
    backends: { old: backendOf(old), next },
    routes: { chat: { targets: [{ backend: 'old' }], deadline: '10s', release: { ...RELEASE, ...release } } },
  };
}

test('a backend that fails its load test is never met by a caller, and why tells it', async () => {
  await using old = await startEngine();
  await using next = await startEngine();
  next.script = failWith(500);
  const stress = { concurrency: 4, duration: '1s' };
  await using armature = await startArmature(configOf(old, backendOf(next), { stress, shadow: 100 }));
  const { id } = await begin(armature);
  const over = await releaseIs(armature, 'it is rolled back', ({ state }) => state === 'rolled-back');
  expect(over).toMatchObject({ id, last: { code: 'release-gate-failed' } });
  const tested = next.posts.length;
  expect(tested).toBeGreaterThan(0);
  for (let i = 0; i < 10; i++) expect((await armature.chat()).header('x-armature-backend')).toBe('old');
  expect(next.posts.length).toBe(tested);
  const why: Why = await armature.why(id);
  const codes = why.steps.map(({ code }) => code);
  expect(codes).toContain('stress-failed');
  const [told] = (await armature.events()).filter(({ type }) => type === 'stress-failed');
  expect(told!.data).toMatchObject({ backend: 'next', for: 'stress-errors', errors: 1 });
  await armature.idle();
});

test('a simulated backend passes it, and its answers to copies are compared before callers meet it', async () => {
  await using old = await startEngine();
  old.script = chat();
  const next = {
    engine: 'sim',
    model: 'next',
    profile: { prefillTokensPerSecond: 1_000_000, decodeTokensPerSecond: 2000 },
    limits: { concurrency: 8 },
  };
  const stress = { concurrency: 8, duration: '2s', tokensOut: 4, p99Max: '10s', memoryMax: '8GiB' };
  const release = { stress, shadow: 100, pairsMin: 20, compare: { by: 'exact' } };
  await using armature = await startArmature(configOf(old, next, release));
  const { id } = await begin(armature);
  await releaseIs(armature, 'copies are sent', ({ phase }) => phase === 'shadow');
  const [passed] = (await armature.events()).filter(({ type }) => type === 'stress-passed');
  expect(passed).toMatchObject({ subject: `release:${id}`, data: { backend: 'next', errors: 0 } });
  expect(passed!.data.memoryBytes).toBeGreaterThan(10_000_000);
  let going = true;
  const callers = (async () => {
    while (going) {
      const answer = await armature.chat();
      expect(answer.status).toBe(200);
    }
  })();
  await releaseIs(armature, 'callers meet it', ({ share }) => share > 0);
  going = false;
  await callers;
  const pairs = (await armature.events())
    .filter(({ type }) => type === 'evidence-gathered')
    .flatMap(({ data }) => data.pairs);
  expect(pairs.length).toBeGreaterThanOrEqual(20);
  expect(
    pairs.every(
      ({ difference, by }: { difference: number; by: string }) => difference === 1 && by === 'exact',
    ),
  ).toBe(true);
  await armature.run('release', 'abort', 'chat');
  await armature.idle();
});

test('a shadow that hangs holds nobody up, and nothing is left of it', async () => {
  await using old = await startEngine();
  await using next = await startEngine();
  next.script = (x) => x.hang();
  const config = configOf(
    old,
    { ...backendOf(next), timeouts: { firstByte: '1s', idle: '1s', total: '1s' } },
    {},
  );
  config['routes'].chat.shadow = [{ backend: 'next', percent: 100, compare: { by: 'exact' } }];
  await using armature = await startArmature(config);
  for (let i = 0; i < 30; i++) {
    const answer = await armature.chat({ stream: i % 2 === 0 });
    expect([answer.status, answer.header('x-armature-backend')]).toEqual([200, 'old']);
  }
  expect(old.posts).toHaveLength(30);
  await eventually('every copy has ended', async () => {
    const copies = await armature.metric('armature_shadow_total', { route: 'chat' });
    return copies === 30;
  });
  expect(await armature.metric('armature_shadow_compared_total', { outcome: 'alike' })).toBe(0);
  await armature.idle();
});
