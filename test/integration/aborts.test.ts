import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { RawClient } from '../upstream/client.ts';
import { nowMs, type Script, startEngine } from '../upstream/engine.ts';
import { answerByPath, chat, endless, headOnly, never } from '../upstream/scripts.ts';

const ABORTS = 10_000;
const AT_ONCE = 40;

const scripts: Record<string, Script> = {
  endless: endless(2),
  answering: chat(['a', 'b'], { gapMs: 1 }),
  never,
  headOnly,
};
/** Those that give content, so that a caller can leave in the middle of it. */
const TALKING = ['endless', 'answering'];

describe('callers that leave', () => {
  it(`at ${ABORTS} random moments leave nothing behind`, { timeout: 180_000 }, async () => {
    const random = seededRandom(7);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;
    const arrived = new Map<string, () => void>();
    const cancelledMs: number[] = [];
    const leftAtMs = new Map<string, number>();

    await using engine = await startEngine(async (x) => {
      const name: string = x.request.json().messages[0].content;
      arrived.get(name)?.();
      try {
        await scripts[name.split(' ')[0]!]!(x);
      } finally {
        engine.requests.splice(engine.requests.indexOf(x.request), 1);
        if (x.gone) cancelledMs.push(x.request.goneAtMs! - leftAtMs.get(name)!);
        leftAtMs.delete(name);
        arrived.delete(name);
      }
    });
    const backend = { limits: { concurrency: 1000 } };
    await using armature = await startArmature(plainConfig(engine, { backend }), {
      env: { NODE_OPTIONS: '--inspect-port=0' },
    });
    const inspector = await armature.inspect('gateway-0');

    let number = 0;
    const leaver = async () => {
      const kind = pick(Object.keys(scripts));
      const name = `${kind} ${number++}`;
      const received = new Promise<void>((resolve) => arrived.set(name, resolve));
      const body = chatBody({ stream: random.next() < 0.8, messages: [{ role: 'user', content: name }] });
      using client = await RawClient.open(armature.gatewayPort);
      const answer = client.request({ path: '/v1/chat/completions', body });
      const moment = pick(['at once', 'received', 'answered']);
      if (moment === 'received') await received;
      if (moment === 'answered' && body.stream && TALKING.includes(kind)) {
        const events = 1 + Math.floor(random.next() * 3);
        await answer.until((so) => so.events.length >= events);
      }
      leftAtMs.set(name, nowMs());
      client.leave(pick(['fin', 'reset']));
    };
    const leave = async (count: number) => {
      for (let left = count; left > 0; left -= AT_ONCE) {
        await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, leaver));
      }
      await armature.idle(10_000);
    };
    const level = async () => ({ sockets: armature.sockets(), heapBytes: await inspector.heapBytes() });

    await leave(1000);
    const before = await level();
    cancelledMs.length = 0;
    await leave(ABORTS);
    const after = await level();

    expect(engine.active).toBe(0);
    // A pool may keep some connections to the engine for the next request.
    expect(after.sockets).toBeLessThanOrEqual(before.sockets + AT_ONCE);
    expect(after.heapBytes).toBeLessThan(before.heapBytes + 2 * 2 ** 20);
    cancelledMs.sort((a, b) => a - b);
    expect(cancelledMs.length).toBeGreaterThan(ABORTS / 4);
    expect(cancelledMs[Math.floor(cancelledMs.length * 0.99)]).toBeLessThan(50);
    engine.script = answerByPath;
    expect((await armature.chat()).status).toBe(200);
  });
});
