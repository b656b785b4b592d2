import { existsSync, rmSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { gguf } from '../registry/model-files.ts';
import { ControlProcess } from './control-process.ts';
import { config, Files, run } from './registry-command.ts';

/** What of the registry a lost answer or a death leaves: one version however often it is asked for (trap 32), and no orphan. */

let control: ControlProcess;
let files: Files;
beforeAll(async () => {
  control = await ControlProcess.start(config({}));
});
afterAll(() => control[Symbol.asyncDispose]());
beforeEach(() => {
  files = new Files();
});
afterEach(() => rmSync(files.folder, { recursive: true }));

/** Passes everything on to control, and loses the first answers to what seals a version, which control has given. */
class LosesAnswers implements AsyncDisposable {
  lost = 0;
  readonly #server: Server;

  private constructor(times: number) {
    this.#server = createServer((asked, answer) => {
      const { method, url, headers } = asked;
      const options = { port: control.adminPort, method, path: url, headers };
      const passed = request({ host: '127.0.0.1', ...options }, (given) => {
        if (url?.endsWith('/versions') && method === 'POST' && this.lost < times) {
          this.lost++;
          given.resume().on('end', () => answer.socket!.destroy());
          return;
        }
        answer.writeHead(given.statusCode!, given.headers);
        given.pipe(answer);
      });
      asked.pipe(passed);
    });
  }

  static async start(times: number): Promise<LosesAnswers> {
    const proxy = new LosesAnswers(times);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get seen() {
    const { port } = this.#server.address() as AddressInfo;
    return { token: control.token, adminPort: port };
  }

  async [Symbol.asyncDispose]() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const numbers = async (model: string) => {
  const { versions } = (await run(control, 'registry', 'ls', model, '--json')).last;
  return versions.map(({ number }: { number: number }) => number);
};

test('the command asks again where the answer is lost, and one version comes of it', async () => {
  await using proxy = await LosesAnswers.start(2);
  const add = files.version('lost', { 'm.gguf': gguf({ 'general.name': 'lost' }) });
  const added = await run(proxy.seen, ...add, '--json');
  expect([added.code, proxy.lost]).toEqual([0, 2]);
  expect(added.last).toMatchObject({ type: 'done', version: 'lost@1' });
  expect(added.notes).toContain('it is asked again');
  expect(await numbers('lost')).toEqual([1]);
  const told = await control.events('version-added');
  expect(told.filter(({ subject }) => subject.startsWith('version:lost@'))).toHaveLength(1);
  // Whoever wants a second one has it.
  expect((await run(control, ...add, '--json')).last.version).toBe('lost@2');
});

test('trap 32: what is added at once by several, without a key, is as many versions, each with a number of its own', async () => {
  const add = files.version('many', { 'm.gguf': gguf({ 'general.name': 'many' }) });
  const added = await Promise.all(Array.from({ length: 6 }, () => run(control, ...add, '--json')));
  const given = added.map(({ last }) => last.number).sort();
  expect(given).toEqual([1, 2, 3, 4, 5, 6]);
  expect(await numbers('many')).toEqual([6, 5, 4, 3, 2, 1]);
  // By one key they are one, however many ask at once.
  const keyed = files.version('one', { 'm.gguf': gguf({ 'general.name': 'one' }) });
  const same = await Promise.all(
    Array.from({ length: 6 }, () => run(control, ...keyed, '--once', 'k', '--json')),
  );
  expect(same.map(({ last }) => last.version)).toEqual(Array(6).fill('one@1'));
});

test('a key of the caller gives the version that it made, also after a restart, and nothing else', async () => {
  const add = files.version('kept', { 'm.gguf': gguf({ 'general.name': 'kept' }) });
  expect((await run(control, ...add, '--once', 'job-7', '--json')).last.version).toBe('kept@1');
  await control.end('SIGKILL');
  await control.up();
  expect((await run(control, ...add, '--once', 'job-7', '--json')).last.version).toBe('kept@1');
  const others = files.version('kept', { 'm.gguf': gguf({ 'general.name': 'another' }) });
  const refused = await run(control, ...others, '--once', 'job-7');
  expect(refused).toMatchObject({ code: 1, notes: expect.stringContaining("by the key 'job-7' kept@1 was") });
  expect(await numbers('kept')).toEqual([1]);
  const odd = await run(control, ...add, '--once', 'a key');
  expect(odd).toMatchObject({ code: 2, notes: expect.stringContaining('without spaces') });
});

test('what a death left where nothing names it goes when control starts', async () => {
  const add = files.version('left', { 'm.gguf': gguf({ 'general.name': 'left' }) });
  const [file] = (await run(control, ...add, '--json')).last.manifest.files;
  await control.end('SIGKILL');
  // As it is when control dies between the word that it is removed and the removal.
  const store = sqliteStore({ path: join(control.data, 'state.db'), clock: systemClock });
  const sealed = (await store.registry.version('left', 1))!;
  const told = (await store.ledger.event(sealed.event))!.event;
  await store.registry.removeVersion('left', 1, { ...told, id: 'ev_removed', type: 'version-removed' });
  await store.close();
  const place = join(control.data, 'artifacts/sha256', file.sha256.slice(0, 2), file.sha256);
  expect(existsSync(place)).toBe(true);
  await control.up();
  await vi.waitFor(() => expect(existsSync(place)).toBe(false), 10_000);
});

test('an address where nothing answers any more is told at once, as before', async () => {
  const taken = createTcpServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as AddressInfo;
  await new Promise((resolve) => taken.close(resolve));
  const add = files.version('none', { 'm.gguf': gguf({}) });
  expect(await run({ token: control.token, adminPort: port }, ...add)).toMatchObject({
    code: 1,
    notes: expect.stringContaining('no Armature answers'),
  });
});
