import { describe, expect, it } from 'vitest';
import { formatFaults } from './faults.ts';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

/** What a user sees on the terminal, to the letter. */
function seen(text: string): string {
  const loaded = loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text }));
  return loaded.ok ? 'no fault' : formatFaults(loaded.faults);
}

const BACKEND = `backends:
  b1: { engine: vllm, model: m, endpoints: ["http://10.0.0.5:8000/v1"] }
`;

const STAGES = `${BACKEND}routes:
  r: { targets: [{ backend: b1 }] }
pipelines:
  search:
    deadline: 100ms
    stages:
`;

describe('a mistake in a pipeline', () => {
  it('a template that names what does not come before', () => {
    const stages =
      '      a: { route: r, input: "{{ request.text }}" }\n      b: { route: r, after: [a], input: "{{ c }} {{ aa }} {{ a }}" }\n      c: { route: r, after: [b], input: "{{ b }}" }\n';
    expect(seen(STAGES + stages)).toMatchInlineSnapshot(`
      "armature.yaml:10:41: pipelines.search.stages.b.input: the template names stage "c", which stage "b" does not come after
          b: { route: r, after: [a], input: "{{ c }} {{ aa }} {{ a }}" }
                                            ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: add c to \`after\` of b
      armature.yaml:10:41: pipelines.search.stages.b.input: the template names "aa", which is no stage of this pipeline
          b: { route: r, after: [a], input: "{{ c }} {{ aa }} {{ a }}" }
                                            ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: known here: request, a
      2 faults in the configuration"
    `);
  });

  it('a template that cannot be read', () => {
    expect(seen(`${STAGES}      a: { route: r, input: "{{ request.text " }\n`)).toMatchInlineSnapshot(`
      "armature.yaml:9:29: pipelines.search.stages.a.input: the template cannot be read: Unexpected end of input
          a: { route: r, input: "{{ request.text " }
                                ^^^^^^^^^^^^^^^^^^
        hint: a template is Jinja: {{ request.text }} or {{ STAGE }}
      1 fault in the configuration"
    `);
  });

  it('budgets that do not fit into the deadline', () => {
    const stages =
      '      a: { route: r, budget: 70ms, input: x }\n      b: { route: r, budget: 60ms, after: [a], input: x }\n';
    expect(seen(STAGES + stages)).toMatchInlineSnapshot(`
      "armature.yaml:8:5: pipelines.search.stages: stages in a row have budgets of 130ms together (a 70ms + b 60ms), above the deadline of 100ms
          stages:
          ^^^^^^
      1 fault in the configuration"
    `);
    expect(seen(`${STAGES}      a: { route: r, budget: 1.5s, input: x }\n`)).toMatchInlineSnapshot(`
      "armature.yaml:9:30: pipelines.search.stages.a.budget: a budget of 1.5s is above the pipeline's deadline of 100ms
          a: { route: r, budget: 1.5s, input: x }
                                 ^^^^
      1 fault in the configuration"
    `);
  });

  it('stages in a circle', () => {
    const stages =
      '      a: { route: r, after: [b], input: x }\n      b: { route: r, after: [a], input: x }\n';
    expect(seen(STAGES + stages)).toMatchInlineSnapshot(`
      "armature.yaml:9:29: pipelines.search.stages.a.after: the stages wait for one another in a circle: a after b after a
          a: { route: r, after: [b], input: x }
                                ^^^
      1 fault in the configuration"
    `);
  });

  it('several ends, and a stage after one that does not exist', () => {
    const stages = '      alpha: { route: r, input: x }\n      beta: { route: r, after: [alfa], input: x }\n';
    expect(seen(STAGES + stages)).toMatchInlineSnapshot(`
      "armature.yaml:8:5: pipelines.search.stages: pipeline "search" has 2 last stages: alpha, beta; the answer must be that of one
          stages:
          ^^^^^^
        hint: name the others under \`after\` of the last one
      armature.yaml:10:33: pipelines.search.stages.beta.after[0]: there is no stage "alfa"
          beta: { route: r, after: [alfa], input: x }
                                    ^^^^
        hint: did you mean "alpha"?
      2 faults in the configuration"
    `);
  });

  it('the name of a route', () => {
    expect(
      seen(
        `${BACKEND}routes:\n  search: { targets: [{ backend: b1 }] }\npipelines:\n  search:\n    stages: { a: { route: search, input: x } }\n`,
      ),
    ).toMatchInlineSnapshot(`
      "armature.yaml:4:3: routes.search: a pipeline has the name "search" too
          search: { targets: [{ backend: b1 }] }
          ^^^^^^
        hint: callers name either as model: rename one
      1 fault in the configuration"
    `);
  });
});

