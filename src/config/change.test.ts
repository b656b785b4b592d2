import { describe, expect, it } from 'vitest';
import { type LiveChange, readChange } from './change.ts';
import { formatFaults } from './faults.ts';
import { filesInMemory } from './files-in-memory.ts';
import { type LoadedConfig, loadConfig } from './load.ts';
import { applyOverlays, type Overlay } from './overlay.ts';
import { readPath, writePath } from './places.ts';
import { maskSecrets } from './secrets.ts';

const TEXT = `backends:
  b1: { engine: vllm, model: m, endpoints: ["http://h/v1"], auth: { bearer: "\${env:KEY}" } }
  b2: { engine: sim }
routes:
  chat:
    targets: [{ backend: b1, weight: 95 }, { backend: b2, weight: 5 }]
    deadline: 2s
`;
const env = { KEY: 'sk-1', OTHER: 'sk-2' };

function filesOf(text: string, more: Record<string, string> = {}): LoadedConfig {
  const loaded = loadConfig('armature.yaml', filesInMemory({ 'armature.yaml': text, ...more }, env));
  if (!loaded.ok) throw new Error(formatFaults(loaded.faults));
  return loaded.config;
}

/** A running Armature: files, and what was changed live. */
class Running {
  files = filesOf(TEXT);
  overlays: Overlay[] = [];
  #count = 0;
  readonly io = filesInMemory({}, env);

  ask(body: string): LiveChange {
    const at = `2026-01-01T00:00:0${this.#count}.000Z`;
    return readChange(
      body,
      this.files,
      this.overlays,
      { actor: 'token:ann', at, event: `ev_${this.#count++}` },
      this.io,
    );
  }

  change(body: string): Extract<LiveChange, { ok: true }> {
    const change = this.ask(body);
    if (!change.ok) throw new Error(formatFaults(change.faults));
    const gone = new Set([...change.remove, ...change.put.map(({ path }) => path)]);
    this.overlays = [...this.overlays.filter(({ path }) => !gone.has(path)), ...change.put];
    return change;
  }

  refuse(body: string): string {
    const change = this.ask(body);
    return change.ok ? 'nothing was refused' : formatFaults(change.faults);
  }
}

