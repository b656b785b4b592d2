// biome-ignore-all lint/suspicious/noExplicitAny: bodies as they were sent, which the tests judge.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { namedClass, standIn } from './classes.ts';
import type { Filling, StageAsk, StageSettings, StageValue } from './contracts.ts';
import { kindOf } from './index.ts';
import { itemsOf } from './items.ts';

function stageOf(settings: object): StageSettings {
  return settingsSchema.parse({ pipelines: { p: { stages: { s: { route: 'r', ...settings } } } } }).pipelines[
    'p'
  ]!.stages['s']!;
}

/** Templates are their own text, and an expression gives `lists` of its name. */
function filling(lists: Record<string, unknown> = {}, stages: Record<string, StageValue> = {}): Filling {
  return {
    text: (template) => template,
    value: (expression) => lists[expression],
    isCallers: () => true,
    stage: (name) => stages[name],
  };
}

function ask(settings: object, fill = filling(), extras: object = {}): { body: any } & StageAsk {
  const stage = stageOf(settings);
  const made = kindOf(stage)!.ask(stage, 'r', fill, false, { ...extras });
  if ('value' in made) throw new Error('nothing was asked');
  return { ...made, body: JSON.parse(made.body.toString()) };
}

function read(settings: object, answer: unknown, more: Partial<StageAsk> = {}): StageValue | undefined {
  const stage = stageOf(settings);
  const body = Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer));
  return kindOf(stage)!.read(stage, body, { target: '', body: Buffer.alloc(0), ...more });
}

const said = (message: unknown) => ({ choices: [{ message }] });

describe('a chat', () => {
  it('is asked one message or several, with parameters of the stage before wishes of the caller', () => {
    expect(ask({ input: 'hi' }).body).toEqual({
      model: 'r',
      messages: [{ role: 'user', content: 'hi' }],
      stream: false,
    });
    const messages = [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: {} },
        ],
      },
    ];
    expect(ask({ messages }).body.messages).toEqual(messages);
    const parameters = { max_tokens: 5, temperature: 0 };
    const body = ask({ input: 'hi', parameters }, filling(), {
      temperature: 1,
      max_completion_tokens: 9,
      top_p: 0.5,
    }).body;
    expect(body).toMatchObject({ max_tokens: 5, temperature: 0, top_p: 0.5 });
    expect(body.max_completion_tokens).toBeUndefined();
  });

  it('is read by its first choice', () => {
    expect(read({ input: '' }, said({ content: 'a' }))).toEqual({ text: 'a' });
    expect(
      read({ input: '' }, said({ content: [{ type: 'text', text: 'a' }, { type: 'x' }, { text: 'b' }] })),
    ).toEqual({ text: 'ab' });
    const calls = [{ id: '1' }];
    expect(read({ input: '' }, said({ content: null, tool_calls: calls }))).toEqual({
      text: '',
      json: calls,
    });
    for (const none of [
      '',
      '{',
      '[]',
      'null',
      {},
      { choices: 1 },
      { choices: [] },
      { choices: [1] },
      said(null),
      said({}),
      said({ content: null }),
      said({ content: 7 }),
    ]) {
      expect(read({ input: '' }, none)).toBeUndefined();
    }
  });

  it('that has to name a class names one, or has failed', () => {
    const classes = ['news', 'fake news', 'C++', 'Übung'];
    for (const [answer, name] of [
      ['news', 'news'],
      [' News.\n', 'news'],
      ['**Fake news**', 'fake news'],
      ['I say: fake news!', 'fake news'],
      ['"c++"', 'C++'],
      ['übung', 'Übung'],
      ['The class is news, as news go.', 'news'],
    ] as const) {
      expect(read({ input: '', classes }, said({ content: answer }))).toEqual({ text: name, class: name });
    }
    for (const answer of ['', 'none', 'newsletter', 'renews', 'news or C++', 'fake news, not news']) {
      expect(read({ input: '', classes }, said({ content: answer }))).toBeUndefined();
    }
    expect(standIn(stageOf({ input: '', classes }), 'news')).toEqual({ text: 'news', class: 'news' });
    expect(standIn(stageOf({ input: '', classes }), 'other')).toEqual({ text: 'other' });
  });

  it('names one of its classes or none, whatever it says', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 }),
        (answer, classes) => {
          const name = namedClass(answer, classes);
          if (name !== undefined) expect(classes).toContain(name);
          const itself = namedClass(classes[0]!, classes);
          if (itself !== undefined) expect(itself.toLowerCase().trim()).toBeDefined();
        },
      ),
    );
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 1, maxLength: 8 }),
        (classes) => {
          for (const name of classes) expect(namedClass(` ${name.toUpperCase()}. `, classes)).toBe(name);
        },
      ),
    );
  });
});

describe('completions', () => {
  it('are asked a prompt, and read by their text', () => {
    const settings = { kind: 'completions', input: 'once' };
    expect(ask(settings)).toMatchObject({ target: '/v1/completions', body: { prompt: 'once' } });
    expect(read(settings, { choices: [{ text: 'upon' }] })).toEqual({ text: 'upon' });
    expect(read(settings, said({ content: 'upon' }))).toBeUndefined();
  });
});

