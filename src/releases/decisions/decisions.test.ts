import { expect, test } from 'vitest';
import { eventMaker } from '../../events/event-maker.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { Documents } from '../../store/contracts.ts';
import { memoryStore } from '../../store/memory/index.ts';
import { ABOUT_MAX, Decisions } from './index.ts';

const decided = (engine: string, version: string, ...subjects: string[]) => ({
  ...{ engine, version, for: subjects, hardware: 'nvidia-h100', why: 'It is cheaper.', by: 'ann' },
  evidence: [],
});

function made() {
  const { documents } = memoryStore();
  const time = new VirtualTime(1_700_000_000_000);
  let read = 0;
  const counted: Documents = {
    ...documents,
    get: (kind, id) => {
      read++;
      return documents.get(kind, id);
    },
    list: () => Promise.reject(new Error('all of them are read')),
  };
  const decisions = new Decisions({
    documents: counted,
    event: eventMaker(time, seededRandom(1)),
    clock: time,
    random: seededRandom(2),
  });
  const reads = async (work: () => Promise<unknown>) => {
    read = 0;
    await work();
    return read;
  };
  return { decisions, time, reads };
}

test('the newest decisions about a subject are found, newest first, each once', async () => {
  const { decisions, time } = made();
  const add = async (...asked: Parameters<typeof decided>) => {
    await time.advance(1000);
    await decisions.add(decided(...asked), 'operator', []);
  };
  await add('one', 'm@1', 'backend:b', 'route:r');
  await add('two', 'm@1', 'backend:b');
  await add('three', 'in words', 'backend:other', 'backend:other');
  await add('four', 'm@2', 'route:r');
  const engines = async (...subjects: string[]) =>
    (await decisions.about(subjects, 3)).map(({ engine }) => engine);
  expect(await engines('backend:b')).toEqual(['two', 'one']);
  expect(await engines('version:m@1')).toEqual(['two', 'one']);
  expect(await engines('backend:b', 'route:r', 'version:m@1')).toEqual(['four', 'two', 'one']);
  expect(await engines('backend:b', 'route:r', 'backend:other')).toEqual(['four', 'three', 'two']);
  expect(await engines('backend:nobody')).toEqual([]);
});

test('those that come at once are all found', async () => {
  const { decisions } = made();
  const several = ['one', 'two', 'three'].map((engine) => decided(engine, 'm@1', 'backend:b'));
  await Promise.all(several.map((each) => decisions.add(each, 'operator', [])));
  expect(await decisions.about(['backend:b'], 9)).toHaveLength(3);
});

test('however many there are, a few are read, and few are kept of a subject', async () => {
  const { decisions, reads } = made();
  for (let count = 0; count < 3 * ABOUT_MAX; count++)
    await decisions.add(decided(`${count}`, `m@${count + 1}`, 'backend:b'), 'operator', []);
  const about = await decisions.about(['backend:b'], ABOUT_MAX);
  expect(about.map(({ engine }) => engine)).toEqual(
    Array.from({ length: ABOUT_MAX }, (_, index) => String(3 * ABOUT_MAX - 1 - index)),
  );
  expect(await reads(() => decisions.about(['backend:b', 'route:none'], 3))).toBe(5);
});
