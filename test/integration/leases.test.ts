import { expect, test } from 'vitest';
import { type Armature, chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { type Answer, RawClient } from '../upstream/client.ts';
import { type Script, startEngine } from '../upstream/engine.ts';
import { chatAnswer } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** Three workers share the hard cap of one endpoint; the engine counts how many requests it has at once. */

const CAP = 5;

/** Answers after a while, so that requests meet at the engine. */
function slowly(ms: number): Script {
  return async (x) => {
    await x.pause(ms);
    await x.json(chatAnswer());
  };
}

function capped(engine: Parameters<typeof plainConfig>[0], workers = 3, cap = CAP) {
  return plainConfig(engine, {
    top: { gateway: { workers } },
    backend: { limits: { concurrency: cap } },
    route: { queue: { max: 1000 } },
  });
}

/** `count` callers, each on a connection of its own, that ask one after the other until `until` says so. */
async function callers(armature: Armature, count: number, until: () => boolean): Promise<Answer[]> {
  const answers: Answer[] = [];
  const caller = async () => {
    while (!until()) {
      const client = await RawClient.open(armature.gatewayPort).catch(() => undefined);
      if (!client) continue;
      using open = client;
      const answer = open.request({ path: '/v1/chat/completions', body: chatBody() });
      answers.push(await answer.whole(20_000));
    }
  };
  await Promise.all(Array.from({ length: count }, caller));
  return answers;
}

async function workersSeen(armature: Armature): Promise<number> {
  const status = await armature.admin('/api/v1/status');
  return status.status === 200 ? status.json().workers.length : 0;
}

test('an endpoint never has more than its cap, and the cap is used, whichever workers are asked', async () => {
  await using engine = await startEngine(slowly(10));
  await using armature = await startArmature(capped(engine));
  await eventually('all workers are there', async () => (await workersSeen(armature)) === 3, 20_000);
  const answers = await callers(armature, 60, () => engine.posts.length > 600);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(engine.peak).toBe(CAP);
  await armature.idle();
});

test('the cap holds while control and workers die and come back', async () => {
  await using engine = await startEngine(slowly(20));
  await using armature = await startArmature(capped(engine));
  await eventually('all workers are there', async () => (await workersSeen(armature)) === 3, 20_000);
  let over = false;
  const asked = callers(armature, 40, () => over);
  const progress = async (more: number) => {
    const before = engine.posts.length;
    await eventually(`${more} more requests`, () => engine.posts.length >= before + more, 30_000);
  };
  await progress(100);
  armature.kill('control');
  await progress(100);
  armature.kill('gateway-1');
  await progress(100);
  armature.kill('control');
  await progress(100);
  over = true;
  await asked;
  expect(engine.peak).toBe(CAP);
  await armature.ready();
  await eventually('all workers are there', async () => (await workersSeen(armature)) === 3, 20_000);
  await armature.idle();
});

test('a single worker has the whole cap', async () => {
  await using engine = await startEngine(slowly(50));
  await using armature = await startArmature(capped(engine, 1));
  const answers = await callers(armature, 20, () => engine.posts.length >= 20);
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(engine.peak).toBe(CAP);
});

test('a single place goes round among three workers, so that every caller is answered', async () => {
  await using engine = await startEngine(slowly(2));
  await using armature = await startArmature(capped(engine, 3, 1));
  await eventually('all workers are there', async () => (await workersSeen(armature)) === 3, 20_000);
  const answers = await callers(armature, 30, () => engine.posts.length > 300);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(engine.peak).toBe(1);
  await armature.idle();
});
