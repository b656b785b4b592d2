import { describe, expect, it } from 'vitest';
import { formatFaults } from './faults.ts';
import { filesInMemory } from './files-in-memory.ts';
import { loadConfig } from './load.ts';

/** What a user sees on the terminal, to the letter. */
function seen(text: string, files: Record<string, string> = {}): string {
  const loaded = loadConfig('armature.yaml', filesInMemory({ ...files, 'armature.yaml': text }));
  return loaded.ok ? 'no fault' : formatFaults(loaded.faults);
}

const BACKEND = `backends:
  b1: { engine: vllm, model: m, endpoints: ["http://10.0.0.5:8000/v1"] }
`;

describe('a mistake, and what its maker is told', () => {
  it('a misspelt key', () => {
    expect(
      seen(`${BACKEND}routes:\n  chat:\n    targets: [{ backend: b1, wieght: 5 }]\n`),
    ).toMatchInlineSnapshot(`
      "armature.yaml:5:30: routes.chat.targets[0].wieght: unknown key "wieght"
          targets: [{ backend: b1, wieght: 5 }]
                                   ^^^^^^
        hint: did you mean "weight"?
      1 fault in the configuration"
    `);
  });

  it('a single value where there are keys', () => {
    const route = (more: string) =>
      seen(`${BACKEND}routes: { chat: { targets: [{ backend: b1 }], ${more} } }\n`);
    for (const [more, found] of [
      ['parity: required', 'expected a map, found "required"'],
      ['sentinel: [golden.jsonl]', 'expected a map, found a list'],
      ['drift: true', 'expected a map, found true'],
    ] as const) {
      expect(route(more)).toContain(found);
      expect(route(more)).toMatch(/hint: known here: \w+, /);
    }
  });

  it('credentials that a header cannot carry', () => {
    const backend = (auth: string) =>
      `backends:\n  b1: { engine: vllm, model: m, endpoints: ["http://h/v1"], auth: ${auth} }\n`;
    for (const value of ['"a\\nb"', '"a\\r\\nx-evil: 1"', '"a\\u010ab"']) {
      expect(seen(backend(`{ bearer: ${value} }`))).toContain(
        'auth.bearer: expected one line without control',
      );
      expect(seen(backend(`{ header: { name: api-key, value: ${value} } }`))).toContain('expected one line');
    }
    for (const name of ['"a b"', '"a: b"', 'Host', 'transfer-encoding'])
      expect(seen(backend(`{ header: { name: ${name}, value: v } }`))).toContain('header.name: expected');
    expect(seen(backend('{ header: { name: X-Api-Key, value: v } }'))).toBe('no fault');
  });

  it('a key of another engine', () => {
    expect(
      seen(
        `backends:\n  b1:\n    engine: vllm\n    model: m\n    endpoints: ["http://h/v1"]\n    host: { threads: 2 }\n`,
      ),
    ).toMatchInlineSnapshot(`
      "armature.yaml:6:5: backends.b1.host: unknown key "host" of a backend with engine vllm
          host: { threads: 2 }
          ^^^^
        hint: known here: engine, hardware, tier, limits, timeouts, price, context, effects, version, model, endpoints, auth, tls, probe, gauges
      1 fault in the configuration"
    `);
  });

  it('a limit by a target that is not given', () => {
    const limits = (text: string) => seen(BACKEND.replace('model: m', `model: m, limits: ${text}`));
    expect(limits('{ adaptive: target }')).toContain(
      'backends.b1.limits.adaptive: a limit that goes by a target needs one',
    );
    expect(limits('{ adaptive: target, firstToken: 500ms }')).toBe('no fault');
    expect(limits('{ adaptive: fastest }')).toContain('expected knee, target, gradient2, vegas, aimd or off');
  });

  it('floors that come to more than everything', () => {
    expect(seen('gateway: { floors: { interactive: 0.6, standard: 0.5 } }\n')).toContain(
      'the floors together are 1.1513: more than there is to share',
    );
    expect(seen('gateway: { floors: { batch: 1.5 } }\n')).toContain('expected a share from 0 to 1');
    expect(seen('gateway: { floors: { interactive: 0.5, batch: 0.4 } }\n')).toBe('no fault');
  });

  it('a misspelt engine, and what else is wrong with the backend', () => {
    expect(
      seen(`backends:\n  b1:\n    engine: opnai\n    modle: m\n    endpoints: ["http://h/v1"]\n`),
    ).toMatchInlineSnapshot(`
      "armature.yaml:3:13: backends.b1.engine: expected one of openai, vllm, sglang, tgi, llama.cpp, ollama, tensorrt-llm, oip, triton, kserve, mlserver, openvino, torchserve, local, sim, found "opnai"
          engine: opnai
                  ^^^^^
        hint: did you mean "openai"?
      armature.yaml:4:5: backends.b1.modle: unknown key "modle" of a backend with engine openai
          modle: m
          ^^^^^
        hint: did you mean "model"?
      2 faults in the configuration"
    `);
  });

  it('a misspelt "engine"', () => {
    expect(seen('backends:\n  b1: { engin: sim, profil: {} }\n')).toMatchInlineSnapshot(`
      "armature.yaml:2:9: backends.b1.engin: unknown key "engin"
          b1: { engin: sim, profil: {} }
                ^^^^^
        hint: did you mean "engine"?
      armature.yaml:2:21: backends.b1.profil: unknown key "profil" of a backend with engine sim
          b1: { engin: sim, profil: {} }
                            ^^^^^^
        hint: did you mean "profile"?
      2 faults in the configuration"
    `);
  });

  it('a key that is missing', () => {
    expect(
      seen(`backends:\n  b1:\n    engine: vllm\n    endpoints: ["http://h/v1"]\n`),
    ).toMatchInlineSnapshot(`
      "armature.yaml:2:3: backends.b1.model: "model" is missing: expected a text
          b1:
          ^^
        hint: The name that the engine knows the model by.
      1 fault in the configuration"
    `);
  });

  it('no time for what takes some', () => {
    const backend = (more: string) => seen(BACKEND.replace('model: m', `model: m, ${more}`));
    for (const limit of ['connect', 'firstByte', 'idle', 'total'])
      expect(backend(`timeouts: { ${limit}: 0s }`)).toContain(
        `timeouts.${limit}: expected a duration above 0`,
      );
    expect(backend('probe: { every: 0.0ms }')).toContain('probe.every: expected a duration above 0');
    const route = (more: string) => seen(`${BACKEND}routes:\n  a: { targets: [{ backend: b1 }], ${more} }\n`);
    expect(route('deadline: 0s')).toContain('deadline: expected a duration above 0');
    expect(route('release: { deadline: 0h }')).toContain('release.deadline: expected a duration above 0');
    expect(route('release: { deadline: 1h, step: { timeMin: 0s } }')).toBe('no fault');
  });

  it('a value without its unit, and one with a unit of its own', () => {
    const route = `targets: [{ backend: b1 }]`;
    expect(
      seen(`${BACKEND}routes:\n  a: { ${route}, deadline: 500 }\n  b: { ${route}, deadline: 10 seconds }\n`),
    ).toMatchInlineSnapshot(`
      "armature.yaml:4:46: routes.a.deadline: expected a duration such as 450ms, 2s or 24h, found 500
          a: { targets: [{ backend: b1 }], deadline: 500 }
                                                     ^^^
        hint: did you mean 500ms or 500s?
      armature.yaml:5:46: routes.b.deadline: expected a duration such as 450ms, 2s or 24h, found "10 seconds"
          b: { targets: [{ backend: b1 }], deadline: 10 seconds }
                                                     ^^^^^^^^^^
        hint: did you mean 10s?
      2 faults in the configuration"
    `);
  });

  it('a word that is none of those it may be', () => {
    expect(
      seen(`${BACKEND}routes:\n  chat: { targets: [{ backend: b1 }], affinity: sesion }\n`),
    ).toMatchInlineSnapshot(`
      "armature.yaml:4:49: routes.chat.affinity: expected none, session or prefix, found "sesion"
          chat: { targets: [{ backend: b1 }], affinity: sesion }
                                                        ^^^^^^
        hint: did you mean "session"?
      1 fault in the configuration"
    `);
  });

  it('a backend that does not exist', () => {
    expect(
      seen(`${BACKEND}routes:\n  chat:\n    targets:\n      - { backend: b2, weight: 1 }\n`),
    ).toMatchInlineSnapshot(`
      "armature.yaml:6:20: routes.chat.targets[0].backend: there is no backend "b2"
          - { backend: b2, weight: 1 }
                       ^^
        hint: did you mean "b1"?
      1 fault in the configuration"
    `);
  });

  it('a variable that is not set, and a file that is not there', () => {
    const auth = 'auth: { bearer: "${env:VLLM_KEY}" }';
    const file = 'auth: { bearer: "${file:/run/secrets/key}" }';
    expect(
      seen(
        `backends:\n  a:\n    engine: vllm\n    model: m\n    endpoints: ["http://h/v1"]\n    ${auth}\n  b:\n    engine: vllm\n    model: m\n    endpoints: ["http://h/v1"]\n    ${file}\n`,
      ),
    ).toMatchInlineSnapshot(`
      "armature.yaml:6:21: backends.a.auth.bearer: the environment variable VLLM_KEY is not set
          auth: { bearer: "\${env:VLLM_KEY}" }
                          ^^^^^^^^^^^^^^^^^
        hint: set VLLM_KEY where Armature is started
      armature.yaml:11:21: backends.b.auth.bearer: the file /run/secrets/key does not exist
          auth: { bearer: "\${file:/run/secrets/key}" }
                          ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: a relative path is taken from the folder of this file
      2 faults in the configuration"
    `);
  });

  it('a reference of no known kind', () => {
    expect(seen('store: { url: "sqlite:${HOME}/state.db" }\n')).toMatchInlineSnapshot(`
      "armature.yaml:1:15: store.url: expected \${env:NAME} or \${file:PATH}, found "\${HOME}"
          store: { url: "sqlite:\${HOME}/state.db" }
                        ^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean \${env:HOME}? (a plain "\${" is written "$\${")
      1 fault in the configuration"
    `);
  });

  it('an authentication that is none, beside a secret that is not shown', () => {
    const backend = `engine: vllm\n    model: m\n    endpoints: ["http://user:hunter2@h/v1"]`;
    const text = `backends:\n  b1:\n    ${backend}\n    auth: { beerer: sk-12345 }\n  b2:\n    ${backend}\n    auth: { bearer: sk-12345, user: x }\n`;
    expect(seen(text)).toMatchInlineSnapshot(`
      "armature.yaml:5:17: backends.b1.endpoints[0]: expected an http or https address such as http://10.0.0.5:8000/v1, found "http://***@h/v1"
          endpoints: ["http://************@h/v1"]
                      ^^^^^^^^^^^^^^^^^^^^^^^^^^
      armature.yaml:6:11: backends.b1.auth: expected one of { bearer }, { header: { name, value } } or { basic: { user, password } }, found a map with beerer
          auth: { beerer: ******** }
                ^^^^^^^^^^^^^^^^^^^^
        hint: did you mean "bearer"?
      armature.yaml:10:17: backends.b2.endpoints[0]: expected an http or https address such as http://10.0.0.5:8000/v1, found "http://***@h/v1"
          endpoints: ["http://************@h/v1"]
                      ^^^^^^^^^^^^^^^^^^^^^^^^^^
      armature.yaml:11:31: backends.b2.auth.user: unknown key "user"
          auth: { bearer: ********, user: * }
                                    ^^^^
        hint: known here: bearer
      4 faults in the configuration"
    `);
    expect(seen(text)).not.toMatch(/hunter2|sk-12345/);
  });

  it('a bracket that is not closed', () => {
    expect(seen('routes:\n  chat: { targets: [{ backend: b1 }\ntenants: {}\n')).toMatchInlineSnapshot(`
      "armature.yaml:3:1: a list that begins with [ is not closed
          tenants: {}
          ^
        hint: is a ] missing?
      1 fault in the configuration"
    `);
  });

  it('a tab', () => {
    expect(seen('routes:\n\tchat: {}\n')).toMatchInlineSnapshot(`
      "armature.yaml:2:1: a line is indented with a tab
           chat: {}
          ^
        hint: YAML is indented with spaces
      1 fault in the configuration"
    `);
  });

  it('a key written twice in one file', () => {
    expect(seen(`${BACKEND}routes: {}\nroutes: {}\n`)).toMatchInlineSnapshot(`
      "armature.yaml:4:1: the key "routes" is written twice in one map
          routes: {}
          ^^^^^^
        hint: keep one of them, or join what is below them
      1 fault in the configuration"
    `);
  });

  it('a key set in two files', () => {
    expect(
      seen('include: [conf.d/*.yaml]\n', { 'conf.d/a.yaml': BACKEND, 'conf.d/b.yaml': BACKEND }),
    ).toMatchInlineSnapshot(`
      "conf.d/b.yaml:2:3: backends.b1: is set here and at conf.d/a.yaml:2:3; one file only may set it
          b1: { engine: vllm, model: m, endpoints: ["http://10.0.0.5:8000/v1"] }
          ^^
      1 fault in the configuration"
    `);
  });

  it('files that include one another', () => {
    expect(seen('include: [a.yaml]\n', { 'a.yaml': 'include: [armature.yaml]\n' })).toMatchInlineSnapshot(`
      "a.yaml:1:11: include: armature.yaml includes itself, directly or through others
          include: [armature.yaml]
                    ^^^^^^^^^^^^^
      1 fault in the configuration"
    `);
  });

  it('a listener that the world reaches', () => {
    expect(seen('gateway:\n  listen: 0.0.0.0:7070\nadmin:\n  listen: "[::]:7071"\n')).toMatchInlineSnapshot(`
      "armature.yaml:2:11: gateway.listen: 0.0.0.0:7070 can be reached from other machines, and without tenants anybody may call
          listen: 0.0.0.0:7070
                  ^^^^^^^^^^^^
        hint: add tenants with keys, or listen on 127.0.0.1
      armature.yaml:4:11: admin.listen: [::]:7071 can be reached from other machines, and without admin.tokens anybody may change everything
          listen: "[::]:7071"
                  ^^^^^^^^^^^
        hint: add admin.tokens, or listen on 127.0.0.1
      2 faults in the configuration"
    `);
  });

  it('weights that use no target', () => {
    expect(
      seen(`${BACKEND}routes:\n  chat:\n    targets: [{ backend: b1, weight: 0 }]\n`),
    ).toMatchInlineSnapshot(`
      "armature.yaml:5:14: routes.chat.targets: all weights are 0, so that no target is ever used
          targets: [{ backend: b1, weight: 0 }]
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      1 fault in the configuration"
    `);
  });

  it('gauges that are not as many as the endpoints', () => {
    const endpoints = '["http://a/v1", "http://b/v1", "http://c/v1"]';
    expect(
      seen(
        `backends:\n  b1:\n    engine: vllm\n    model: m\n    endpoints: ${endpoints}\n    gauges: ["http://a/metrics", "http://b/metrics"]\n`,
      ),
    ).toMatchInlineSnapshot(`
      "armature.yaml:6:13: backends.b1.gauges: 2 gauges for 3 endpoints: expected one for all, or one for each in the same order
          gauges: ["http://a/metrics", "http://b/metrics"]
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      1 fault in the configuration"
    `);
  });

  it('a rung that is none', () => {
    expect(
      seen(
        `${BACKEND}routes:\n  chat:\n    targets: [{ backend: b1 }]\n    ladder: [{ cachd: { staleMax: 1m } }, answer]\n`,
      ),
    ).toMatchInlineSnapshot(`
      "armature.yaml:6:14: routes.chat.ladder[0]: expected one of { backend }, { output }, { cached } or { answer }, found a map with cachd
          ladder: [{ cachd: { staleMax: 1m } }, answer]
                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean "cached"?
      armature.yaml:6:43: routes.chat.ladder[1]: expected one of { backend }, { output }, { cached } or { answer }, found "answer"
          ladder: [{ cachd: { staleMax: 1m } }, answer]
                                                ^^^^^^
      2 faults in the configuration"
    `);
  });
});

