import { expect, test } from 'vitest';
import { NO, run, scores, YES } from '../../../test/releases/golden-answers.ts';
import { seededRandom } from '../../kernel/random.ts';
import type { GoldenAnswer } from './answers.ts';
import { decide } from './decisions.ts';
import { type GoldenPrompt, readGolden } from './golden.ts';
import type { Ask } from './passes.ts';
import { screen } from './screening.ts';

function classes(count: number, more: object = {}): GoldenPrompt[] {
  const all = Array.from({ length: count }, (_, i) =>
    JSON.stringify({ kind: 'tensors', request: { inputs: [] }, id: `p${i}`, ...more }),
  );
  return readGolden(all.join('\n')).prompts;
}

const numberOf = ({ id }: GoldenPrompt) => Number(id.slice(1));

/** Prompts whose answers are texts, without log-probabilities. */
const texts = (count: number) => classes(count, { kind: 'chat', request: {} });

/** Decides the first so many prompts by chance, and all others always the same. */
function unsure(count: number, seed: number): Ask {
  const random = seededRandom(seed);
  return async (prompt) => ({ text: numberOf(prompt) < count && random.next() < 0.5 ? 'no' : 'yes' });
}

test('every prompt is asked alone and twice in company, in another company each time', async () => {
  const companies = new Map<string, Set<string>[]>();
  let now: GoldenPrompt[] = [];
  const reference: Ask = async (prompt) => {
    now.push(prompt);
    const all = now;
    await new Promise((resolve) => setImmediate(resolve));
    now = [];
    companies.set(prompt.id, [...(companies.get(prompt.id) ?? []), new Set(all.map(({ id }) => id))]);
    return YES;
  };
  const told: number[] = [];
  const screened = await screen({
    prompts: classes(64),
    reference,
    together: 8,
    random: seededRandom(1),
    signal: new AbortController().signal,
    onBlock: ({ count }) => told.push(count) > 9,
  });
  expect([told, screened.kept.length]).toEqual([[32, 64], 64]);
  for (const each of companies.values()) expect(each.map(({ size }) => size)).toEqual([1, 8, 8]);
  const mixed = [...companies.values()].filter(([, a, b]) => [...a!].some((id) => !b!.has(id)));
  expect(mixed.length).toBeGreaterThan(48);
});

test('prompts that the reference decides one way and another are left out by name, and the rest is certified', async () => {
  const found = await run(texts(400), unsure(24, 1), unsure(24, 2));
  const { screened, floorFlips, prompts } = found.figures;
  expect(found).toMatchObject({ verdict: 'certified', reason: 'flips-below-bound' });
  // One in four of them decides the same three times by chance.
  expect(screened).toMatchObject({ prompts: 400, nearTies: 0 });
  expect(screened!.differ).toBeGreaterThan(10);
  expect(screened!.leftOut).toHaveLength(screened!.differ);
  expect(screened!.leftOut.every((id) => Number(id.slice(1)) < 24)).toBe(true);
  expect(floorFlips / prompts).toBeLessThanOrEqual(0.015);
});

test('what the reference decides by at most twice what its scores move by is left out, of each kind for itself', async () => {
  const moving = seededRandom(3);
  const [steady, shaky] = [classes(100), classes(100, { decision: { by: 'threshold', at: 0 } })];
  const renamed = shaky.map((prompt, i) => ({ ...prompt, id: `s${i}` }));
  // Scores move by up to 0.1; those of the threshold lie at 0.01, 0.02 ... 1.
  const reference: Ask = async (prompt) =>
    prompt.decision.by === 'threshold'
      ? scores((numberOf(prompt) + 1) / 100 + (moving.next() - 0.5) / 10)
      : scores(0.01, 0);
  const screened = await screen({
    prompts: [...steady, ...renamed],
    reference,
    together: 8,
    random: seededRandom(4),
    signal: new AbortController().signal,
    onBlock: () => false,
  });
  const delta = screened.deltas.get('tensors threshold')!;
  expect(delta).toBeGreaterThan(0.08);
  expect(delta).toBeLessThanOrEqual(0.1);
  const left = [...screened.leftOut.keys()].map(({ id }) => id);
  expect(left.every((id) => id.startsWith('s'))).toBe(true);
  for (let i = 0; i < 12; i++) expect(left).toContain(`s${i}`);
  for (let i = 26; i < 100; i++) expect(left).not.toContain(`s${i}`);
  expect(screened.figures).toMatchObject({ prompts: 200, leftOut: left });
});

