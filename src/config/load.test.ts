import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { type Fault, formatFaults } from './faults.ts';
import { filesInMemory } from './files-in-memory.ts';
import { type LoadedConfig, loadConfig } from './load.ts';
import { settingsSchema } from './schema/index.ts';

const FILE = 'conf/armature.yaml';

function load(files: Record<string, string | Uint8Array>, env: Record<string, string> = {}): LoadedConfig {
  const loaded = loadConfig(FILE, filesInMemory(files, env));
  if (!loaded.ok) throw new Error(formatFaults(loaded.faults));
  return loaded.config;
}

function faultsOf(text: string | Uint8Array, files: Record<string, string> = {}): Fault[] {
  const loaded = loadConfig(FILE, filesInMemory({ ...files, [FILE]: text }));
  return loaded.ok ? [] : loaded.faults;
}

const BACKEND = 'backends:\n  b1: { engine: vllm, model: m, endpoints: ["http://h/v1"] }\n';

describe('loading', () => {
  it('takes an empty file for defaults without routes, and says so', () => {
    for (const text of ['', '\n', '# nothing\n', '---\n', '{}', '\uFEFF']) {
      const config = load({ [FILE]: text });
      expect(config.settings).toEqual(settingsSchema.parse({}));
      expect(config.notices.map(({ code }) => code)).toEqual(['empty']);
    }
  });

  it('reads JSON as the YAML that it is', () => {
    const config = load({ [FILE]: '{"gateway": {"drain": "5s"}}' });
    expect(config.settings.gateway.drain).toBe(5000);
  });

  it('knows the place of every value that is written, and none of the others', () => {
    const { origins } = load({
      [FILE]: `${BACKEND}routes:\n  chat:\n    targets: [{ backend: b1 }]\n    deadline: 2s\n`,
    });
    expect(origins['routes.chat.deadline']).toEqual({ kind: 'file', file: FILE, line: 6, column: 5 });
    expect(origins['routes.chat.targets[0].backend']).toMatchObject({ line: 5, column: 17 });
    expect(origins['routes.chat.queue']).toBeUndefined();
  });

  it('merges files by key, below sections, relative to where they are named', () => {
    const config = load({
      [FILE]: 'include: [conf.d/*.yaml, more.yaml]\ngateway: { drain: 1s }\n',
      'conf/conf.d/a.yaml': BACKEND,
      'conf/conf.d/b.yaml': 'backends:\n  b2: { engine: sim }\ngateway: { workers: 2 }\n',
      'conf/conf.d/not.txt': 'x',
      'conf/more.yaml': 'include: [deep/er.yaml, more.yaml]\n'.replace(', more.yaml', ''),
      'conf/deep/er.yaml': 'routes: { chat: { targets: [{ backend: b2 }] } }\n',
    });
    expect(Object.keys(config.settings.backends)).toEqual(['b1', 'b2']);
    expect(config.settings.gateway).toMatchObject({ drain: 1000, workers: 2 });
    expect(config.origins['routes.chat']).toMatchObject({ file: 'conf/deep/er.yaml', line: 1 });
    expect(config.files.map(({ file }) => file)).toEqual([
      FILE,
      'conf/conf.d/a.yaml',
      'conf/conf.d/b.yaml',
      'conf/more.yaml',
      'conf/deep/er.yaml',
    ]);
    expect(config.files[0]!.sha256).toMatch(/^[0-9a-f]{64}$/);
  });

  it('asks for a file that is named, but not for one that a pattern could match', () => {
    expect(faultsOf('include: [conf.d/*.yaml]\n')).toEqual([]);
    expect(faultsOf('include: [none.yaml]\n')[0]).toMatchObject({
      code: 'unreadable',
      file: FILE,
      line: 1,
      column: 11,
    });
  });

  it('tells the faults of a sound file when another is broken, but not what the other may hold', () => {
    const faults = faultsOf(
      `include: [b.yaml]\nroutes: { chat: { targets: [{ backend: b1 }], deadline: soon } }\n`,
      {
        'conf/b.yaml': 'backends: [\n',
      },
    );
    expect(faults.map(({ file, code }) => [file, code])).toEqual([
      [FILE, 'bad-value'],
      ['conf/b.yaml', 'yaml'],
    ]);
  });

  it('puts values in the place of references, and keeps them from being shown', () => {
    const text = `backends:
  b1:
    engine: vllm
    model: \${env:MODEL}
    endpoints: ["\${env:URL}/v1"]
    limits: { concurrency: "\${env:LIMIT}" }
    probe: { off: "\${env:OFF}" }
    auth: { bearer: "\${file:key}" }
routes:
  chat: { targets: [{ backend: b1 }], ladder: [{ answer: "costs $\${5}" }] }
`;
    const env = { MODEL: '70', URL: 'http://h', LIMIT: '7', OFF: 'true' };
    const config = load({ [FILE]: text, 'conf/key': 'sk-1\n' }, env);
    expect(config.settings.backends['b1']).toMatchObject({
      model: '70',
      endpoints: ['http://h/v1'],
      limits: { concurrency: 7 },
      probe: { off: true },
      auth: { bearer: 'sk-1' },
    });
    expect(config.settings.routes['chat']!.ladder).toEqual([{ answer: 'costs ${5}' }]);
    expect(config.secrets).toMatchObject({
      'backends.b1.auth.bearer': '${file:key}',
      'backends.b1.model': '${env:MODEL}',
      'backends.b1.endpoints[0]': '${env:URL}/v1',
    });
  });

  it('takes paths of files from the folder of the file they stand in, and asks that they are there', () => {
    const tls = 'tls: { ca: ca.pem, cert: c.pem, key: k.pem }';
    const text = `backends:\n  b1: { engine: vllm, model: m, endpoints: ["https://h/v1"], ${tls} }\nmodels:\n  m: { format: gguf, from: ["file:m.gguf"] }\n`;
    const there = { 'conf/ca.pem': 'x', 'conf/c.pem': 'x' };
    expect(faultsOf(text, there).map(({ path, code }) => [path, code])).toEqual([
      ['backends.b1.tls.key', 'unreadable'],
    ]);
    const { settings } = load({ ...there, [FILE]: text, 'conf/k.pem': 'x' });
    expect(settings.backends['b1']).toMatchObject({ tls: { ca: `${process.cwd()}/conf/ca.pem` } });
    expect(settings.models['m']!.from).toEqual([{ source: `file:${process.cwd()}/conf/m.gguf` }]);
  });

  it('says what is set and has no effect yet, and only that', () => {
    const text = `${BACKEND}routes:
  chat: { targets: [{ backend: b1 }], affinity: prefix, shadow: [], ladder: [{ cached: {} }] }
  more: { targets: [{ backend: b1 }], affinity: session }
tenants:
  web: { limits: { requests: 5/s } }
  batch: { limits: {} }
store: { url: "postgres://u:p@h/db" }
`;
    const { notices, secrets } = load({ [FILE]: text });
    expect(notices.map(({ path, code }) => [path, code])).toEqual([['store.url', 'no-effect-yet']]);
    expect(secrets['store.url']).toBe('postgres://***@h/db');
  });

  it('says what looks wrong, and is not for certain', () => {
    const text = `backends:
  a: { engine: vllm, model: m, endpoints: ["http://h:8000"] }
  b: { engine: triton, model: m, endpoints: ["http://h:8000/v2"] }
  c: { engine: openai, model: m, endpoints: ["http://h/openai/v1beta"] }
tenants: {}
`;
    const { notices } = load({ [FILE]: text });
    expect(notices.map(({ path, message }) => [path, message])).toEqual([
      ['backends.a.endpoints[0]', expect.stringContaining('http://h:8000/chat/completions')],
      ['backends.b.endpoints[0]', expect.stringContaining('http://h:8000/v2/v2/models')],
      ['tenants', 'there is no tenant, so that nobody may call'],
    ]);
  });

  it('says where answers are to be kept and cannot be', () => {
    const text = (bytes: string) => `gateway: { cacheBytesMax: ${bytes} }
${BACKEND}routes:
  chat: { targets: [{ backend: b1 }], ladder: [{ cached: {} }, { answer: x }] }
  more: { targets: [{ backend: b1 }], cache: { answerBytesMax: 2MiB } }
  none: { targets: [{ backend: b1 }] }
`;
    const paths = (bytes: string) => load({ [FILE]: text(bytes) }).notices.map(({ path }) => path);
    expect(paths('0B')).toEqual(['routes.chat.ladder[0]', 'routes.more.cache']);
    expect(paths('1MiB')).toEqual(['routes.more.cache.answerBytesMax']);
    expect(paths('2MiB')).toEqual([]);
  });

  it('wants limits of routes that exist, and says where there is nothing to limit', () => {
    const text = (limits: string) => `${BACKEND}routes:
  chat: { targets: [{ backend: b1 }] }
  more: { targets: [{ backend: b1 }] }
tenants:
  web: { routes: [chat], limits: { routes: ${limits} } }
`;
    expect(faultsOf(text('{ chta: { requests: 5/s } }'))).toMatchObject([
      { path: 'tenants.web.limits.routes.chta', code: 'unknown-name', hint: 'did you mean "chat"?' },
    ]);
    expect(faultsOf(text('{ chat: { requests: 5/week, concurrency: 0 } }')).map(({ path }) => path)).toEqual([
      'tenants.web.limits.routes.chat.requests',
      'tenants.web.limits.routes.chat.concurrency',
    ]);
    const { notices, settings } = load({
      [FILE]: text('{ chat: { tokens: 5/h }, more: { concurrency: 1 } }'),
    });
    expect(notices.map(({ path, message }) => [path, message])).toEqual([
      ['tenants.web.limits.routes.more', 'the tenant may not call "more", so that there is nothing to limit'],
    ]);
    expect(settings.tenants!['web']!.limits.routes['chat']).toEqual({
      tokens: { amount: 5, perSeconds: 3600 },
    });
  });

  it('wants of a shadow that it speaks what the targets speak, and says when it is one of them', () => {
    const text = (shadow: string) => `backends:
  a: { engine: vllm, model: m, endpoints: ["http://a:8000/v1"] }
  b: { engine: triton, model: m, endpoints: ["http://b:8000"] }
  sim: { engine: sim, model: m }
routes:
  chat: { targets: [{ backend: a }], shadow: ${shadow} }
`;
    expect(faultsOf(text('[{ backend: b, percent: 5 }]'))).toMatchObject([
      { path: 'routes.chat.shadow[0].backend', message: expect.stringContaining('another protocol') },
    ]);
    expect(faultsOf(text('[{ backend: sim, percent: 5 }, { backend: sim, percent: 5 }]'))).toMatchObject([
      { path: 'routes.chat.shadow[1].backend', message: expect.stringContaining('twice') },
    ]);
    expect(faultsOf(text('[{ backend: sum, percent: 5 }]'))).toMatchObject([{ code: 'unknown-name' }]);
    const { notices } = load({ [FILE]: text('[{ backend: a, percent: 5 }]') });
    expect(notices).toMatchObject([{ code: 'looks-wrong', path: 'routes.chat.shadow[0].backend' }]);
  });

  it('says when a hedge has nowhere to go', () => {
    const text = (endpoints: string) => `backends:
  a: { engine: vllm, model: m, endpoints: ${endpoints} }
routes:
  chat: { targets: [{ backend: a }], hedge: { after: 300ms } }
`;
    const { notices } = load({ [FILE]: text('["http://a:8000/v1"]') });
    expect(notices).toMatchObject([{ code: 'looks-wrong', path: 'routes.chat.hedge' }]);
    expect(load({ [FILE]: text('["http://a:8000/v1", "http://b:8000/v1"]') }).notices).toEqual([]);
  });

  it('reads anchors and aliases, and bounds what they stand for', () => {
    const config = load({ [FILE]: `${BACKEND}routes:\n  a: &r { targets: [{ backend: b1 }] }\n  b: *r\n` });
    expect(config.settings.routes['b']).toEqual(config.settings.routes['a']);
    const bomb = [
      'a: &a [x,x,x,x,x,x,x,x,x]',
      ...'bcdefghi'.split('').map((name, index) => {
        const before = `*${'abcdefgh'[index]}`;
        return `${name}: &${name} [${Array(9).fill(before).join(',')}]`;
      }),
    ].join('\n');
    expect(faultsOf(bomb)[0]).toMatchObject({
      code: 'yaml',
      message: 'aliases stand for more than 10000 values',
    });
    expect(faultsOf('a: &a [*a]\n')[0]).toMatchObject({ code: 'yaml' });
  });

  it('refuses what is no text, too large, or nested beyond sense', () => {
    expect(faultsOf(Uint8Array.of(0, 1, 255))[0]!.message).toMatch(/zero bytes/);
    expect(faultsOf(Uint8Array.of(97, 58, 32, 255))[0]!.message).toMatch(/UTF-8/);
    expect(faultsOf(`# ${'x'.repeat(5_000_000)}`)[0]!.message).toMatch(/larger than/);
    expect(faultsOf('['.repeat(20_000)).length).toBeGreaterThan(0);
    expect(faultsOf(`a: ${'['.repeat(100)}${']'.repeat(100)}`)[0]!.message).toMatch(/nested deeper/);
    expect(faultsOf('__proto__: { x: 1 }\n')[0]).toMatchObject({ code: 'bad-name' });
    expect(faultsOf('hello\n')[0]!.message).toMatch(/a single value/);
  });

  it('takes a name that every object has for a name like others', () => {
    const faults = faultsOf(`${BACKEND}routes:\n  constructor: { targets: [{ backend: toString }] }\n`);
    expect(faults.map(({ path, code }) => [path, code])).toEqual([
      ['routes.constructor.targets[0].backend', 'unknown-name'],
    ]);
  });
});