describe('embeddings', () => {
  const settings = { kind: 'embeddings', inputs: 'docs' };
  const items = [{ text: 'a' }, { text: 'b' }];
  const entry = (index: number, embedding: unknown) => ({ index, embedding });

  it('are asked of one text, or of a list', () => {
    expect(ask({ kind: 'embeddings', input: 'x' }).body).toEqual({ model: 'r', input: 'x' });
    const asked = ask(settings, filling({ docs: ['a', { text: 'b', id: 7, score: 0.5 }] }));
    expect(asked.body.input).toEqual(['a', 'b']);
    expect(asked.items).toEqual([{ text: 'a' }, { text: 'b', id: 7, score: 0.5 }]);
    const stage = stageOf(settings);
    expect(kindOf(stage)!.ask(stage, 'r', filling({ docs: [] }), false, {})).toEqual({
      value: { text: '', vectors: [], items: [] },
    });
  });

  it('are put in the order of their inputs, and read from base64 as well', () => {
    const answer = { data: [entry(1, [3, 4]), entry(0, [1, 2])] };
    expect(read(settings, answer, { items })!.vectors).toEqual([
      [1, 2],
      [3, 4],
    ]);
    const base64 = Buffer.from(new Float32Array([1, 2]).buffer).toString('base64');
    expect(read({ kind: 'embeddings', input: 'x' }, { data: [entry(0, base64)] })!.vectors).toEqual([[1, 2]]);
  });

  it('that do not fit are no answer', () => {
    for (const data of [
      undefined,
      [],
      [entry(0, [1])],
      [entry(0, [1]), entry(0, [2])],
      [entry(0, [1]), entry(2, [2])],
      [entry(0, [1]), entry(1, [1, 2])],
      [entry(0, []), entry(1, [])],
      [entry(0, ['1']), entry(1, [1])],
      [entry(0, null), entry(1, [1])],
      [null, entry(1, [1])],
      [entry(0, [1]), entry(0.5, [1])],
    ]) {
      expect(read(settings, { data }, { items })).toBeUndefined();
    }
  });

  it('give the nearest class, of vectors of the same model alone', () => {
    const classed = { kind: 'embeddings', input: 'x', classes: { a: ['1'], b: ['2'] } };
    const classes = {
      model: 'm',
      centres: [
        { name: 'a', vector: [1, 0] },
        { name: 'b', vector: [0, 1] },
      ],
    };
    const answer = (model: string, vector: number[]) => ({ model, data: [entry(0, vector)] });
    expect(read(classed, answer('m', [1, 9]), { classes })).toMatchObject({
      text: 'b',
      class: 'b',
      score: 9 / Math.hypot(1, 9),
    });
    expect(read(classed, answer('n', [1, 9]), { classes })).toBeUndefined();
    expect(read(classed, answer('m', [1, 9, 1]), { classes })).toBeUndefined();
  });
});

