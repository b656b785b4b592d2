import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { backendOf, chatBody, startArmature } from '../upstream/armature.ts';
import { type Answer, RawClient } from '../upstream/client.ts';
import { nowMs, type Script, startEngine } from '../upstream/engine.ts';
import {
  answerByPath,
  chat,
  chunk,
  cutStream,
  delayed,
  failWith,
  headOnly,
  never,
  nonsense,
  reset,
} from '../upstream/scripts.ts';
import { pause } from '../upstream/waiting.ts';

const SEED = 20_261_130;
const REQUESTS = 2500;
const AT_ONCE = 32;
const DEADLINE_MS = 800;

const bigEvent: Script = async (x) => {
  await x.sseHead();
  await x.event(chunk({ content: 'x'.repeat(200_000) }));
  await x.event(chunk({}, 'stop'));
  await x.event('[DONE]');
  await x.end();
};
const errorEvent: Script = async (x) => {
  await x.sseHead();
  await x.event(chunk({ role: 'assistant', content: '' }));
  await x.event({ error: { message: 'out of memory', type: 'x', param: null, code: null } });
  await x.end();
};
const page: Script = (x) => x.whole(Buffer.from('<html>'), 200, [['Content-Type', 'text/html']]);

const well = [answerByPath, delayed(30), chat(['a', 'b', 'c'], { gapMs: 5 }), failWith(400)];
const ill = [
  failWith(500),
  reset,
  nonsense,
  never,
  headOnly,
  cutStream(['one ', 'two '], 'fin'),
  cutStream(['one '], 'reset'),
  bigEvent,
  errorEvent,
  page,
];
const busy = [failWith(503, [['Retry-After', '1']]), failWith(429)];

/** Why an answer is none that a caller can work with; undefined for a sound one. */
function whatIsWrong(answer: Answer, stream: boolean): string | undefined {
  if (answer.fault !== undefined) return `it broke off: ${answer.fault}`;
  if (answer.status === 200) {
    if (!answer.isStream)
      return answer.json().choices || answer.json().outputs ? undefined : 'no answer in it';
    if (!stream) return undefined; // an engine that streams without being asked is passed on
    const ends = [answer.done, answer.error !== undefined].filter(Boolean).length;
    return ends === 1 ? undefined : `${ends} ends`;
  }
  const { error } = answer.json();
  if (typeof (error?.message ?? error) !== 'string') return 'no reason';
  const wait = answer.header('retry-after');
  if ((answer.status === 429 || answer.status === 503) && !(Number(wait) >= 1)) return `retry-after ${wait}`;
  return [400, 429, 502, 503, 504].includes(answer.status) ? undefined : `status ${answer.status}`;
}

describe(`engines and callers that do anything (seed ${SEED})`, { timeout: 120_000 }, () => {
  it('get sound answers in time, within the limits, and nothing stays', async () => {
    const random = seededRandom(SEED);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random.next() * list.length)]!;
    await using stack = new AsyncDisposableStack();
    const behave: Script = (x) => {
      const mood = random.next();
      return pick(mood < 0.8 ? well : mood < 0.998 ? ill : busy)(x);
    };
    const engines = await Promise.all([1, 2, 3].map(() => startEngine(behave)));
    for (const engine of engines) stack.use(engine);
    const limits = { concurrency: 6 };
    const timeouts = { firstByte: '300ms', idle: '300ms', total: '5s' };
    const armature = stack.use(
      await startArmature({
        backends: {
          b1: backendOf(engines.slice(0, 2), { limits, timeouts }),
          b2: backendOf(engines.slice(2), { limits, timeouts }),
          t1: backendOf(engines.slice(2), { engine: 'oip', limits, timeouts }),
        },
        routes: {
          chat: { targets: [{ backend: 'b1' }], ladder: [{ backend: 'b2' }], queue: { max: 8 } },
          tensor: { targets: [{ backend: 't1' }], queue: { max: 8 } },
        },
      }),
    );
    const wrong: string[] = [];
    const statuses: number[] = [];
    let sent = 0;
    const call = async () => {
      const stream = random.next() < 0.6;
      const tensors = random.next() < 0.2;
      const request = tensors
        ? {
            path: '/v2/models/tensor/infer',
            body: { inputs: [{ name: 'x', datatype: 'FP32', shape: [1], data: [1] }] },
          }
        : { path: '/v1/chat/completions', body: chatBody({ stream }) };
      using client = await RawClient.open(armature.gatewayPort);
      sent++;
      const startedAtMs = nowMs();
      const headers = [['x-armature-deadline-ms', String(DEADLINE_MS)]] as const;
      const answer = client.request({ ...request, headers });
      if (random.next() < 0.15) {
        await pause(random.next() * 100);
        client.leave(pick(['fin', 'reset']));
        return;
      }
      await answer.whole(10_000);
      statuses.push(answer.status);
      if (answer.status === 503) await pause(50); // less than it was told to wait, as callers are
      const fault = whatIsWrong(answer, stream && !tensors);
      if (fault !== undefined) wrong.push(`${fault}: ${JSON.stringify(request.body)} ${answer}`);
      // The deadline rules until the first content, the idle timeout after it.
      if (nowMs() - startedAtMs > DEADLINE_MS + 3000)
        wrong.push(`took ${nowMs() - startedAtMs} ms: ${answer}`);
    };
    const caller = async () => {
      while (sent < REQUESTS) await call();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, caller));

    expect(wrong.slice(0, 5)).toEqual([]);
    // Fences and pauses may refuse some; a gateway that refuses most shows nothing here.
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(statuses.length / 4);
    await armature.idle(10_000);
    // The third engine is an endpoint of two backends, each with a limit of its own.
    expect(engines.map((engine, i) => engine.peak <= limits.concurrency * (i === 2 ? 2 : 1))).toEqual([
      true,
      true,
      true,
    ]);
    const counted = await armature.metric('armature_requests_total');
    expect(counted).toBeGreaterThanOrEqual(statuses.length);
    expect(counted).toBeLessThanOrEqual(sent);
    expect(
      armature
        .parts()
        .map(({ part }) => part)
        .sort(),
    ).toEqual(['control', 'gateway-0', 'supervisor']);
    expect(armature.logs).not.toMatch(/"level":"(error|fatal)"/);
  });
});