describe('a live change', () => {
  it('is put over the files, key by key, and says what it changes', () => {
    const running = new Running();
    const { put, changes, overlaid, restart } = running.change(
      'routes: { chat: { deadline: 3s, queue: { max: 5 } } }',
    );
    expect(put.map(({ path, value, over }) => [path, value, over])).toEqual([
      ['routes.chat.deadline', '3s', '2s'],
      ['routes.chat.queue.max', 5, undefined],
    ]);
    expect(changes).toEqual([
      { path: 'routes.chat.deadline', before: '2s', after: '3s' },
      { path: 'routes.chat.queue', after: { max: 5 } },
    ]);
    expect(restart).toEqual([]);
    const { settings, origins } = overlaid.config;
    expect(settings.routes['chat']).toMatchObject({
      deadline: 3000,
      queue: { max: 5 },
      retry: { attempts: 2 },
    });
    expect(origins['routes.chat.deadline']).toEqual({
      kind: 'overlay',
      actor: 'token:ann',
      at: '2026-01-01T00:00:00.000Z',
    });
    expect(origins['routes.chat.targets']).toMatchObject({ kind: 'file', line: 6 });
  });

  it('survives a restart as it was stored', () => {
    const running = new Running();
    const { overlaid } = running.change(
      'routes: { chat: { targets: [{ backend: b2 }] }, "gpt-4.1": { targets: [{ backend: b1 }] } }',
    );
    const stored = JSON.parse(JSON.stringify(running.overlays)) as Overlay[];
    const again = applyOverlays(filesOf(TEXT), stored, running.io);
    expect(again.refused).toEqual([]);
    expect(again.config.settings).toEqual(overlaid.config.settings);
    expect(again.config.settings.routes['gpt-4.1']!.targets).toEqual([{ backend: 'b1', weight: 1 }]);
  });

  it('replaces what was changed there before; null takes it back', () => {
    const running = new Running();
    running.change('routes: { chat: { deadline: 3s, queue: { max: 5 } } }');
    running.change('{"routes": {"chat": {"deadline": "4s"}}}');
    expect(running.overlays.map(({ path, value, over }) => [path, value, over])).toEqual([
      ['routes.chat.queue.max', 5, undefined],
      ['routes.chat.deadline', '4s', '2s'],
    ]);
    expect(running.change('routes: { chat: null }').changes).toEqual([
      { path: 'routes.chat.deadline', before: '4s', after: '2s' },
      { path: 'routes.chat.queue', before: { max: 5 } },
    ]);
    expect(running.overlays).toEqual([]);
    expect(running.refuse('routes: { chat: null }')).toMatch(/nothing was changed live here/);
  });

  it('needs no overlay where it says what is so by default, and takes back what was changed there', () => {
    const running = new Running();
    expect(running.change('{"routes": {"chat": {"retired": false}}}').put).toEqual([]);
    running.change('{"routes": {"chat": {"retired": true}}}');
    expect(running.overlays).toHaveLength(1);
    const back = running.change('{"routes": {"chat": {"retired": false}}}');
    expect(back.changes).toMatchObject([{ path: 'routes.chat.retired' }]);
    expect(back.overlaid.config.settings.routes['chat']!.retired).toBe(false);
    expect(running.overlays).toEqual([]);
  });

  it('needs no overlay where it says what the file says', () => {
    const running = new Running();
    running.change('routes: { chat: { deadline: 3s } }');
    const { put, remove, changes } = running.change('routes: { chat: { deadline: 2s } }');
    expect([put, remove]).toEqual([[], ['routes.chat.deadline']]);
    expect(changes).toEqual([{ path: 'routes.chat.deadline', before: '3s', after: '2s' }]);
  });

  it('names what waits for the next start', () => {
    const { restart } = new Running().change('gateway: { listen: "127.0.0.1:1", drain: 1s }');
    expect(restart).toEqual(['gateway.listen']);
    expect(new Running().refuse('store: { url: "sqlite:x.db" }')).toMatch(/in the file only/);
  });

  it('is refused whole, with every fault and its place in the request', () => {
    const running = new Running();
    expect(
      running.refuse(
        'routes:\n  chat: { deadlin: 3s, targets: [{ backend: b3 }] }\n  more: { deadline: 1s }\n',
      ),
    ).toMatchInlineSnapshot(`
      "request body:2:11: routes.chat.deadlin: unknown key "deadlin"
          chat: { deadlin: 3s, targets: [{ backend: b3 }] }
                  ^^^^^^^
        hint: did you mean "deadline"?
      request body:2:45: routes.chat.targets[0].backend: there is no backend "b3"
          chat: { deadlin: 3s, targets: [{ backend: b3 }] }
                                                    ^^
        hint: did you mean "b1"?
      request body:3:3: routes.more.targets: "targets" is missing: expected a list
          more: { deadline: 1s }
          ^^^^
        hint: Where requests go, by weight.
      3 faults in the configuration"
    `);
    expect(running.refuse('routes: [')).toMatch(
      /^request body:1:\d+: a list that begins with \[ is not closed/,
    );
    expect(running.refuse('')).toMatch(/expected a part of a configuration/);
    expect(running.refuse('- a')).toMatch(/expected a part of a configuration/);
  });

  it('brings no secret into the store, and uses no reference that the files do not', () => {
    const running = new Running();
    const backend = (auth: string): string =>
      `backends: { b3: { engine: vllm, model: m, endpoints: ["http://h/v1"], auth: { bearer: ${auth} } } }`;
    expect(running.refuse(backend('sk-9'))).toMatch(/a secret cannot be given in a live change/);
    expect(running.refuse(backend('"${env:OTHER}"'))).toMatch(/no configuration file uses \$\{env:OTHER\}/);
    expect(running.refuse(backend('"${file:/etc/passwd}"'))).toMatch(/no configuration file uses/);
    const { put, overlaid } = running.change(backend('"${env:KEY}"'));
    expect(JSON.stringify(put)).not.toContain('sk-');
    expect(overlaid.config.settings.backends['b3']).toMatchObject({ auth: { bearer: 'sk-1' } });
    expect(maskSecrets(overlaid.config.settings, overlaid.config.secrets).backends['b3']).toMatchObject({
      auth: { bearer: '${env:KEY}' },
    });
  });
});

describe('overlays and edited files', () => {
  it('stand while the file is edited elsewhere', () => {
    const running = new Running();
    running.change('routes: { chat: { deadline: 3s } }');
    const { config, refused } = applyOverlays(filesOf(`# a remark\n${TEXT}`), running.overlays, running.io);
    expect(refused).toEqual([]);
    expect(config.settings.routes['chat']!.deadline).toBe(3000);
  });

  it('are refused aloud where the file says something else since', () => {
    const running = new Running();
    running.change('routes: { chat: { deadline: 3s } }');
    const edited = filesOf(TEXT.replace('deadline: 2s', 'deadline: 5s'));
    const { config, refused, applied } = applyOverlays(edited, running.overlays, running.io);
    expect(applied).toEqual([]);
    expect(config.settings.routes['chat']!.deadline).toBe(5000);
    expect(refused.map(({ code, message }) => [code, message])).toEqual([
      [
        'file-edited',
        'routes.chat.deadline was changed live to "3s" by token:ann at 2026-01-01T00:00:00.000Z, when the file said "2s"; the file was edited since, says "5s", and is right',
      ],
    ]);
  });

  it('have nothing to do where the file says the same by now', () => {
    const running = new Running();
    running.change('routes: { chat: { deadline: 3s } }');
    const edited = filesOf(TEXT.replace('deadline: 2s', 'deadline: 3s'));
    const { agreed, applied, refused } = applyOverlays(edited, running.overlays, running.io);
    expect([agreed.length, applied.length, refused.length]).toEqual([1, 0, 0]);
  });

  it('are given up, the whole change, where the file no longer bears them; others stay', () => {
    const running = new Running();
    running.change('routes: { extra: { targets: [{ backend: b2 }], deadline: 1s } }');
    running.change('gateway: { drain: 9s }');
    const edited = filesOf(TEXT.replace(/ {2}b2: .*\n/, '').replace(', { backend: b2, weight: 5 }', ''));
    const { config, applied, refused } = applyOverlays(edited, running.overlays, running.io);
    expect(refused.map(({ overlay, code }) => [overlay.path, code])).toEqual([
      ['routes.extra.targets', 'faulty'],
      ['routes.extra.deadline', 'faulty'],
    ]);
    expect(refused[0]!.message).toMatch(/there is no backend "b2"/);
    expect(applied.map(({ path }) => path)).toEqual(['gateway.drain']);
    expect(config.settings.gateway.drain).toBe(9000);
  });
});

describe('a path', () => {
  it('is read as it was written, whatever its names are', () => {
    for (const path of [
      ['routes', 'chat', 'targets', 0, 'weight'],
      ['routes', 'gpt-4.1', 'deadline'],
      ['backends', 'a/b:c@d', 'endpoints', 12],
      ['routes', 'say "so"]', 'queue'],
    ]) {
      expect(readPath(writePath(path))).toEqual(path);
    }
    expect(writePath(['routes', 'chat', 'targets', 0])).toBe('routes.chat.targets[0]');
    expect(readPath('routes..x')).toBeUndefined();
  });
});