/** Documents that are right as far as they go: what a user may write, in all its forms. */
const name = fc.stringMatching(/^[a-z][a-z0-9._:/@-]{0,12}$/).filter((text) => text !== '__proto__');
const duration = fc
  .tuple(fc.integer({ min: 1, max: 10_000 }), fc.constantFrom('ms', 's', 'm', 'min', 'h', 'd'))
  .map(([n, unit]) => `${n}${unit}`);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const document = fc
  .record({
    names: fc.uniqueArray(name, { minLength: 1, maxLength: 4 }),
    routes: fc.uniqueArray(name, { maxLength: 4 }),
    picks: fc.array(fc.nat(), { minLength: 8, maxLength: 8 }),
    deadline: maybe(duration),
    concurrency: maybe(fc.integer({ min: 1, max: 1000 })),
    weight: maybe(fc.double({ min: 0.001, max: 100, noNaN: true })),
    answer: maybe(fc.string({ minLength: 1 }).filter((text) => !text.includes('${'))),
    bearer: maybe(fc.string({ minLength: 1 }).filter((text) => !text.includes('${'))),
    affinity: maybe(fc.constantFrom('none', 'session', 'prefix')),
  })
  .map(({ names, routes, picks, deadline, concurrency, weight, answer, bearer, affinity }) => ({
    backends: Object.fromEntries(
      names.map((each) => [
        each,
        {
          engine: 'vllm',
          model: each,
          endpoints: ['http://127.0.0.1:9/v1'],
          ...(concurrency !== undefined && { limits: { concurrency } }),
          ...(bearer !== undefined && { auth: { bearer } }),
        },
      ]),
    ),
    routes: Object.fromEntries(
      routes.map((each, index) => [
        each,
        {
          targets: [
            { backend: names[picks[index]! % names.length], ...(weight !== undefined && { weight }) },
          ],
          ...(deadline !== undefined && { deadline }),
          ...(answer !== undefined && { ladder: [{ answer }] }),
          ...(affinity !== undefined && { affinity }),
        },
      ]),
    ),
  }));

