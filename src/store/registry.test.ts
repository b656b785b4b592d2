import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LedgerEvent } from '../events/contracts.ts';
import { idMaker } from '../kernel/ids.ts';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { Store } from './contracts.ts';
import { memoryStore } from './memory/index.ts';
import type { NewVersion } from './registry.ts';
import { sqliteStore } from './sqlite/index.ts';

/** What every store must do with versions of models, whatever stands behind it. */

const makeId = idMaker('ev', seededRandom(7));
const AT = '2026-01-01T00:00:00.000Z';

function event(subject = 'version:m@1'): LedgerEvent {
  return {
    id: makeId(0),
    at: AT,
    type: 'version-added',
    subject,
    actor: 'operator',
    causes: [],
    data: {},
  };
}

const sha = (letter: string) => letter.repeat(64);
const artifact = (letter: string, storedMs = 0) => ({
  sha256: sha(letter),
  bytes: 10,
  place: 'live' as const,
  inspection: { format: 'text' },
  storedMs,
});
const version = (model: string, ...letters: string[]): NewVersion => ({
  model,
  manifest: { format: 'text', letters },
  digest: sha('0'),
  files: letters.map((letter) => ({ path: `${letter}.txt`, sha256: sha(letter) })),
});
const nameOf = ({ model, number }: { model: string; number: number }) => `${model}@${number}`;
const CONFLICT = { trouble: 'conflict' };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-registry-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const open = () => sqliteStore({ path: join(folder, 'state.db'), clock: new VirtualTime(0) });

