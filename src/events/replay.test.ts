import { expect, test } from 'vitest';
import type { Random } from '../kernel/random.ts';
import type { RequestRecord, Step } from './contracts.ts';
import { type ReplayablePolicy, replay } from './replay.ts';

/** Draws one of some names, and says which and at what draw. */
const lottery: ReplayablePolicy = {
  version: 2,
  replay(input: unknown, random: Random) {
    const { names } = input as { names: string[] };
    const draw = random.next();
    const winner = names[Math.floor(draw * names.length)]!;
    return { choice: winner, reason: { code: 'drawn', figures: { winner, draw } } };
  },
};
const policies = new Map([['lottery', lottery]]);

const decided: Step = {
  at: 1,
  what: 'plan',
  code: 'drawn',
  figures: { winner: 'b', draw: 0.4000000000000001 },
  policy: 'lottery@2',
  input: { names: ['a', 'b', 'c'] },
  draws: [0.4000000000000001],
};

const again = (...steps: Step[]) => replay({ steps } as RequestRecord, policies);

test('takes a recorded decision again, bit by bit', () => {
  const admitted: Step = { at: 0, what: 'admit', code: 'admitted', figures: {} };
  const reason = { code: decided.code, figures: decided.figures };
  expect(again(admitted, decided)).toEqual([
    { step: 1, policy: 'lottery@2', same: true, recorded: reason, again: reason },
  ]);
});

test.each<[string, Partial<Step>, object]>([
  [
    'another figure',
    { figures: { winner: 'b', draw: 0.4 } },
    { again: { figures: { draw: 0.4000000000000001 } } },
  ],
  ['another code', { code: 'given' }, { again: { code: 'drawn' } }],
  ['another input', { input: { names: ['a', 'x', 'c'] } }, { again: { figures: { winner: 'x' } } }],
  ['too few draws', { draws: [] }, { problem: expect.stringContaining('drew more often') }],
  [
    'too many draws',
    { draws: [0.4000000000000001, 0.7] },
    { problem: expect.stringContaining('1 of the recorded') },
  ],
  ['an older version', { policy: 'lottery@1' }, { problem: expect.stringContaining('version 2 now') }],
  ['a policy that is gone', { policy: 'oracle@1' }, { problem: expect.stringContaining('no policy oracle') }],
  ['an input that cannot be read', { input: null }, { problem: expect.any(String) }],
])('tells %s', (_what, change, told) => {
  const [replayed] = again({ ...decided, ...change });
  expect(replayed).toMatchObject({ same: false, ...told });
});