describe('tensors', () => {
  const t = (more: object) => ({ tensors: { x: { data: 'hi' } }, ...more });
  const output = (datatype: string, shape: number[], data: unknown, name = 'o') => ({
    outputs: [{ name, datatype, shape, data }],
  });

  it('are asked with inputs of every sort', () => {
    const asked = ask(
      {
        tensors: {
          a: { data: 'hi' },
          b: { datatype: 'INT64', shape: [1, 2], data: [1, '2'] },
          c: { datatype: 'BOOL', data: [true, 'false'] },
          d: { vectors: 'v' },
          e: { texts: 'docs' },
          f: { texts: 'docs', shape: 'n' },
        },
        output: 'o',
        parameters: { p: 1 },
      },
      filling({ docs: ['p', 'q'] }, { v: { text: '', vectors: [[1, 2]] } }),
    );
    expect(asked.target).toBe('/v2/models/r/infer');
    expect(asked.body).toEqual({
      inputs: [
        { name: 'a', datatype: 'BYTES', shape: [1], data: ['hi'] },
        { name: 'b', datatype: 'INT64', shape: [1, 2], data: [1, 2] },
        { name: 'c', datatype: 'BOOL', shape: [2], data: [true, false] },
        { name: 'd', datatype: 'FP32', shape: [1, 2], data: [1, 2] },
        { name: 'e', datatype: 'BYTES', shape: [2, 1], data: ['p', 'q'] },
        { name: 'f', datatype: 'BYTES', shape: [2], data: ['p', 'q'] },
      ],
      outputs: [{ name: 'o' }],
      parameters: { p: 1 },
    });
  });

  it('that cannot be filled in are said to be so', () => {
    for (const tensors of [
      { a: { datatype: 'INT64', data: 'seven' } },
      { a: { datatype: 'INT64', data: 1.5 } },
      { a: { datatype: 'FP32', data: '' } },
      { a: { datatype: 'BOOL', data: 'maybe' } },
      { a: { shape: [2], data: 'x' } },
      { a: { vectors: 'none' } },
      { a: { texts: 'none' } },
    ]) {
      expect(() => ask({ tensors })).toThrow(/`/);
    }
  });

  it('give a class and a score of probabilities, logits, numbers and texts', () => {
    const labels = ['no', 'yes'];
    const of = (answer: object, names = labels) => read(t({ labels: names }), answer);
    expect(of(output('FP32', [1, 2], [0.1, 0.9]))).toMatchObject({ text: 'yes', class: 'yes', score: 0.9 });
    expect(of(output('FP32', [1, 2], [[3, 1]]))).toMatchObject({
      class: 'no',
      score: 1 / (1 + Math.exp(-2)),
    });
    expect(of(output('INT64', [1], [1]))).toMatchObject({ class: 'yes' });
    expect(of(output('FP32', [1], [0.2]))).toMatchObject({ class: 'no', score: 0.8 });
    expect(of(output('FP32', [1], [-3]))).toMatchObject({ class: 'no' });
    expect(of(output('BYTES', [1], ['yes']))).toMatchObject({ class: 'yes' });
    for (const bad of [
      output('INT64', [1], [2]),
      output('INT64', [1], [-1]),
      output('FP32', [3], [1, 2, 3]),
      output('BYTES', [1], ['maybe']),
      output('FP32', [2], [1]),
      output('FP32', [0], []),
    ]) {
      expect(of(bad)).toBeUndefined();
    }
  });

  it('give texts, one number, or vectors, and all of it as json', () => {
    expect(read(t({}), output('BYTES', [1], ['hello']))).toEqual({ text: 'hello', json: { o: ['hello'] } });
    expect(read(t({}), output('FP32', [1, 1], [0.5]))).toMatchObject({ text: '', score: 0.5 });
    expect(read(t({}), output('FP32', [2, 2], [1, 2, 3, 4]))!.vectors).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(read(t({}), output('FP32', [1, 2, 2], [1, 2, 3, 4]))!.vectors).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(read(t({ output: 'o' }), output('BYTES', [1], ['x'], 'other'))).toBeUndefined();
    for (const bad of [
      '{',
      {},
      { outputs: [] },
      { outputs: [{}] },
      output('FP32', [-1], [1]),
      output('FP32', [1], ['1']),
      output('BYTES', [1], [1]),
    ]) {
      expect(read(t({}), bad)).toBeUndefined();
    }
  });

  it('say something of each of several texts', () => {
    const items = [{ text: 'a', id: 1 }, { text: 'b' }];
    expect(read(t({}), output('FP32', [2, 1], [0.3, 0.7]), { items })!.items).toEqual([
      { text: 'a', id: 1, score: 0.3 },
      { text: 'b', score: 0.7 },
    ]);
    expect(
      read(t({ labels: ['n', 'y'] }), output('FP32', [2, 2], [0.9, 0.1, 0.2, 0.8]), { items })!.items,
    ).toMatchObject([
      { text: 'a', class: 'n', score: 0.9 },
      { text: 'b', class: 'y', score: 0.8 },
    ]);
    expect(read(t({}), output('BYTES', [2], ['A', 'B']), { items })!.items).toMatchObject([
      { text: 'A', input: 'a' },
      { text: 'B' },
    ]);
    expect(read(t({}), output('FP32', [3], [1, 2, 3]), { items })).toBeUndefined();
  });
});

describe('any answer', () => {
  it('of any body is read or is none, and nothing is thrown', () => {
    const json = fc.oneof(
      fc.json(),
      fc.string(),
      fc.jsonValue().map((value) => JSON.stringify({ choices: [value], data: [value], outputs: [value] })),
    );
    const stages = [
      { input: '' },
      { input: '', classes: ['a', 'b'] },
      { kind: 'completions', input: '' },
      { kind: 'embeddings', input: '' },
      { tensors: { a: { data: '' } } },
      { tensors: { a: { data: '' } }, labels: ['a', 'b'] },
    ];
    fc.assert(
      fc.property(json, fc.constantFrom(...stages), (body, settings) => {
        const value = read(settings, body);
        if (value) expect(typeof value.text).toBe('string');
      }),
    );
  });
});

describe('a list', () => {
  it('is of texts and items, of a whole stage its own, and bounded', () => {
    const of = (value: unknown) => itemsOf(filling({ docs: value }), 'docs', 'each');
    expect(of(['a', 1, true, { text: 'b', score: 'x' }])).toEqual([
      { text: 'a' },
      { text: '1' },
      { text: 'true' },
      { text: 'b' },
    ]);
    expect(of({ text: '', items: [{ text: 'c', score: 2 }] })).toEqual([{ text: 'c', score: 2 }]);
    for (const bad of [
      undefined,
      null,
      'text',
      7,
      {},
      [null],
      [{}],
      [{ text: 1 }],
      [[]],
      new Array(1025).fill('x'),
    ]) {
      expect(() => of(bad)).toThrow(/`each`/);
    }
  });
});
