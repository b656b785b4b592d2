import { expect, test } from 'vitest';
import { NO, run, scores, YES } from '../../../test/releases/golden-answers.ts';
import { seededRandom } from '../../kernel/random.ts';
import { callOf, readAnswer } from './answers.ts';
import { compare } from './comparing.ts';
import { decide } from './decisions.ts';
import { type GoldenPrompt, readGolden } from './golden.ts';
import { measure } from './measuring.ts';
import type { Ask } from './passes.ts';

const lines = (...prompts: object[]) => prompts.map((prompt) => JSON.stringify(prompt)).join('\n');

function classes(count: number, more: (i: number) => object = () => ({})): GoldenPrompt[] {
  const all = Array.from({ length: count }, (_, i) => ({
    kind: 'tensors',
    request: { inputs: [] },
    id: `p${i}`,
    ...more(i),
  }));
  return readGolden(lines(...all)).prompts;
}

test('a golden set names the line that is wrong, and what was expected', () => {
  const fault = (text: string) => {
    try {
      return readGolden(text);
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(fault('')).toBe('it has no prompt');
  expect(fault('{"kind":"chat","request":{}}\n{')).toMatch(/^line 2: /);
  expect(fault(lines({ kind: 'talk', request: {} }))).toBe(
    'line 1: kind: expected chat, completion, embedding or tensors',
  );
  expect(fault(lines({ kind: 'chat', request: {}, decision: 'largest' }))).toBe(
    'line 1: decision: of chat it is text or first-word or member, not largest',
  );
  expect(fault(lines({ id: 'a', kind: 'chat', request: {} }, { id: 'a', kind: 'chat', request: {} }))).toBe(
    "line 2: there is another 'a'",
  );
  expect(fault(lines({ kind: 'embedding', request: { input: ['a', 'b'] } }))).toMatch(/three texts/);
});

test('decisions are read out of answers by their rules, with their margins', () => {
  expect(decide({ by: 'largest' }, scores(0.25, 0.75, 0.5))).toEqual({ decision: '1', margin: 0.25 });
  const rows = { outputs: [{ name: 'y', shape: [2, 2], data: [1, 0, 0, 4] }] };
  expect(decide({ by: 'largest' }, rows)).toEqual({ decision: '0,1', margin: 1 });
  expect(decide({ by: 'largest' }, scores(Number.NaN, -1)).decision).toBe('1');
  expect(decide({ by: 'threshold', at: 0.5 }, scores(0.75))).toEqual({ decision: 'yes', margin: 0.25 });
  expect(
    decide({ by: 'member', path: '/a/b~1c' }, { text: '```json\n{"a":{"b/c":[1]}}\n```' }).decision,
  ).toBe('[1]');
  expect(decide({ by: 'member', path: '/a' }, { text: 'no' }).decision).toBe('unreadable');
  expect(decide({ by: 'first-word' }, { text: ' spam, surely' }).decision).toBe('spam,');
  const vectors = [
    [1, 0],
    [0, 1],
    [2, 1],
  ];
  expect(decide({ by: 'nearest' }, { vectors }).decision).toBe('1');
  expect(decide({ by: 'text' }, { refused: 400 }).decision).toBe('refused:400');
  expect(() => decide({ by: 'largest', output: 'z' }, scores(1))).toThrow("no output 'z'");
});

test('calls are greedy, capped and ask for log-probabilities; answers are read as OpenAI and OIP have them', () => {
  const [chat, tensors] = readGolden(
    lines(
      { kind: 'chat', request: { messages: [], model: 'x', stream: true } },
      { kind: 'tensors', request: { inputs: [] } },
    ),
  ).prompts;
  expect(callOf(chat!, { model: 'm', logprobs: true, cap: 'max_completion_tokens' })).toEqual({
    path: '/chat/completions',
    body: {
      temperature: 0,
      messages: [],
      max_completion_tokens: 64,
      model: 'm',
      logprobs: true,
      top_logprobs: 5,
    },
  });
  expect(callOf(tensors!, { model: 'a/b', logprobs: true, cap: 'max_tokens' }).path).toBe(
    '/v2/models/a%2Fb/infer',
  );
  const content = [
    {
      token: 'a',
      logprob: -0.5,
      top_logprobs: [
        { token: 'b', logprob: -1 },
        { token: 'a', logprob: -0.5 },
      ],
    },
  ];
  const told = { choices: [{ message: { content: 'a' }, logprobs: { content } }], system_fingerprint: 'fp' };
  expect(readAnswer('chat', told)).toMatchObject({
    text: 'a',
    fingerprint: 'fp',
    tokens: [{ top: [{ text: 'a' }, { text: 'b' }] }],
  });
  expect(() => readAnswer('tensors', { outputs: [{ name: 'y', shape: [1], data: ['x'] }] })).toThrow();
  expect(() => readAnswer('chat', { choices: [] })).toThrow();
});

const token = (text: string, logprob: number, next: [string, number]) => ({
  text,
  logprob,
  top: [
    { text, logprob },
    { text: next[0], logprob: next[1] },
  ].sort((a, b) => b.logprob - a.logprob),
});

test('texts are compared up to the first mismatch, where both stand after the same tokens, and no further', () => {
  const [prompt] = readGolden(lines({ kind: 'chat', request: {} })).prompts;
  const a = {
    text: 'x y z',
    tokens: [token('x', -0.1, ['q', -3]), token(' y', -0.7, [' w', -0.8]), token(' z', -1, ['', -2])],
  };
  const b = {
    text: 'x w q',
    tokens: [token('x', -0.2, ['q', -3]), token(' w', -0.6, [' y', -0.9]), token(' q', -9, ['', -0.1])],
  };
  const found = compare(prompt!, a, b);
  expect(found).toMatchObject({ flip: true, position: 1, exposed: 2 });
  expect(found.margin).toBeCloseTo(0.1, 9);
  expect(found.delta).toBeCloseTo(0.1, 9); // of the one token that both have
  expect(found.distances.map(({ sameTop }) => sameTop)).toEqual([true, false]);
  expect(compare(prompt!, { text: 'a b' }, { text: 'a b' })).toMatchObject({ flip: false, exposed: 2 });
});

test('the same against itself is certified, one that decides otherwise rejected, in random order of prompts', async () => {
  const same = await run(
    classes(400),
    async () => YES,
    async () => YES,
  );
  expect(same).toMatchObject({
    verdict: 'certified',
    reason: 'flips-below-bound',
    figures: { flips: 0, floorFlips: 0 },
  });
  expect(same.figures.prompts).toBeLessThan(250);
  const other = await run(
    classes(400),
    async () => YES,
    async ({ id }) => (id.endsWith('3') ? NO : YES),
  );
  expect(other).toMatchObject({ verdict: 'rejected', reason: 'flips-above-half' });
  expect(other.figures.examples[0]).toEqual({
    prompt: expect.stringMatching(/3$/),
    reference: '0',
    backend: '1',
    margin: 1,
  });
});

test('too few prompts decide nothing, and neither do answers that are missing', async () => {
  expect(
    await run(
      classes(50),
      async () => YES,
      async () => YES,
    ),
  ).toMatchObject({
    verdict: 'undecided',
    reason: 'prompts-used-up',
  });
  let asked = 0;
  const failing: Ask = async () => {
    if (++asked % 2) throw new Error('gone');
    return YES;
  };
  expect(await run(classes(400), async () => YES, failing)).toMatchObject({
    verdict: 'undecided',
    reason: 'answers-missing',
  });
});

test('trap 46: the reference is asked alone and in company, whatever it promises, and what it differs by is the floor', async () => {
  const random = seededRandom(5);
  let now = 0;
  let most = 0;
  // Alone it is steady; in company it decides three in a hundred otherwise.
  const unsteady: Ask = async () => {
    most = Math.max(most, ++now);
    await Promise.resolve();
    const crowded = now > 1;
    now--;
    return crowded && random.next() < 0.03 ? { text: 'no' } : { text: 'yes' };
  };
  const found = await run(
    classes(4000, () => ({ kind: 'chat' })),
    unsteady,
    unsteady,
    {
      terms: { flipsMax: 0.1, alpha: 0.05 },
    },
  );
  expect(most).toBe(8);
  expect(found).toMatchObject({ verdict: 'certified' });
  expect(found.figures.floorFlips).toBeGreaterThan(0);
});

test('a backend that is wrong where the reference is right is rejected although it seldom differs', async () => {
  const prompts = classes(2000, () => ({ label: '0' }));
  const backend: Ask = async ({ id }) => (Number(id.slice(1)) % 80 === 0 ? NO : YES);
  const found = await measure({
    prompts,
    reference: async () => YES,
    backend,
    terms: { flipsMax: 0.04, alpha: 0.05 },
    together: 8,
    random: seededRandom(2),
    signal: new AbortController().signal,
  });
  expect(found).toMatchObject({ verdict: 'rejected', reason: 'harm-shown', figures: { harm: { won: 0 } } });
  expect(found.figures.harm!.lost).toBeGreaterThanOrEqual(5);
});

test('a flip is a near tie where the reference decided by less than twice what its own scores move by', async () => {
  // Its scores begin to move when nothing is screened any more.
  let asked = 0;
  const random = seededRandom(6);
  const found = await run(
    classes(100),
    async ({ id }) => {
      if (id === 'p1') return scores(0.501, 0.5);
      return scores(++asked > 300 ? 1 + random.next() / 100 : 1, 0);
    },
    async ({ id }) => (id === 'p1' || id === 'p2' ? NO : YES),
  );
  expect(found.figures).toMatchObject({ flips: 2, nearTies: 1, screened: { leftOut: [] } });
});

test('prompts with a temperature are sampled, and another distribution is rejected', async () => {
  const all = Array.from({ length: 12 }, (_, i) => ({
    id: `s${i}`,
    kind: 'chat',
    request: { temperature: 1 },
  }));
  const drawn =
    (bias: number): Ask =>
    async ({ request }) => {
      const random = seededRandom(Number(request['seed']));
      return { text: Array.from({ length: 8 }, () => (random.next() < bias ? 'a' : 'b')).join(' ') };
    };
  const prompts = [...classes(300), ...readGolden(lines(...all)).prompts];
  const asked =
    (draw: Ask): Ask =>
    (prompt, signal) =>
      prompt.kind === 'chat' ? draw(prompt, signal) : Promise.resolve(YES);
  const same = await run(prompts, asked(drawn(0.5)), asked(drawn(0.5)));
  expect(same).toMatchObject({ verdict: 'certified', figures: { samples: { tokensAlike: 1 } } });
  const other = await run(prompts, asked(drawn(0.5)), asked(drawn(0.95)));
  expect(other).toMatchObject({ verdict: 'rejected', reason: 'samples-differ' });
});

test('a run that is stopped says so', async () => {
  const stop = new AbortController();
  let asked = 0;
  const backend: Ask = async () => {
    if (++asked > 20) stop.abort();
    if (stop.signal.aborted) throw new Error('stopped');
    return YES;
  };
  const found = await run(classes(200), async () => YES, backend, { signal: stop.signal });
  expect(found).toMatchObject({ verdict: 'undecided', reason: 'run-stopped' });
});
