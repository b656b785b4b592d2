import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gguf, safetensors } from '../../../test/registry/model-files.ts';
import { last, RegistryWorld } from '../../../test/registry/registry-world.ts';
import { ArtifactError } from './artifacts/index.ts';
import { differences } from './difference.ts';
import { readReference, writeReference } from './reference.ts';

/** The registry over a store in memory and directories, with what goes wrong in the middle. */

const DAY_MS = 24 * 3600 * 1000;

let world: RegistryWorld;
beforeEach(() => {
  world = new RegistryWorld();
});
afterEach(() => rmSync(world.folder, { recursive: true }));

const weights = gguf({ 'general.file_type': 15 });

describe('moving content', () => {
  test('what a version that was added meanwhile has stays live', async () => {
    const version = await world.version('m', weights);
    const { changeState } = world.store.registry;
    // Between the copy and the word that it is archived another version comes to have the same.
    world.store.registry.changeState = async (change, event) => {
      await world.version('m', weights);
      await changeState(change, event);
    };
    await last(await world.registry.archive(version, 'operator'));
    const [other] = await world.store.registry.versions('m', 1);
    expect([other?.number, other?.state]).toEqual([2, 'live']);
    expect(await last(world.registry.content.verify(other!, 'operator'))).toMatchObject({ ok: true });
    expect(world.files('live')).toHaveLength(1);
  });

  test('an archive without room leaves the version as it was, and nothing half-kept', async () => {
    const version = await world.version('m', weights, Buffer.from('a text'));
    let puts = 0;
    world.beforePut = () => {
      if (++puts === 2) throw new ArtifactError('full', 'there is no room left');
    };
    await expect(last(await world.registry.archive(version, 'operator'))).rejects.toThrow('no room left');
    const found = await world.store.registry.version('m', 1);
    expect(found?.state).toBe('live');
    expect(world.files('moving')).toEqual([]);
    expect(await last(world.registry.content.verify(found!, 'operator'))).toMatchObject({ ok: true });
    world.beforePut = () => {};
    expect(await last(await world.registry.archive(found!, 'operator'))).toMatchObject({ moved: 2 });
    expect(world.files('live')).toEqual([]);
  });

  test('a reader that leaves in the middle stops it', async () => {
    const bytes = 8 * 2 ** 20;
    const large = safetensors(
      { w: { dtype: 'U8', shape: [bytes], data_offsets: [0, bytes] } },
      Buffer.alloc(bytes),
    );
    const version = await world.version('m', large, Buffer.from('a text'));
    const steps = await world.registry.archive(version, 'operator');
    await steps.next();
    await steps.return(undefined as never);
    // It waits for what was under way.
    expect(await last(world.registry.content.verify(version, 'operator'))).toMatchObject({ ok: true });
    expect((await world.store.registry.version('m', 1))?.state).toBe('live');
    expect([...world.files('moving'), ...world.files('archive')]).toEqual([]);
  });

  test('what was damaged in the archive is not brought back', async () => {
    const version = await world.version('m', weights);
    await last(await world.registry.archive(version, 'operator'));
    const [place] = world.files('archive');
    const bytes = readFileSync(place!);
    bytes[bytes.length - 3]! ^= 0xff;
    writeFileSync(place!, bytes);
    const archived = (await world.store.registry.version('m', 1))!;
    const restored = Promise.resolve().then(() => last(world.registry.restore(archived, 'operator')));
    await expect(restored).rejects.toMatchObject({ trouble: 'damaged' });
    expect((await world.store.registry.version('m', 1))?.state).toBe('archived');
    expect(world.files('live')).toEqual([]);
    expect(await last(world.registry.content.verify(archived, 'operator'))).toMatchObject({
      ok: false,
      damaged: [{ trouble: 'damaged' }],
    });
  });
});

describe('what is not as it was', () => {
  const spoil = {
    missing: (place: string) => rmSync(place),
    damaged: (place: string) => writeFileSync(place, readFileSync(place).fill(0, 8)),
  };

  test.each(['missing', 'damaged'] as const)(
    '%s, it is in no new version before it came in again',
    async (how) => {
      const version = await world.version('m', weights);
      const [{ sha256 } = { sha256: '' }] = version.files;
      spoil[how](world.files('live')[0]!);
      expect(await last(world.registry.content.verify(version, 'operator'))).toMatchObject({
        ok: false,
        damaged: [{ trouble: how }],
      });
      const manifest = { training: { unknown: 'made for a test' } };
      const asked = { model: 'n', manifest, files: [{ path: 'w', sha256 }], allowPickle: false };
      await expect(world.registry.add(asked, 'operator')).rejects.toThrow('has not come in');
      expect(await world.registry.content.state(sha256)).toEqual({ sha256, bytes: 0, kept: false });
      await world.bring(weights);
      expect(await last(world.registry.content.verify(version, 'operator'))).toMatchObject({ ok: true });
      expect(await world.registry.add(asked, 'operator')).toMatchObject({ number: 1 });
    },
  );
});

