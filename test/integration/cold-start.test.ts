import { describe, expect, test } from 'vitest';
import type { Status } from '../../src/api/contracts.ts';
import { Armature, type Config, chatBody } from '../upstream/armature.ts';
import { type Answer, RawClient } from '../upstream/client.ts';
import { eventually } from '../upstream/waiting.ts';

/** Hosts of ours that start, stop for want of requests, die, and are replaced: with the processes there really are. */

const profile = {
  coldStart: '800ms',
  decodeTokensPerSecond: 2000,
  batchMax: 256,
  kvTokensMax: 1_000_000,
};

function config(near: Config = {}, gateway: Config = {}, route: Config = {}): Config {
  return {
    gateway,
    backends: { near: { engine: 'sim', profile, limits: { concurrency: 256 }, ...near } },
    routes: { chat: { targets: [{ backend: 'near' }], deadline: '20s', ...route } },
  };
}

async function started(settings: Config): Promise<Armature> {
  const armature = new Armature({});
  await armature.configure(settings);
  await armature.up();
  return armature;
}

async function hostState(armature: Armature): Promise<string | undefined> {
  const status: Status = (await armature.admin('/api/v1/status')).json();
  return status.backends.find(({ backend }) => backend === 'near')?.host?.state;
}

const hostPids = (armature: Armature) =>
  armature.parts().flatMap(({ part, pid }) => (part === 'host-near' ? [pid] : []));
const ready = async (armature: Armature) =>
  (await armature.ask({ method: 'GET', path: '/readyz?route=chat' })).status;
const isIdle = (armature: Armature) =>
  eventually(
    'the host has been stopped',
    async () => hostPids(armature).length === 0 && (await hostState(armature)) === 'idle',
    20_000,
  );

function many(armature: Armature, count: number): Promise<Answer[]> {
  return Promise.all(Array.from({ length: count }, () => armature.chat({ max_tokens: 3 }, [], 25_000)));
}

const statusesOf = (answers: Answer[]) => answers.map(({ status }) => status);

test('callers are held while a host starts; the next start is known, and who has no time for it is told so', async () => {
  await using armature = await started(config({ profile: { ...profile, coldStart: '4s' } }));
  expect(await ready(armature)).toBe(503);
  expect(await hostState(armature)).toBe('starting');
  const first = await many(armature, 8);
  expect(statusesOf(first)).toEqual(new Array(8).fill(200));
  expect(await ready(armature)).toBe(200);
  const steps = JSON.stringify((await armature.why(first[0]!.header('x-armature-id')!)).steps);
  expect(steps).toContain('held-for-start');
  const [event] = await armature.events('host-ready');
  // The start of the process is part of it.
  expect(event.data.tookMs).toBeGreaterThan(4020);

  await armature.stop();
  await armature.up();
  const late = await armature.chat({}, [['x-armature-deadline-ms', '100']]);
  expect([late.status, late.error?.code, late.header('retry-after')]).toEqual([
    503,
    'overloaded',
    expect.stringMatching(/^[1-9]$/),
  ]);
  expect(JSON.stringify((await armature.why(late.header('x-armature-id')!)).steps)).toContain(
    'start-too-long',
  );
  expect((await armature.chat({ max_tokens: 3 }, [], 25_000)).status).toBe(200);
  await armature.idle();
}, 60_000);

describe('a host that nobody asks for', { timeout: 90_000 }, () => {
  const idling = (gateway: Config = {}) => config({ host: { idleStop: '400ms' } }, gateway);

  test('is stopped, and woken once by the many who come next, losing nobody', async () => {
    await using armature = await started(idling({ workers: 2 }));
    await many(armature, 1);
    await isIdle(armature);
    expect(await ready(armature)).toBe(200);
    expect((await armature.run('status')).stdout).toMatch(/near .* idle/);
    const answers = await many(armature, 20);
    expect(statusesOf(answers)).toEqual(new Array(20).fill(200));
    const woken = await armature.events('host-woken');
    expect(woken).toHaveLength(1);
    const [stopped] = await armature.events('host-idle-stopped');
    expect(woken[0].causes).toContain(stopped.id);
    const ids = answers.map((answer) => answer.header('x-armature-id'));
    expect(ids).toContain(woken[0].data.request);
    const why = await armature.why(woken[0].id);
    expect(why.steps.map(({ code }: { code: string }) => code)).toEqual(
      expect.arrayContaining(['host-woken', 'host-idle-stopped']),
    );
    await isIdle(armature);
    await armature.idle();
  });

  test('loses nobody when requests come just as it is stopped, again and again', async () => {
    await using armature = await started(idling());
    await many(armature, 1);
    const statuses: number[] = [];
    let stops = 0;
    for (let turn = 0; turn < 6; turn++) {
      const before = stops;
      await eventually(
        'it is being stopped',
        async () => {
          stops = (await armature.events('host-idle-stopped')).length;
          return stops > before;
        },
        20_000,
      );
      statuses.push(...statusesOf(await many(armature, 3)));
    }
    expect(statuses).toEqual(new Array(18).fill(200));
    await armature.idle();
  });

  test('runs on while a stream goes on, however long', async () => {
    await using armature = await started(
      config({ host: { idleStop: '300ms' }, profile: { ...profile, decodeTokensPerSecond: 20 } }),
    );
    using client = await RawClient.open(armature.gatewayPort);
    const long = client.request({
      path: '/v1/chat/completions',
      body: chatBody({ stream: true, max_tokens: 60 }),
    });
    await long.until((so) => so.events.length >= 20, 20_000);
    expect(await armature.events('host-idle-stopped')).toEqual([]);
    await long.whole(20_000);
    expect(long.done).toBe(true);
    await isIdle(armature);
  });

  test('stays stopped over the death of control, and is woken by the next request all the same', async () => {
    await using armature = await started(idling());
    await many(armature, 1);
    await isIdle(armature);
    const dead = armature.kill('control');
    const held = many(armature, 4);
    await eventually(
      'control is back',
      () => armature.parts().some(({ part, pid }) => part === 'control' && pid !== dead),
      15_000,
    );
    expect(statusesOf(await held)).toEqual(new Array(4).fill(200));
    await isIdle(armature);
    const again = armature.kill('control');
    await eventually(
      'control is back',
      () => armature.parts().some(({ part, pid }) => part === 'control' && pid !== again),
      15_000,
    );
    await eventually(
      'it answers',
      async () => (await armature.admin('/api/v1/status')).status === 200,
      15_000,
    );
    expect([hostPids(armature), await hostState(armature)]).toEqual([[], 'idle']);
    expect(statusesOf(await many(armature, 4))).toEqual(new Array(4).fill(200));
  });
});
