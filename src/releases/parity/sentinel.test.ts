import { expect, test } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import type { GoldenAnswer } from './answers.ts';
import { type GoldenPrompt, readGolden } from './golden.ts';
import { type Noticed, Sentinel } from './sentinel.ts';

const TERMS = { usual: 0.01, apart: 0.03, runLength: 20_000 };
const { prompts } = readGolden(
  Array.from({ length: 200 }, (_, i) => JSON.stringify({ id: `p${i}`, kind: 'chat', request: {} })).join(
    '\n',
  ),
);
const said = (text: string): GoldenAnswer => ({ text });

function frozen(
  endpoints: readonly string[],
  answer = (_endpoint: string, _prompt: GoldenPrompt) => 'x',
): Sentinel {
  const sentinel = new Sentinel(prompts, TERMS);
  for (const endpoint of endpoints) {
    for (let prompt = sentinel.unfrozen(endpoint); prompt; prompt = sentinel.unfrozen(endpoint)) {
      const given = said(answer(endpoint, prompt));
      sentinel.freeze(endpoint, prompt, [given, given]);
    }
  }
  return sentinel;
}

/** Rounds until something is noticed; undefined where that takes more than `most`. */
function noticedAfter(
  sentinel: Sentinel,
  answer: (endpoint: string, prompt: GoldenPrompt) => string,
  { seed = 1, most = 20_000, reference = 'a' } = {},
): { rounds: number; endpoint: string; noticed: Noticed } | undefined {
  const random = seededRandom(seed);
  for (let rounds = 1; rounds <= most; rounds++) {
    const prompt = sentinel.draw(random);
    const answers = new Map(['a', 'b'].map((endpoint) => [endpoint, said(answer(endpoint, prompt))]));
    const [first] = sentinel.observe(prompt, answers, reference);
    if (first) return { rounds, endpoint: first[0], noticed: first[1] };
  }
  return undefined;
}

/** Of 200 prompts 14 are decided otherwise: 7 %. */
const planted = (endpoint: string, { id }: GoldenPrompt) =>
  endpoint === 'b' && Number(id.slice(1)) % 14 === 3 ? 'y' : 'x';

test('a planted change of 7 % of decisions is noticed within 500 prompts in 99 of 100 runs, half of them within 200', () => {
  const rounds = Array.from({ length: 100 }, (_, seed) => {
    const found = noticedAfter(frozen(['a', 'b']), planted, { seed, most: 2000 });
    expect(found).toMatchObject({ endpoint: 'b' });
    return found!.rounds;
  }).sort((a, b) => a - b);
  expect(rounds[50]).toBeLessThanOrEqual(200);
  expect(rounds[98]).toBeLessThanOrEqual(500);
});

test('nothing is noticed of engines that are as they were, nor of prompts that never were steady', () => {
  expect(noticedAfter(frozen(['a', 'b']), () => 'x')).toBeUndefined();
  const sentinel = new Sentinel(prompts, TERMS);
  const random = seededRandom(9);
  const unsteady = ({ id }: GoldenPrompt) =>
    Number(id.slice(1)) % 10 === 0 ? (random.next() < 0.5 ? 'y' : 'z') : 'x';
  for (const endpoint of ['a', 'b'])
    for (const prompt of prompts)
      sentinel.freeze(endpoint, prompt, [said('y'), said(unsteady(prompt) === 'x' ? 'y' : 'z')]);
  expect(
    noticedAfter(sentinel, (_, prompt) => (Number(prompt.id.slice(1)) % 10 ? 'y' : unsteady(prompt)), {
      reference: 'none',
      most: 5000,
    }),
  ).toBeUndefined();
});

test('targets that were apart from the beginning are noticed, once', () => {
  const apart = (endpoint: string, { id }: GoldenPrompt) =>
    endpoint === 'b' && Number(id.slice(1)) % 5 === 0 ? 'y' : 'x';
  const sentinel = frozen(['a', 'b'], apart);
  const found = noticedAfter(sentinel, apart);
  expect(found).toMatchObject({ endpoint: 'b', noticed: { what: 'apart' } });
  expect(noticedAfter(sentinel, apart, { most: 3000 })).toBeUndefined();
});

test('what is noticed is how it is from then on: one notice, and a watch that begins anew', () => {
  const sentinel = frozen(['a', 'b']);
  expect(noticedAfter(sentinel, planted)?.noticed.what).toBe('changed');
  sentinel.renew('b');
  expect(sentinel.unfrozen('b')?.id).toBe('p0');
  for (const prompt of prompts) {
    const given = said(planted('b', prompt));
    sentinel.freeze('b', prompt, [given, given]);
  }
  expect(noticedAfter(sentinel, planted, { most: 3000, reference: 'none' })).toBeUndefined();
});

test('a control that begins again goes on where the one before it was', () => {
  const one = frozen(['a', 'b']);
  noticedAfter(one, planted, { most: 60 });
  const other = new Sentinel(prompts, TERMS, JSON.parse(JSON.stringify(one.state)));
  expect(noticedAfter(other, planted, { seed: 2 })).toEqual(noticedAfter(one, planted, { seed: 2 }));
  other.keep(['a']);
  expect(Object.keys(other.state)).toEqual(['a']);
});

test('a prompt that an endpoint always fails on does not keep the others waiting, and comes back when it is answered', () => {
  const sentinel = new Sentinel(prompts, TERMS);
  const given = said('x');
  const failing = prompts[3]!;
  const asked = new Map<string, number>();
  for (let prompt = sentinel.unfrozen('a'); prompt; prompt = sentinel.unfrozen('a')) {
    asked.set(prompt.id, (asked.get(prompt.id) ?? 0) + 1);
    if (prompt === failing) sentinel.failed('a', prompt);
    else sentinel.freeze('a', prompt, [given, given]);
  }
  expect([asked.size, asked.get(failing.id)]).toEqual([prompts.length, 3]);
  sentinel.observe(prompts[5]!, new Map([['a', given]]), undefined);
  expect(sentinel.unfrozen('a')).toBeUndefined();
  sentinel.observe(failing, new Map([['a', given]]), undefined);
  expect(sentinel.unfrozen('a')).toBe(failing);
  sentinel.freeze('a', failing, [given, given]);
  expect(sentinel.unfrozen('a')).toBeUndefined();
});
