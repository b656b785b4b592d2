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
