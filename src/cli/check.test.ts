import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LedgerEvent } from '../events/contracts.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import { sqliteStore } from '../store/sqlite/index.ts';
import type { Output } from './output.ts';
import { main } from './program.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-check-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function check(text: string, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const file = join(folder, 'armature.yaml');
  writeFileSync(file, text);
  const said = { code: 0, out: '', err: '' };
  const output: Output = {
    tty: false,
    print: (line) => void (said.out += `${line}\n`),
    write: (more) => void (said.out += more),
    json: (value) => void (said.out += `${JSON.stringify(value)}\n`),
    note: (line) => void (said.err += `${line}\n`),
  };
  said.code = await main(['check', '-c', file, '--data', join(folder, 'data'), ...args], output);
  const shown = (words: string): string => words.replaceAll(folder, '.');
  return { ...said, out: shown(said.out), err: shown(said.err) };
}

const VALID = `backends:
  b1: { engine: sim }
routes:
  chat: { targets: [{ backend: b1 }], deadline: 2s }
coordination: { url: "redis://10.0.0.9" }
`;

describe('armature check', () => {
  it('says in a few lines what a valid file holds, and what in it has no effect yet', async () => {
    expect(await check(VALID)).toEqual({
      code: 0,
      err: '',
      out: `./armature.yaml is valid
  routes    chat
  backends  b1 (sim)
  tenants   everybody, from this machine only
  note: ./armature.yaml:5:17: coordination.url: has no effect yet: limits are shared among the workers of this machine only
`,
    });
    const { code, out } = await check(VALID, '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      ok: true,
      faults: [],
      notices: [{ code: 'no-effect-yet' }],
      summary: { routes: 1 },
    });
  });

  it('tells faults on stderr with exit code 2, and as JSON on stdout', async () => {
    const faulty = VALID.replace('engine', 'engin');
    const { code, out, err } = await check(faulty);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/armature.yaml:2:9: backends.b1.engin: unknown key "engin"\n/);
    const json = await check(faulty, '--json');
    expect(json.code).toBe(2);
    expect(JSON.parse(json.out)).toMatchObject({
      ok: false,
      faults: [
        {
          file: './armature.yaml',
          line: 2,
          column: 9,
          path: 'backends.b1.engin',
          code: 'unknown-key',
          hint: 'did you mean "engine"?',
        },
      ],
      notices: [],
    });
  });

  it('tells of a file that is not there', async () => {
    const file = join(folder, 'none.yaml');
    const notes: string[] = [];
    const output: Output = {
      tty: false,
      print() {},
      write() {},
      json() {},
      note: (text) => void notes.push(text),
    };
    expect(await main(['check', '-c', file], output)).toBe(2);
    expect(notes.join('\n')).toContain('none.yaml does not exist');
  });

  it('says what was changed live in the data directory, and what of it gives way to the file', async () => {
    mkdirSync(join(folder, 'data'));
    const store = sqliteStore({ path: join(folder, 'data', 'state.db'), clock: new VirtualTime() });
    const event: LedgerEvent = {
      id: 'ev_1',
      at: '2026-01-01T00:00:00.000Z',
      type: 'configuration-changed',
      subject: 'configuration',
      actor: 'token:ann',
      causes: [],
      data: {},
    };
    const by = { actor: 'token:ann', at: event.at, event: event.id };
    await store.overlays.change(
      [
        { path: 'routes.chat.queue.max', value: 5, ...by },
        { path: 'routes.chat.deadline', value: '3s', over: '1s', ...by },
      ],
      [],
      event,
    );
    // Read while it is open, as beside a running Armature, and while it is not.
    const beside = await check(VALID);
    await store.close();
    const alone = await check(VALID);
    expect(alone).toEqual(beside);
    expect(alone.code).toBe(0);
    expect(alone.out).toContain('routes.chat.queue.max: was changed live to 5 by token:ann');
    expect(alone.out).toContain('a live change is refused: routes.chat.deadline was changed live to "3s"');
  });

  it('refuses a version that the registry of the data directory does not have', async () => {
    const naming = (version: string) =>
      VALID.replace('{ engine: sim }', `{ engine: sim, version: "${version}" }`);
    const before = await check(naming('m@1'));
    expect(before.code).toBe(0);
    expect(before.out).toContain('m@1 cannot be looked up: there is no registry in ./data yet');
    mkdirSync(join(folder, 'data'));
    const store = sqliteStore({ path: join(folder, 'data', 'state.db'), clock: new VirtualTime() });
    const at = '2026-01-01T00:00:00.000Z';
    const event = { at, type: 'version-added', subject: 's', actor: 'a', causes: [], data: {} };
    await store.registry.addArtifact({ sha256: 'f', bytes: 1, place: 'live', inspection: {}, storedMs: 0 });
    const made = { model: 'm', manifest: {}, digest: 'd', files: [{ path: 'p', sha256: 'f' }] };
    await store.registry.addVersion(made, () => ({ id: 'ev_1', ...event }));
    const move = { model: 'm', alias: 'production', to: 1, expect: null };
    await store.registry.moveAlias(move, { id: 'ev_2', ...event });
    expect((await check(naming('m@1'))).code).toBe(0);
    expect((await check(naming('m@production'))).code).toBe(0);
    for (const version of ['m@2', 'm@staging', 'n@1']) {
      const { code, err } = await check(naming(version));
      expect(code).toBe(2);
      expect(err).toContain(`backends.b1.version: there is no version ${version} in the registry`);
    }
    await store.close();
  });
});