test.each(['../w', '/w', 'a/../../w', './w', 'a/.', 'a\\w', 'a\n/../w', ''])(
  'a file does not lie at %j',
  async (path) => {
    const sha256 = await world.bring(weights);
    const manifest = { training: { unknown: 'made for a test' } };
    const asked = { model: 'm', manifest, files: [{ path, sha256 }], allowPickle: false };
    await expect(world.registry.add(asked, 'operator')).rejects.toThrow('paths are relative');
    expect(await world.store.registry.versions('m', 1)).toEqual([]);
  },
);

describe('content that comes in', () => {
  test('finds no room: it is told, what was there stays, and it goes on from there', async () => {
    const content = Buffer.from('{"a": "text"}');
    const sha256 = createHash('sha256').update(content).digest('hex');
    world.beforePut = () => {
      throw new ArtifactError('full', 'there is no room left');
    };
    await world.registry.content.add(sha256, 0, content);
    await expect(last(world.registry.content.finish(sha256))).rejects.toMatchObject({ trouble: 'full' });
    expect(await world.registry.content.state(sha256)).toMatchObject({ bytes: content.length, kept: false });
    world.beforePut = () => {};
    expect(await last(world.registry.content.finish(sha256))).toMatchObject({ kept: true });
    expect(world.files('incoming')).toEqual([]);
  });

  test('and that no version takes is removed after a week; what a version has stays', async () => {
    await world.bring(Buffer.from('nobody takes this'));
    await world.version('m', weights);
    await world.time.advance(6 * DAY_MS);
    await world.bring(Buffer.from('later'));
    expect(world.files('live')).toHaveLength(3);
    await world.time.advance(2 * DAY_MS);
    await world.bring(Buffer.from('later still'));
    expect(world.files('live')).toHaveLength(3);
    expect(
      (await world.store.registry.usersOf(createHash('sha256').update(weights).digest('hex'))).length,
    ).toBe(1);
  });

  test('by two at once is taken once', async () => {
    const content = Buffer.from('two bring this');
    const sha256 = createHash('sha256').update(content).digest('hex');
    const both = [1, 2].map(async () => {
      await world.registry.content.add(sha256, 0, content);
      return last(world.registry.content.finish(sha256));
    });
    expect(await Promise.all(both)).toMatchObject([{ kept: true }, { kept: true }]);
  });
});

test('events of moves at one time tell one after the other where the alias led', async () => {
  for (let count = 0; count < 3; count++) await world.version('m', weights);
  const move = (to: number) => world.registry.moveAlias({ model: 'm', alias: 'live', to }, 'operator');
  await Promise.all([move(1), move(2), move(3)]);
  const events = await world.store.ledger.events({ order: 'asc', limit: 100 });
  const moves = events.map(({ event }) => event).filter(({ type }) => type === 'alias-moved');
  expect(moves.map(({ data }) => [data?.['from'], data?.['to']])).toEqual([
    [undefined, 1],
    [1, 2],
    [2, 3],
  ]);
});

test('trap 34: references are read as a number or as an alias, never as both', () => {
  expect(readReference('m@3')).toEqual({ model: 'm', number: 3 });
  expect(readReference('m@three')).toEqual({ model: 'm', alias: 'three' });
  for (const text of ['m', 'm@', '@3', 'm@03', 'm@3x', 'm@-1', 'a/b@1', `${'x'.repeat(101)}@1`])
    expect(readReference(text)).toBeUndefined();
  for (const text of ['m@3', 'm@three']) expect(writeReference(readReference(text)!)).toBe(text);
});

test('differences are told by path, whatever the order of what has names', () => {
  const file = (path: string, sha256: string) => ({ path, sha256 });
  const before = {
    engine: { name: 'vllm', version: '1' },
    files: [file('a', '1'), file('b', '2')],
    evaluations: [{ name: 'x', metric: 'm', value: 1 }],
    decisions: ['dec_1'],
  };
  const after = {
    engine: { version: '2', name: 'vllm' },
    files: [file('b', '2'), file('a', '9')],
    evaluations: [{ name: 'x', metric: 'm', value: 2 }],
    driver: '580',
    decisions: ['dec_1'],
  };
  expect(differences(before, after)).toEqual([
    { path: 'engine.version', before: '1', after: '2' },
    { path: 'files.a.sha256', before: '1', after: '9' },
    { path: 'evaluations.x/m.value', before: 1, after: 2 },
    { path: 'driver', after: '580' },
  ]);
  expect(differences(after, after)).toEqual([]);
});
