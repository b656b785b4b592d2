import { expect, test } from 'vitest';
import type { Why, WhyStep } from '../events/why.ts';
import { drawWhy } from './why-tree.ts';

const step = (second: number, what: string, over: Partial<WhyStep>): WhyStep => ({
  at: `2026-01-01T03:00:0${second}.000Z`,
  what,
  code: 'some-code',
  reason: `A ${what}.`,
  figures: {},
  origin: null,
  causes: [],
  ...over,
});

const WHY: Why = {
  id: 'req_1',
  subject: 'request:req_1',
  steps: [
    step(9, 'request', { figures: { request: 'req_1' }, causes: ['ev_snapshot'] }),
    step(9, 'rung', { causes: ['ev_breaker', 'ev_snapshot'] }),
    step(8, 'admit', {
      origin: {
        path: 'routes.chat.deadline',
        file: 'armature.yaml',
        line: 8,
        commit: 'abcdef0123456789',
        author: 'Ada',
        date: '2025-12-31T00:00:00Z',
      },
    }),
    step(7, 'endpoint', { figures: { event: 'ev_breaker' }, causes: ['req_0'] }),
    step(6, 'request', { figures: { request: 'req_0' }, causes: ['ev_snapshot'] }),
    step(5, 'attempt', { figures: { request: 'req_0' } }),
    step(4, 'snapshot', { figures: { event: 'ev_snapshot' }, causes: ['ev_change'] }),
    step(3, 'configuration', { figures: { event: 'ev_change' } }),
    step(3, 'configuration', { figures: { change: 'ev_change' }, origin: { path: 'a', actor: 'operator' } }),
  ],
};

test('draws requests and events as a tree, with what each is made of below it', () => {
  expect(drawWhy(WHY, false)).toBe(
    [
      'request:req_1  2026-01-01 UTC',
      '03:00:09.000  request        A request.  req_1',
      '│  03:00:09.000  rung           A rung.',
      '│  03:00:08.000  admit          A admit.',
      '│                               routes.chat.deadline: armature.yaml:8, commit abcdef012345, Ada, 2025-12-31',
      '├─ 03:00:07.000  endpoint       A endpoint.  ev_breaker',
      '│  └─ 03:00:06.000  request        A request.  req_0',
      '│     │  03:00:05.000  attempt        A attempt.',
      '│     └─ 03:00:04.000  snapshot       A snapshot.  ev_snapshot',
      '│        └─ 03:00:03.000  configuration  A configuration.  ev_change',
      '│              03:00:03.000  configuration  A configuration.',
      '│                                           a: set by operator',
      '└─ 03:00:04.000  snapshot       A snapshot.  ev_snapshot  (told above)',
    ].join('\n'),
  );
});

test('colours it where a person reads it, and says the same', () => {
  const coloured = drawWhy(WHY, true);
  expect(coloured).toContain('\u001b[');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
  expect(coloured.replace(/\u001b\[\d+m/g, '')).toBe(drawWhy(WHY, false));
});

test('leaves out no step, even where nothing names it, or it tells what has changed', () => {
  const drift = step(1, 'drift', { figures: { event: 'ev_drift', change: 'distribution' } });
  expect(drawWhy({ id: 'ev_drift', subject: 'drift:chat|b1', steps: [drift] }, false)).toContain(
    'A drift.  ev_drift',
  );
  const alone = step(1, 'worker', { reason: 'Left over.', figures: { event: 'ev_alone' } });
  expect(drawWhy({ ...WHY, steps: [...WHY.steps, alone] }, false)).toContain('Left over.');
  expect(drawWhy({ id: 'x', subject: 'x', steps: [] }, false)).toBe('x');
});
