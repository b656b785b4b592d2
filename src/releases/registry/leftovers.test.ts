import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gguf } from '../../../test/registry/model-files.ts';
import { last, RegistryWorld } from '../../../test/registry/registry-world.ts';
import { ArtifactError } from './artifacts/index.ts';

let world: RegistryWorld;
beforeEach(() => {
  world = new RegistryWorld();
});
afterEach(() => rmSync(world.folder, { recursive: true }));

const weights = gguf({ 'general.file_type': 15 });

describe('a death in the middle leaves no copy that nothing names', () => {
  /** Control dies where it would do this: what it waits for never comes. */
  const died = new Promise<void>(() => {});
  const dies = (at: 'beforePut' | 'beforeRemove', done = (_key: string) => true) =>
    new Promise<void>((resolve) => {
      world[at] = (key) => {
        if (!done(key)) return;
        resolve();
        return died;
      };
    });

  test('of a version that was removed', async () => {
    const version = await world.version('m', weights, Buffer.from('a text'));
    const death = dies('beforeRemove');
    void world.registry.remove(version, 'operator');
    await death;
    expect(world.files('live')).toHaveLength(2);
    world.restart();
    await world.registry.content.tidy();
    expect(world.files('live')).toEqual([]);
    expect(await world.store.registry.leftovers(9)).toEqual([]);
  });

  test('of a version that was archived, or brought back', async () => {
    const version = await world.version('m', weights);
    let death = dies('beforeRemove');
    void last(await world.registry.archive(version, 'operator'));
    await death;
    expect([world.files('live').length, world.files('archive').length]).toEqual([1, 1]);
    world.restart();
    await world.registry.content.tidy();
    expect([world.files('live').length, world.files('archive').length]).toEqual([0, 1]);
    const archived = (await world.store.registry.version('m', 1))!;
    death = dies('beforeRemove');
    void last(world.registry.restore(archived, 'operator'));
    await death;
    world.restart();
    await world.registry.content.tidy();
    expect([world.files('live').length, world.files('archive').length]).toEqual([1, 0]);
    expect(await last(world.registry.content.verify(version, 'operator'))).toMatchObject({ ok: true });
  });

  test('of a version that was being archived: its copies, and what was on its way', async () => {
    const version = await world.version('m', weights, Buffer.from('a text'));
    const texts = new Set<string>();
    const death = dies('beforePut', (key) => texts.add(key).size === 2);
    void last(await world.registry.archive(version, 'operator'));
    await death;
    expect([world.files('archive').length, world.files('moving').length]).toEqual([1, 1]);
    world.restart();
    await world.registry.content.tidy();
    expect([...world.files('archive'), ...world.files('moving')]).toEqual([]);
    expect(await last(world.registry.content.verify(version, 'operator'))).toMatchObject({ ok: true });
  });

  test('of content that came in and was not told yet', async () => {
    const { addArtifact } = world.store.registry;
    const death = new Promise<void>((resolve) => {
      world.store.registry.addArtifact = () => {
        resolve();
        return died;
      };
    });
    void world.bring(weights);
    await death;
    expect(world.files('live')).toHaveLength(1);
    world.store.registry.addArtifact = addArtifact;
    world.restart();
    await world.registry.content.tidy();
    expect(world.files('live')).toEqual([]);
    await world.bring(weights);
    expect(world.files('live')).toHaveLength(1);
  });

  test('while nothing goes that is being moved or comes in, or that was put there by others', async () => {
    const version = await world.version('m', weights, Buffer.from('a text'));
    const foreign = join(world.folder, 'live/sha256/aa', 'a'.repeat(64));
    mkdirSync(join(foreign, '..'), { recursive: true });
    writeFileSync(foreign, 'of another installation');
    let swept = 0;
    world.beforePut = async () => {
      swept++;
      await world.registry.content.tidy();
    };
    await last(await world.registry.archive(version, 'operator'));
    const archived = (await world.store.registry.version('m', 1))!;
    expect(await last(world.registry.content.verify(archived, 'operator'))).toMatchObject({ ok: true });
    await last(world.registry.restore(archived, 'operator'));
    await world.bring(Buffer.from('another text'));
    expect(await last(world.registry.content.verify(version, 'operator'))).toMatchObject({ ok: true });
    expect(swept).toBe(5);
    expect(world.files('live')).toHaveLength(4);
    expect(world.files('live')).toContain(foreign);
  });

  test('a store that does not answer is told, and the copy goes with the next that comes in', async () => {
    const version = await world.version('m', weights);
    world.beforeRemove = () => {
      throw new ArtifactError('unreachable', 'the storage answered 503');
    };
    // The version is removed: that its files are still there is no fault of whoever asked.
    expect(await world.registry.remove(version, 'operator')).toMatchObject({ removed: true });
    expect(world.left).toMatchObject([{ trouble: 'unreachable' }]);
    expect(world.files('live')).toHaveLength(1);
    world.beforeRemove = () => {};
    await world.bring(Buffer.from('a text'));
    expect(world.files('live')).toHaveLength(1);
    expect(await world.store.registry.leftovers(9)).toEqual([]);
  });
});
