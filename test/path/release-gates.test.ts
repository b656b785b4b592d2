import { expect, test } from 'vitest';
import { CanaryMachine } from '../../src/releases/canary/machine.ts';
import type { Gate, GateAsked, GateVerdict } from '../../src/releases/contracts.ts';
import { FILE, type File, ReleaseWorld } from './release-control-world.ts';

/** What a canary has to pass before callers meet it, as control asks for it. */

const failed: GateVerdict = { passed: false, reason: { code: 'x', figures: {} }, event: 'ev_certificate' };

test('a gate is asked again where it cannot say, and ends the release where it fails', async () => {
  let count = 0;
  const pass = async () => {
    if (++count === 1) throw new Error('not now');
    return failed;
  };
  const gate: Gate = { name: 'parity', applies: ({ backend }) => backend === 'next', pass };
  using world = new ReleaseWorld({ gates: [gate] });
  await world.start();
  const { id } = await world.begin();
  expect(await world.surface.release(id)).toMatchObject({ gates: { parity: 'open' } });
  await world.time.advance(31_000);
  expect(await world.surface.release(id)).toMatchObject({
    state: 'rolled-back',
    last: { code: 'release-gate-failed' },
  });
  const [decided] = await world.events('release-decided');
  expect(decided?.causes).toContain('ev_certificate');
});

test('the load is that of the release, whoever asked for it and whatever the file says later', async () => {
  const asked: GateAsked[] = [];
  const pass = (of: GateAsked) => {
    asked.push(of);
    return new Promise<never>(() => undefined);
  };
  const gate: Gate = { name: 'stress', applies: ({ stress }) => stress !== undefined, pass };
  using world = new ReleaseWorld({ gates: [gate] });
  await world.start();
  await world.begin('next', { stress: { rate: '20/s', duration: '30s' } });
  world.kill();
  const file = structuredClone(FILE) as unknown as File;
  Object.assign(file.routes['chat']!['release']!, { stress: { concurrency: 4 } });
  world.write(file);
  await world.start();
  const load = { rate: { amount: 20, perSeconds: 1 }, duration: 30_000 };
  expect(asked).toMatchObject([{ stress: load }, { stress: load }]);
});

test('a phase of its own deadline ends there, also where control was away then', async () => {
  const gate: Gate = { name: 'parity', applies: () => true, pass: () => new Promise<never>(() => undefined) };
  using world = new ReleaseWorld({ machines: CanaryMachine, gates: [gate] });
  await world.start();
  const { id } = await world.begin('next', { phases: { gates: '1h' }, deadline: '24h' });
  const until = new Date(world.time.wall() + 3_600_000).toISOString();
  expect(await world.surface.release(id)).toMatchObject({ phase: 'gates', phaseEndsAt: until });
  await world.time.advance(3_000_000);
  expect(await world.surface.release(id)).toMatchObject({ state: 'running' });
  world.kill();
  await world.time.advance(900_000);
  await world.start();
  await world.time.advance(31_000);
  expect(await world.surface.release(id)).toMatchObject({
    state: 'rolled-back',
    last: { code: 'release-deadline-passed' },
  });
});
