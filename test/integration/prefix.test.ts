import { describe, expect, it } from 'vitest';
import { type Armature, plainConfig, startArmature } from '../upstream/armature.ts';
import { type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { chat, delayed } from '../upstream/scripts.ts';
import type { Json } from '../upstream/sse.ts';
import { eventually } from '../upstream/waiting.ts';

/** `affinity: prefix` over real sockets, with several workers that do not talk to each other. */

const WORKERS = 3;
/** What an endpoint may have from one worker before anything is known of it. */
const REQUESTS_FIRST = 20;
const route = { affinity: 'prefix' };
const longText = (name: string, words = 400) => `${name}: ${`lorem ${name} ipsum `.repeat(words)}`;

/** Which engine has had the newest request. */
async function placeOf(armature: Armature, engines: ScriptedEngine[], body: object): Promise<number> {
  const before = engines.map(({ posts }) => posts.length);
  expect((await armature.chat({ ...body })).status).toBe(200);
  return engines.findIndex(({ posts }, at) => posts.length > before[at]!);
}

const user = (content: string) => ({ role: 'user', content });

describe('in every worker', () => {
  it('what begins alike goes to one endpoint, and what does not is spread', async () => {
    await using one = await startEngine(chat());
    await using two = await startEngine(chat());
    await using three = await startEngine(chat());
    const engines = [one, two, three];
    const gateway = { workers: WORKERS };
    await using armature = await startArmature(plainConfig(engines, { route, top: { gateway } }));
    // The first request of each worker fetches its part of the limits, and looks past endpoints whose part comes last.
    await eventually('all workers may use all endpoints', async () => {
      expect((await armature.chat()).status).toBe(200);
      const { backends } = (await armature.admin('/api/v1/status')).json();
      return backends[0].endpoints.every(({ limit }: Json) => limit === WORKERS * REQUESTS_FIRST);
    });

    const used = new Set<number>();
    for (let document = 0; document < 8; document++) {
      const text = longText(`document ${document}`);
      const places = new Set<number>();
      for (let question = 0; question < 6; question++) {
        const messages = [user(`${text}question ${question}`)];
        places.add(await placeOf(armature, engines, { messages, stream: question % 2 === 0 }));
      }
      expect(places.size).toBe(1);
      used.add([...places][0]!);
    }
    expect(used.size).toBeGreaterThan(1);

    for (let conversation = 0; conversation < 4; conversation++) {
      const messages = [user(longText(`conversation ${conversation}`, 40))];
      const places = new Set<number>();
      for (let turn = 0; turn < 8; turn++) {
        places.add(await placeOf(armature, engines, { messages }));
        messages.push({ role: 'assistant', content: longText(`answer ${turn}`, 20) }, user(`and ${turn}?`));
      }
      expect(places.size).toBe(1);
    }

    const short = new Set<number>();
    for (let i = 0; i < 30; i++) short.add(await placeOf(armature, engines, { messages: [user('Hi')] }));
    expect(short.size).toBe(3);
  });
});

it('past a load gap the others help, and nobody waits for the endpoint that has the beginning', async () => {
  await using one = await startEngine(delayed(500, chat()));
  await using two = await startEngine(delayed(500, chat()));
  await using armature = await startArmature(plainConfig([one, two], { route }));
  const text = longText('shared');
  const ask = (i: number) => armature.chat({ messages: [user(`${text}${i}`)] });
  expect((await ask(0)).status).toBe(200);
  const before = [one.posts.length, two.posts.length];
  const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(i + 1)));
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  const counts = [one.posts.length - before[0]!, two.posts.length - before[1]!];
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(10);
});