describe('any configuration', { timeout: 30_000 }, () => {
  it('that is right is read as the schema reads it, in YAML and in JSON', () => {
    fc.assert(
      fc.property(document, fc.boolean(), (written, json) => {
        const text = json ? JSON.stringify(written) : stringify(written);
        expect(load({ [FILE]: text }).settings).toEqual(settingsSchema.parse(written));
      }),
      { numRuns: 100 },
    );
  });

  it('that somebody has edited never crashes the loader, and every fault has a place and words', () => {
    const edit = fc.record({
      at: fc.nat(),
      length: fc.nat(12),
      put: fc.oneof(
        fc.string({ maxLength: 8 }),
        fc.constantFrom(
          ':',
          '\n',
          '  ',
          '- ',
          '{',
          '}',
          '[',
          ']',
          '"',
          "'",
          '&a ',
          '*a',
          '!x ',
          '|',
          '${',
          '${env:X}',
          '\t',
          '#',
          'null',
          '5',
        ),
      ),
    });
    fc.assert(
      fc.property(document, fc.array(edit, { minLength: 1, maxLength: 5 }), (written, edits) => {
        let text = stringify(written);
        for (const { at, length, put } of edits) {
          const start = at % (text.length + 1);
          text = text.slice(0, start) + put + text.slice(start + length);
        }
        for (const fault of faultsOf(text)) {
          expect(fault.line).toBeGreaterThan(0);
          expect(fault.column).toBeGreaterThan(0);
          expect(fault.message).not.toBe('');
          expect(fault.message).not.toMatch(/undefined|Invalid input|\[object/);
          if (fault.excerpt) expect(fault.excerpt.mark).toBeLessThanOrEqual(fault.excerpt.text.length);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('never has a secret shown, whatever else is wrong', () => {
    const wrong = fc.constantFrom(
      'engine: vlm',
      'model: 5',
      'endpoints: x',
      'bearer: y',
      'auth2: { bearer: z }',
      'timeouts: 1s',
      '- x',
      'tls: {',
    );
    fc.assert(
      fc.property(
        fc.stringMatching(/^sk-[a-zA-Z0-9]{12,24}$/),
        fc.array(wrong, { minLength: 1, maxLength: 4 }),
        (secret, lines) => {
          const body = lines.map((line) => `    ${line}`).join('\n');
          const text = `backends:\n  b1:\n    auth: { bearer: ${secret} }\n${body}\n    extra: 1\n`;
          const faults = faultsOf(text);
          expect(faults.length).toBeGreaterThan(0);
          expect(JSON.stringify(faults)).not.toContain(secret);
        },
      ),
      { numRuns: 200 },
    );
  });
});
