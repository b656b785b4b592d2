import { expect, test } from 'vitest';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

/** A route whose requests are copied to `next`, and released to it, with these settings. */
function loaded({ compare = '{ by: exact }', stress = '{ rate: 20/s }', more = '', next = '' }) {
  const text = `backends:
  now: { engine: vllm, model: m, endpoints: ["http://a/v1"] }
  next: { engine: vllm, model: m, endpoints: ["http://b/v1"]${next} }
routes:
  vectors: { targets: [{ backend: now }] }
  chat:
    targets: [{ backend: now }]
    shadow: [{ backend: next, percent: 10, compare: ${compare} }]
    release: { shadow: 10, compare: ${compare}, stress: ${stress} }
${more}`;
  return loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text }));
}

test.each([
  [{ compare: '{ by: judge, route: vectors, margin: 0.1 }' }],
  [{ compare: '{ by: numeric, tolerance: { relative: 0.01 } }' }],
  [{ stress: '{ concurrency: 8, duration: 1s }' }],
])('is taken: %j', (given) => {
  const read = loaded(given);
  expect(read.ok ? read.config.notices : read.faults).toEqual([]);
});

test.each([
  [{ compare: '{ by: judge }' }, 'routes.chat.shadow[0].compare.by', 'asks a route, and none is named'],
  [{ compare: '{ by: exact, route: vectors }' }, 'routes.chat.release.compare.route', 'asks no route'],
  [
    { compare: '{ by: judge, route: vektors }' },
    'routes.chat.release.compare.route',
    'there is no route "vektors"',
  ],
  [{ stress: '{ duration: 10s }' }, 'routes.chat.release.stress', 'how much load'],
  [
    { stress: '{ rate: 1/s, concurrency: 2 }' },
    'routes.chat.release.stress.concurrency',
    'contradict each other',
  ],
  [
    { stress: '{ rate: 1/s, duration: 10s }' },
    'routes.chat.release.stress.duration',
    'fewer than 40 answers',
  ],
  [
    { stress: '{ concurrency: 1, tokensInFlightMax: 100 }' },
    'routes.chat.release.stress.tokensInFlightMax',
    'not one request fits',
  ],
])('is refused: %j', (given, path, message) => {
  const read = loaded(given);
  expect(read.ok ? [] : read.faults.map((fault) => `${fault.path}: ${fault.message}`)).toContainEqual(
    expect.stringMatching(new RegExp(`^${path.replace(/[[\].]/g, '\\$&')}.*${message}`)),
  );
});

test.each([
  [{ next: ', effects: true' }, 'what "next" answers has effects'],
  [{ more: '    effects: true' }, 'what the route answers has effects'],
])('is told that no copy is ever sent: %j', (given, message) => {
  const read = loaded(given);
  expect(read.ok && read.config.notices.map((notice) => notice.message)).toContainEqual(
    `no copy is ever sent: ${message}`,
  );
});
