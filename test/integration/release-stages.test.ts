import { expect, test } from 'vitest';
import { backendOf, startArmature } from '../upstream/armature.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chat } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';
import { begin, releaseIs } from './releases.ts';

/** Says its own name around what it was asked. */
const around =
  (name: string): Script =>
  async (x) =>
    chat([`${name}(`, x.request.json().messages.at(-1).content, ')'])(x);

const STAGES = {
  first: { route: 'chat', input: '{{ request.text }}' },
  answer: { route: 'chat', after: ['first'], input: '{{ first }}' },
};
const RELEASE = {
  plan: [50, 100],
  step: { sessionsMin: 1_000_000 },
  metrics: ['errors'],
  deadline: '6h',
};

test('stages of a route under release are of the arm of their session, and an abort brings them back without an error', async () => {
  await using old = await startEngine(around('old'));
  await using next = await startEngine(around('next'));
  await using armature = await startArmature({
    backends: { old: backendOf(old), next: backendOf(next) },
    routes: { chat: { targets: [{ backend: 'old' }], deadline: '20s', release: RELEASE } },
    pipelines: { search: { deadline: '20s', stages: STAGES } },
  });
  const said = async (session: number): Promise<string> => {
    const messages = [{ role: 'user', content: 'Q' }];
    const answer = await armature.chat({ model: 'search', messages }, [
      ['x-armature-session', `session-${session}`],
    ]);
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.content.toString()}`);
    return answer.json().choices[0].message.content;
  };
  const sessions = Array.from({ length: 24 }, (_, i) => i);
  await begin(armature);
  await releaseIs(armature, 'the canary answers', ({ share }) => share === 0.5);
  const seen = await Promise.all(sessions.map(said));
  expect(new Set(seen)).toEqual(new Set(['old(old(Q))', 'next(next(Q))']));
  for (let round = 0; round < 3; round++) expect(await Promise.all(sessions.map(said))).toEqual(seen);
  const counted = await releaseIs(
    armature,
    'every stage is counted',
    ({ arms }) => arms.canary.requests + arms.baseline.requests === 2 * 4 * sessions.length,
  );
  expect(counted.arms.canary).toMatchObject({
    requests: 2 * 4 * seen.filter((text) => text.startsWith('next')).length,
    failed: 0,
  });

  // Callers go on asking while it is aborted: none of them fails, whatever stage it was in.
  let going = true;
  let answers = 0;
  const callers = sessions.map(async (session) => {
    while (going) {
      expect(await said(session)).toMatch(/^(old|next)\((old|next)\(Q\)\)$/);
      answers++;
    }
  });
  await eventually('callers are answered', () => answers > sessions.length);
  const { stdout } = await armature.run('release', 'abort', 'chat', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ done: true, release: { state: 'rolled-back' } });
  going = false;
  await Promise.all(callers);
  expect(new Set(await Promise.all(sessions.map(said)))).toEqual(new Set(['old(old(Q))']));
  await armature.idle();
});
