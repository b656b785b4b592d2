import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Armature, chatBody, plainConfig, startArmature } from '../upstream/armature.ts';
import { startEngine } from '../upstream/engine.ts';
import { eventually } from '../upstream/waiting.ts';

const put = (armature: Armature, body: unknown) => {
  const token = readFileSync(join(armature.data, 'run/admin.token'), 'utf8').trim();
  return armature.admin('/api/v1/config', {
    method: 'PUT',
    body,
    headers: [['authorization', `Bearer ${token}`]],
  });
};

test('a running Armature takes another number of workers, other routes and a file that was edited, and loses no request', async () => {
  await using engine = await startEngine();
  await using armature = await startArmature(plainConfig(engine));
  const config = readFileSync(armature.file, 'utf8');
  let failed = 0;
  let asked = 0;
  let going = true;
  const load = (async () => {
    while (going) {
      asked++;
      if ((await armature.chat()).status !== 200) failed++;
    }
  })();

  expect((await put(armature, { gateway: { workers: 3 } })).status).toBe(200);
  const workers = () => armature.parts().filter(({ part }) => part.startsWith('gateway-')).length;
  await eventually('three workers', () => workers() === 3, 15_000);
  expect((await put(armature, { gateway: { workers: null } })).status).toBe(200);
  await eventually('one worker', () => workers() === 1, 15_000);

  writeFileSync(armature.file, config.replace('  chat:', '  more:\n    targets: [{ backend: b1 }]\n  chat:'));
  armature.kill('supervisor', 'SIGHUP');
  const more = () => armature.ask({ path: '/v1/chat/completions', body: chatBody({ model: 'more' }) });
  await eventually('the new route', async () => (await more()).status === 200);
  writeFileSync(armature.file, 'routes: [broken');
  armature.kill('supervisor', 'SIGHUP');
  await eventually('the refusal', async () => (await armature.events('configuration-refused')).length === 1);
  expect((await more()).status).toBe(200);

  going = false;
  await load;
  expect([failed, asked > 20]).toEqual([0, true]);
  expect(await armature.metric('armature_requests_total', { outcome: 'ok', route: 'chat' })).toBe(asked);
});