describe('a mistake in a stage that is no chat', () => {
  const MANY = `backends:
  b1: { engine: vllm, model: m, endpoints: ["http://10.0.0.5:8000/v1"] }
  b2: { engine: triton, model: t, endpoints: ["http://10.0.0.6:8000"] }
routes:
  r: { targets: [{ backend: b1 }] }
  t: { targets: [{ backend: b2 }] }
pipelines:
  search:
    stages:
`;
  const last = (after: string, input = 'x') =>
    `      z: { route: r, after: [${after}], input: "${input}" }\n`;
  /** The faults without the lines that show the file. */
  const faults = (stages: string) =>
    seen(MANY + stages)
      .split('\n')
      .filter((line) => /^(armature.yaml|no fault| {2}hint)/.test(line))
      .map((line) => line.replace(/^armature\.yaml:\d+:\d+: pipelines\.search\.stages\./, '').trim());

  it('none', () => {
    const stages = `      a: { route: r, kind: embeddings, input: x, classes: { b: [x], c: [y] } }
      docs: { route: r, kind: embeddings, inputs: request.body.documents }
      b: { rank: { query: a, of: docs } }
      c: { route: t, tensors: { x: { vectors: a } }, labels: [n, y], when: stages.a.class == "b" }
      d: { route: r, each: stages.b.items, input: "{{ item.text }} {{ loop.index }}", after: [b] }
      e: { merge: { of: [b, d] } }
      f: { first: [c, e] }
`;
    expect(faults(stages)).toEqual(['no fault']);
  });

  it('members that do not go with what the stage is', () => {
    expect(faults('      a: { input: x }\n')).toEqual(['a: a stage needs a route']);
    expect(faults('      a: { route: r }\n')).toEqual(['a: a stage needs input or messages']);
    expect(faults('      a: { route: r, input: x, tensors: { i: { data: x } } }\n')).toEqual([
      'a.route: a stage of tensors asks over the Open Inference Protocol, and the targets of route "r" speak OpenAI\'s API',
      'hint: leave `tensors` out, or name another route',
      'a.input: input is for stages of chat or completions or embeddings, and this is one of tensors',
    ]);
    expect(faults('      a: { route: t, input: x }\n')[0]).toMatch(
      /^a\.route: a stage of chat asks over OpenAI's API/,
    );
    expect(faults('      a: { route: r, kind: embeddings, input: x }\n      b: { first: [a] }\n')[0]).toMatch(
      /^b\.first\[0\]: stage "a" gives no text/,
    );
    expect(faults(`      a: { route: r, input: x, concurrency: 3 }\n`)).toEqual([
      'a.concurrency: concurrency is for stages with each',
    ]);
    expect(faults(`      a: { route: r, input: x, labels: [a, b] }\n`)[0]).toMatch(
      /^a\.labels: labels is for stages of tensors/,
    );
    expect(faults(`      a: { route: r, input: x, classes: { a: [x], b: [y] } }\n`)[0]).toMatch(
      /^a\.classes: examples of classes are for stages of embeddings/,
    );
    expect(faults(`      a: { route: r, input: x, classes: [y], stream: true }\n`)[0]).toMatch(
      /^a\.stream: /,
    );
    expect(faults(`      a: { route: r, input: x, parameters: { model: y } }\n`)[0]).toMatch(
      /^a\.parameters\.model: "model" cannot be set/,
    );
    expect(faults(`      a: { route: r, input: x }\n      b: { first: [a], route: r }\n`)[0]).toMatch(
      /^b\.route: a stage with first asks no route/,
    );
    expect(faults(`      a: { route: r, input: x }\n      b: { merge: { of: [a] } }\n`)[0]).toMatch(
      /^b\.merge\.of\[0\]: stage "a" gives no items/,
    );
    expect(faults(`      item: { route: r, input: x }\n`)[0]).toMatch(/^item: no stage may be called "item"/);
  });

  it('names that are none, in lists of stages and in expressions', () => {
    const a = '      alpha: { route: r, input: x, classes: [y, n] }\n';
    expect(faults(`${a}      b: { first: [alfa] }\n`)).toEqual(
      expect.arrayContaining(['b.first[0]: there is no stage "alfa"', 'hint: did you mean "alpha"?']),
    );
    expect(faults(`${a}      b: { route: t, tensors: { i: { vectors: alfa } } }\n`)).toContain(
      'b.tensors.i.vectors: there is no stage "alfa"',
    );
    expect(faults(`${a}      b: { first: [b] }\n`)[0]).toMatch(/in a circle: b after b/);
    const when = (text: string) =>
      faults(`${a}      b: { route: r, after: [alpha], when: '${text}', input: x }\n`);
    expect(when('stages.alpha.class == "y"')).toEqual(['no fault']);
    expect(when('stages.alfa.class')).toEqual([
      'b.when: the expression names "alfa", which is no stage of this pipeline',
      'hint: did you mean "alpha"?',
    ]);
    expect(when('stages.alpha.clas')).toEqual([
      'b.when: there is no stages.alpha.clas',
      'hint: did you mean "stages.alpha.class"?',
    ]);
    expect(when('stages.alpha.vectors')[0]).toMatch(/^b\.when: stage "alpha" gives no vectors/);
    expect(when('alpha.class')).toEqual([
      'b.when: "alpha" is the text of the stage, and has no "class"',
      'hint: write stages.alpha.class',
    ]);
    expect(when('request.txt')).toEqual([
      'b.when: there is no request.txt',
      'hint: did you mean "request.text"?',
    ]);
    expect(when('item.text')[0]).toMatch(/names "item", which there is only with `each`/);
    const each = (text: string) =>
      faults(`${a}      b: { route: r, after: [alpha], each: '${text}', input: x }\n`)[0];
    expect(each('alpha')).toMatch(/^b\.each: "alpha" is the text of the stage, and a list is expected/);
    expect(each('stages.alpha')).toMatch(/^b\.each: stage "alpha" gives no items/);
    expect(each('alpha.split(",")')).toBe('no fault');
    for (const broken of ['{{ alpha }}', 'alpha }} {{ alpha', 'if x', '1 +', ''])
      expect(when(broken)[0]).toMatch(/^b\.when/);
    expect(faults(a + last('alpha', '{{ stages.alpha.score }}'))[0]).toMatch(/gives no score/);
  });
});