test('a reference that is unsure of more than half of the prompts is told, and the other is not asked', async () => {
  let asked = 0;
  const found = await run(texts(400), unsure(320, 1), async () => {
    asked++;
    return { text: 'yes' };
  });
  expect([found.verdict, found.reason, asked]).toEqual(['undecided', 'reference-unsure', 0]);
  expect(found.figures.screened!.leftOut).toHaveLength(100);
});

test('beside a floor above half of the bound nothing is certified, although 7 % of decisions were changed within it', async () => {
  const verdicts = { certified: 0, rejected: 0, undecided: 0 };
  for (let seed = 0; seed < 40; seed++) {
    // Decides one of eight prompts otherwise whenever it is in company, and never the same one: no screening finds it.
    const random = seededRandom(seed);
    const noisy: Ask = async () => ({ text: random.next() < 0.12 ? 'no' : 'yes' });
    const planted: Ask = async () => ({ text: random.next() < 0.07 ? 'no' : 'yes' });
    const { verdict, reason, figures } = await run(texts(600), noisy, planted);
    verdicts[verdict]++;
    if (verdict === 'undecided') expect(reason).toBe('floor-too-high');
    expect(figures.floorFlips / figures.prompts).toBeGreaterThan(0.015);
  }
  expect(verdicts.certified).toBe(0);
});

test('right and wrong are told apart on prompts that are left out as well', async () => {
  const prompts = classes(400, { label: '0' });
  const near = scores(0.5005, 0.5);
  const moving = seededRandom(5);
  // The first 60 are near ties, which the other loses: flips cannot show it.
  const reference: Ask = async (prompt) =>
    numberOf(prompt) < 60 ? near : scores(1 + moving.next() / 1000, 0);
  const backend: Ask = async (prompt) => (numberOf(prompt) < 60 ? NO : YES);
  const found = await run(prompts, reference, backend);
  expect(found).toMatchObject({
    verdict: 'rejected',
    reason: 'harm-shown',
    figures: { flips: 0, prompts: 340, screened: { nearTies: 60 }, harm: { prompts: 400, lost: 60, won: 0 } },
  });
});

test('a reference that does not answer ends it before the other is asked', async () => {
  let asked = 0;
  const failing: Ask = async () => {
    if (++asked % 3 === 0) throw new Error('gone');
    return YES;
  };
  const found = await run(classes(400), failing, async () => {
    throw new Error('asked');
  });
  expect(found).toMatchObject({ verdict: 'undecided', reason: 'answers-missing' });
  expect(found.figures.skipped['reference-failed']).toBeGreaterThan(5);
  expect(asked).toBeLessThan(200);
});

test('texts that are empty are no answers: two that say nothing are not certified to mean the same', async () => {
  const silent: Ask = async () => ({ text: ' ' });
  const found = await run(texts(400), silent, silent);
  expect(found).toMatchObject({ verdict: 'undecided', reason: 'answers-missing' });
  expect(found.figures.skipped['reference-empty']).toBeGreaterThan(5);
  // A few of them are left aside.
  const seldom: Ask = async (prompt) => ({ text: numberOf(prompt) < 4 ? '' : 'yes' });
  expect(await run(texts(400), seldom, seldom)).toMatchObject({
    verdict: 'certified',
    figures: { skipped: { 'reference-empty': 4 } },
  });
});

const token = (text: string, logprob: number, ...others: [string, number][]) => ({
  text,
  logprob,
  top: [[text, logprob] as const, ...others].map(([text, logprob]) => ({ text, logprob })),
});

test('a first word is as sure as its least sure token, and as that it is over', () => {
  const answer: GoldenAnswer = {
    text: 'No, it',
    tokens: [
      token('No', -0.1, ['Yes', -3]),
      token(',', -0.5, ['.', -1.5]),
      token(' it', -1, [' they', -1.01], ['then', -5]),
    ],
  };
  expect(decide({ by: 'first-word' }, answer).margin).toBeCloseTo(1, 9);
  const over = {
    text: 'No it',
    tokens: [answer.tokens![0]!, token(' it', -1, [' they', -1.01], ['pe', -1.2])],
  };
  expect(decide({ by: 'first-word' }, over).margin).toBeCloseTo(0.2, 9);
  expect(decide({ by: 'first-word' }, { text: 'No, it' }).margin).toBeUndefined();
});