describe('many mistakes', () => {
  it('are told together: of the schema, of references, and between parts', () => {
    expect(
      seen(`backends:
  b1: { engine: vllm, modle: m, endpoints: ["not a url"], auth: { bearer: "\${env:NOPE}" } }
routes:
  chat: { targets: [{ backend: b2, weight: many }], deadline: soon }
tenants:
  web: { priority: urgent, routes: [chta] }
`),
    ).toMatchInlineSnapshot(`
      "armature.yaml:2:23: backends.b1.modle: unknown key "modle" of a backend with engine vllm
          b1: { engine: vllm, modle: m, endpoints: ["not a url"], auth: { bearer: "\${env:NOPE}" } }
                              ^^^^^
        hint: did you mean "model"?
      armature.yaml:2:45: backends.b1.endpoints[0]: expected an http or https address such as http://10.0.0.5:8000/v1, found "not a url"
          b1: { engine: vllm, modle: m, endpoints: ["not a url"], auth: { bearer: "\${env:NOPE}" } }
                                                    ^^^^^^^^^^^
      armature.yaml:2:75: backends.b1.auth.bearer: the environment variable NOPE is not set
          : vllm, modle: m, endpoints: ["not a url"], auth: { bearer: "\${env:NOPE}" } }
                                                                      ^^^^^^^^^^^^^
        hint: set NOPE where Armature is started
      armature.yaml:4:32: routes.chat.targets[0].backend: there is no backend "b2"
          chat: { targets: [{ backend: b2, weight: many }], deadline: soon }
                                       ^^
        hint: did you mean "b1"?
      armature.yaml:4:44: routes.chat.targets[0].weight: expected a weight of 0 or more, found "many"
          chat: { targets: [{ backend: b2, weight: many }], deadline: soon }
                                                   ^^^^
      armature.yaml:4:63: routes.chat.deadline: expected a duration such as 450ms, 2s or 24h, found "soon"
          chat: { targets: [{ backend: b2, weight: many }], deadline: soon }
                                                                      ^^^^
      armature.yaml:6:20: tenants.web.priority: expected critical, interactive, standard or batch, found "urgent"
          web: { priority: urgent, routes: [chta] }
                           ^^^^^^
      armature.yaml:6:37: tenants.web.routes[0]: there is no route or pipeline "chta"
          web: { priority: urgent, routes: [chta] }
                                            ^^^^
        hint: did you mean "chat"?
      8 faults in the configuration"
    `);
  });
});