describe.each(['memory', 'sqlite'])('%s', (kind) => {
  let store: Store;
  beforeEach(async () => {
    store = kind === 'memory' ? memoryStore() : open();
    for (const letter of ['a', 'b']) await store.registry.addArtifact(artifact(letter));
  });
  afterEach(() => store.close());
  const add = (made: NewVersion) =>
    store.registry.addVersion(made, (number) => event(`version:${made.model}@${number}`));

  test('trap 32: versions that come at once each get a number of their own, and a number is never given twice', async () => {
    const { registry, ledger } = store;
    const added = await Promise.all(Array.from({ length: 20 }, () => add(version('m', 'a'))));
    expect(added.map(({ number }) => number)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(await registry.removeVersion('m', 20, event())).toEqual([]);
    expect((await add(version('m', 'a'))).number).toBe(21);
    expect((await add(version('n', 'a'))).number).toBe(1);
    const told = await ledger.events({ order: 'asc', limit: 100, subject: 'version:m@21' });
    expect(told).toHaveLength(1);
    expect((await registry.models(10)).map(({ name, versions, newest }) => [name, versions, newest])).toEqual(
      [
        ['m', 20, 21],
        ['n', 1, 1],
      ],
    );
    expect((await registry.versions('m', 3, 20)).map(({ number }) => number)).toEqual([19, 18, 17]);
  });

  test('what is refused leaves nothing, no number either', async () => {
    await expect(add(version('m', 'c'))).rejects.toMatchObject(CONFLICT);
    await expect(add({ ...version('m', 'a'), parent: { model: 'm', number: 9 } })).rejects.toMatchObject(
      CONFLICT,
    );
    expect(await store.registry.models(10)).toEqual([]);
    expect(await store.ledger.head()).toBe(0);
    expect((await add(version('m', 'a'))).number).toBe(1);
  });

  test('trap 32: what is asked for again by its key is added once, also when both come at once', async () => {
    const { registry, ledger } = store;
    const once = { key: 'k', asked: sha('1') };
    const asked = { ...version('m', 'a'), once };
    const added = await Promise.all([add(asked), add(asked), add({ ...version('n', 'a'), once })]);
    expect(added.map(({ model, number }) => [model, number])).toEqual([
      ['m', 1],
      ['m', 1],
      ['n', 1],
    ]);
    expect(added[0]).toEqual(added[1]);
    expect(added[0]).not.toHaveProperty('once');
    expect(await ledger.head()).toBe(2);
    await expect(add({ ...asked, once: { ...once, asked: sha('2') } })).rejects.toThrow(
      "by the key 'k' m@1 was added, of another manifest or other files",
    );
    // Without a key every one is another version, and so is one by a key whose version was removed.
    expect((await add(version('m', 'a'))).number).toBe(2);
    await registry.removeVersion('m', 1, event());
    expect((await add(asked)).number).toBe(3);
  });

  test('the versions that name a decision are found by it, newest first', async () => {
    const { registry } = store;
    const named = { ...version('m', 'a'), decisions: ['dec_1', 'dec_2', 'dec_1'] };
    for (let i = 0; i < 3; i++) await add(named);
    const stored = await registry.version('m', 3);
    expect(stored).not.toHaveProperty('decisions');
    const found = await registry.namedBy('dec_1', 2);
    expect(found.map(({ number }) => number)).toEqual([3, 2]);
    expect(found[0]!.event).toBe(stored!.event);
    await registry.removeVersion('m', 3, event());
    expect((await registry.namedBy('dec_2', 9)).map(({ number }) => number)).toEqual([2, 1]);
    expect(await registry.namedBy('dec_3', 9)).toEqual([]);
  });

  test('what is removed is a leftover until its copies are gone', async () => {
    const { registry } = store;
    await add(version('m', 'b'));
    expect(await registry.leftovers(10)).toEqual([]);
    await registry.removeVersion('m', 1, event());
    await registry.forget(sha('a'));
    await registry.addLeftover(sha('c'));
    await registry.addLeftover(sha('c'));
    expect(await registry.leftovers(2)).toEqual([sha('a'), sha('b')]);
    expect(await registry.leftovers(2, sha('b'))).toEqual([sha('c')]);
    await registry.removeLeftover(sha('a'));
    expect(await registry.leftovers(9)).toEqual([sha('b'), sha('c')]);
  });

  test('aliases move by compare-and-set, with all of their history', async () => {
    const { registry } = store;
    for (let i = 0; i < 3; i++) await add(version('m', 'a'));
    const move = (to: number | undefined, expected?: number | null) =>
      registry.moveAlias({ model: 'm', alias: 'prod', to, expect: expected }, event());
    expect(await move(1, null)).toMatchObject({ number: 1, revision: 1, actor: 'operator', at: AT });
    await expect(move(2, null)).rejects.toThrow('m@prod leads to version 1, where none was expected');
    await expect(move(2, 3)).rejects.toThrow('leads to version 1, where 3 was expected');
    await expect(move(9, 1)).rejects.toMatchObject(CONFLICT);
    expect(await move(2, 1)).toMatchObject({ number: 2, revision: 2 });
    expect(await move(2)).toMatchObject({ number: 2, revision: 2 });
    const race = await Promise.allSettled([move(3, 2), move(1, 2)]);
    expect(race.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await move(undefined)).toBeUndefined();
    expect(await registry.alias('m', 'prod')).toBeUndefined();
    expect(await move(1, null)).toMatchObject({ number: 1, revision: 5 });
    const moves = await registry.aliasMoves('m', 'prod', 10);
    expect(moves.map(({ revision, number }) => [revision, number])).toEqual([
      [5, 1],
      [4, undefined],
      [3, 3],
      [2, 2],
      [1, 1],
    ]);
    expect((await registry.aliasMoves('m', 'prod', 1, 3)).map(({ revision }) => revision)).toEqual([2]);
  });

  test('trap 34: a number and an alias of the same letters are two things', async () => {
    const { registry } = store;
    for (let i = 0; i < 3; i++) await add(version('m', 'a'));
    await registry.moveAlias({ model: 'm', alias: '3', to: 1, expect: null }, event());
    expect((await registry.alias('m', '3'))?.number).toBe(1);
    expect((await registry.version('m', 3))?.number).toBe(3);
    await registry.removeVersion('m', 3, event());
    expect((await registry.alias('m', '3'))?.number).toBe(1);
    await expect(registry.removeVersion('m', 1, event())).rejects.toThrow('the alias m@3 leads to it');
  });

  test('what is used is not removed; what nobody else has goes with it', async () => {
    const { registry } = store;
    await registry.addArtifact(artifact('c', 5));
    await add(version('m', 'a', 'b'));
    await add({ ...version('m', 'a'), parent: { model: 'm', number: 1 } });
    await expect(registry.removeVersion('m', 1, event())).rejects.toThrow('m@2 descends from it');
    expect(await registry.removeVersion('m', 2, event())).toEqual([]);
    expect((await registry.usersOf(sha('a'))).map(({ number }) => number)).toEqual([1]);
    expect((await registry.removeVersion('m', 1, event()))?.map(({ sha256 }) => sha256)).toEqual([
      sha('a'),
      sha('b'),
    ]);
    expect(await registry.removeVersion('m', 1, event())).toBeUndefined();
    expect(await registry.artifact(sha('a'))).toBeUndefined();
    // What was uploaded for a version to come stays until it is forgotten.
    expect(await registry.unused(5, 10)).toEqual([]);
    expect((await registry.unused(6, 10)).map(({ sha256 }) => sha256)).toEqual([sha('c')]);
    expect([await registry.forget(sha('c')), await registry.forget(sha('c'))]).toEqual([true, false]);
  });

  test('archives and restores what no alias leads to, content and all', async () => {
    const { registry } = store;
    await add(version('m', 'a'));
    const change = (from: 'live' | 'archived', to: 'live' | 'archived', place: 'live' | 'archive') =>
      registry.changeState({ model: 'm', number: 1, from, to, moved: [sha('a')], place }, event());
    await registry.moveAlias({ model: 'm', alias: 'prod', to: 1, expect: null }, event());
    await expect(change('live', 'archived', 'archive')).rejects.toThrow('the alias m@prod leads to it');
    await registry.moveAlias({ model: 'm', alias: 'prod', to: undefined, expect: 1 }, event());
    await change('live', 'archived', 'archive');
    expect((await registry.artifact(sha('a')))?.place).toBe('archive');
    await expect(change('live', 'archived', 'archive')).rejects.toThrow('m@1 is not live');
    await expect(
      registry.moveAlias({ model: 'm', alias: 'prod', to: 1, expect: null }, event()),
    ).rejects.toThrow('m@1 is archived');
    await expect(add(version('m', 'a'))).rejects.toThrow('is archived');
    await change('archived', 'live', 'live');
    expect((await registry.version('m', 1))?.state).toBe('live');
  });
});

test('trap 32: two processes that add to one file at once get different numbers', async () => {
  const [one, other] = [open(), open()];
  await one.registry.addArtifact(artifact('a'));
  const add = (store: Store) => store.registry.addVersion(version('m', 'a'), () => event());
  const added = await Promise.all([one, other, one, other, other, one].map(add));
  expect(new Set(added.map(({ number }) => number)).size).toBe(6);
  await one.close();
  await other.close();
});

test('a sealed version cannot be changed, not even by hand', async () => {
  const store = open();
  await store.registry.addArtifact(artifact('a'));
  await store.registry.addVersion(version('m', 'a'), () => event());
  await store.close();
  const { DatabaseSync } = await import('node:sqlite');
  const db = new DatabaseSync(join(folder, 'state.db'));
  expect(() => db.exec("UPDATE registry_versions SET manifest = '{}'")).toThrow('does not change');
  db.close();
});

test('both stores answer the same, whatever is asked of them', async () => {
  const number = fc.integer({ min: 1, max: 4 });
  const model = fc.constantFrom('m', 'n');
  const letters = fc.subarray(['a', 'b', 'c']);
  const steps = fc.oneof(
    fc.record({ do: fc.constant('artifact' as const), letter: fc.constantFrom('a', 'b', 'c') }),
    fc.record({
      do: fc.constant('add' as const),
      model,
      letters,
      parent: fc.option(number),
      key: fc.option(fc.constantFrom('k', 'l')),
    }),
    fc.record({ do: fc.constant('remove' as const), model, number }),
    fc.record({
      do: fc.constant('move' as const),
      model,
      alias: fc.constantFrom('x', '1'),
      to: fc.option(number, { nil: undefined }),
      expect: fc.option(fc.option(number), { nil: undefined }),
    }),
    fc.record({ do: fc.constant('archive' as const), model, number, back: fc.boolean() }),
  );
  type Step = typeof steps extends fc.Arbitrary<infer S> ? S : never;
  const play = async ({ registry }: Store, step: Step) => {
    const told = { ...event(), id: 'ev_same' };
    if (step.do === 'artifact') return registry.addArtifact(artifact(step.letter));
    if (step.do === 'add') {
      const parent = step.parent === null ? {} : { parent: { model: step.model, number: step.parent } };
      const once = step.key === null ? {} : { once: { key: step.key, asked: step.letters.join() } };
      const decisions = step.letters.map((letter) => `dec_${letter}`);
      const made = { ...version(step.model, ...step.letters), ...parent, ...once, decisions };
      return registry.addVersion(made, () => told);
    }
    if (step.do === 'remove') return registry.removeVersion(step.model, step.number, told);
    if (step.do === 'move') return registry.moveAlias(step, told);
    const [from, to] = step.back ? (['archived', 'live'] as const) : (['live', 'archived'] as const);
    const place = step.back ? 'live' : 'archive';
    const moved = (await registry.version(step.model, step.number))?.files.map(({ sha256 }) => sha256) ?? [];
    return registry.changeState({ ...step, from, to, moved, place }, told);
  };
  const all = async ({ registry }: Store) =>
    Promise.all([
      registry.models(10),
      registry.leftovers(10),
      ...['m', 'n'].flatMap((name) => [
        registry.versions(name, 10),
        registry.aliases(name),
        registry.aliasMoves(name, 'x', 10),
      ]),
      ...['a', 'b', 'c'].flatMap((letter) => [registry.artifact(sha(letter)), registry.usersOf(sha(letter))]),
      // All were sealed at one time, by one event.
      ...['a', 'b', 'c'].map(
        async (letter) => new Set((await registry.namedBy(`dec_${letter}`, 99)).map(nameOf)),
      ),
    ]);
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 40 }), async (played) => {
      const path = join(mkdtempSync(join(folder, 'run-')), 'state.db');
      const stores = [memoryStore(), sqliteStore({ path, clock: new VirtualTime(0) })];
      for (const step of played) {
        const [one, other] = await Promise.all(
          stores.map((store) => play(store, step).catch((error: Error) => error.message)),
        );
        expect(other).toEqual(one);
      }
      expect(await all(stores[1]!)).toEqual(await all(stores[0]!));
      for (const store of stores) await store.close();
    }),
    { numRuns: 60 },
  );
});
