import { describe, expect, it } from 'vitest';
import { type Armature, chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { type Answer, RawClient } from '../upstream/client.ts';
import { startEngine } from '../upstream/engine.ts';
import { chat, delayed, never } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** Three workers behind one address: together they keep what one alone keeps. */

const whole = { path: '/v1/chat/completions', body: chatBody() };
const stream = { path: '/v1/chat/completions', body: chatBody({ stream: true }) };

/** Which worker gave an answer: the digits of its id that each process draws for itself. */
const workerOf = (answer: Answer) =>
  /^[a-z]+_[0-9a-z]{9}([0-9a-z]{4})/.exec(answer.header('x-armature-id')!)![1]!;

async function allServe(armature: Armature): Promise<void> {
  const seen = new Set<string>();
  const look = async () =>
    seen.add(workerOf(await armature.ask({ method: 'GET', path: '/v1/models' }))).size === 3;
  await eventually('all three serve', look, 20_000);
}

const threeWorkers = (concurrency: number, queueMax = 512) => ({
  backend: { limits: { concurrency } },
  route: { queue: { max: queueMax } },
  top: { gateway: { workers: 3, drain: '20s' } },
});

describe('three workers', () => {
  it.each([1, 2, 7])(
    'together never exceed a limit of %i, use all of it, and answer everybody',
    async (limit) => {
      await using engine = await startEngine(delayed(5));
      await using armature = await startArmature(plainConfig(engine, threeWorkers(limit)));
      await allServe(armature);
      const answers = await Promise.all(
        Array.from({ length: 120 }, (_, i) => armature.ask(i % 2 ? whole : stream, 30_000)),
      );
      expect(answers.filter((answer) => answer.status !== 200).map(String)).toEqual([]);
      expect(new Set(answers.map(workerOf)).size).toBe(3);
      expect(engine.peak).toBe(limit);
      await armature.idle();
    },
  );

  it('take over the places of one that is killed', async () => {
    await using engine = await startEngine(never);
    await using armature = await startArmature(plainConfig(engine, threeWorkers(4)));
    await allServe(armature);
    using clients = new DisposableStack();
    for (let i = 0; i < 30; i++) clients.use(await RawClient.open(armature.gatewayPort)).request(whole);
    await engine.posted(4);
    armature.kill('gateway-0');
    armature.kill('gateway-2');
    clients.dispose();
    await eventually('nothing runs', () => engine.active === 0);
    engine.script = delayed(20);
    const count = engine.posts.length;
    const answers = await Promise.all(Array.from({ length: 12 }, () => armature.ask(whole, 20_000)));
    // A connection that one of the dead had not yet taken is lost with it; nothing else is.
    expect(
      answers.filter((answer) => answer.status !== 200 && answer.fault === undefined).map(String),
    ).toEqual([]);
    expect(engine.posts.length).toBeGreaterThan(count);
    expect(engine.peak).toBeLessThanOrEqual(4);
    await armature.idle();
  });

  it('change their settings under load without cutting or refusing anything', async () => {
    await using engine = await startEngine(chat(['a', 'b', 'c'], { gapMs: 10 }));
    await using other = await startEngine(chat(['a', 'b', 'c'], { gapMs: 10 }));
    await using armature = await startArmature(plainConfig(engine, threeWorkers(64)));
    await allServe(armature);
    let changing = true;
    const answers: Answer[] = [];
    const call = async () => {
      while (changing) answers.push(await armature.ask(stream));
    };
    const change = async () => {
      for (let round = 0; round < 6; round++) {
        const used = round % 2 ? engine : other;
        await armature.configure(plainConfig(used, threeWorkers(8 + round)));
        const count = used.posts.length;
        armature.kill('supervisor', 'SIGHUP');
        await eventually('the new engine is asked', () => used.posts.length > count + 5, 15_000);
      }
      changing = false;
    };
    await Promise.all([change(), ...Array.from({ length: 8 }, call)]);
    expect(answers.length).toBeGreaterThan(30);
    expect(answers.filter((answer) => !answer.done || answer.text !== 'abc').map(String)).toEqual([]);
    await armature.idle();
  });

  it('drain together', async () => {
    await using engine = await startEngine(chat(['a', 'b'], { gapMs: 150 }));
    await using armature = await startArmature(plainConfig(engine, threeWorkers(64)));
    await allServe(armature);
    using clients = new DisposableStack();
    const answers: Answer[] = [];
    for (let i = 0; i < 30; i++) {
      answers.push(clients.use(await RawClient.open(armature.gatewayPort)).request(stream));
    }
    await Promise.all(answers.map((answer) => answer.until((so) => so.events.length >= 1)));
    expect(await armature.stop(20_000)).toBe(0);
    for (const answer of answers) expect((await answer.whole()).done).toBe(true);
    expect(armature.parts()).toEqual([]);
  });
});
