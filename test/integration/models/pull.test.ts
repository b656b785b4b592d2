import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cachePaths, find } from '../../../src/hosts/models/cache.ts';
import { type PullEvent, pull } from '../../../src/hosts/models/pull.ts';
import type { FileSettings } from '../../../src/hosts/models/sources.ts';
import { systemTimers } from '../../../src/kernel/timers.ts';

const SOURCE = 'hf:some/model/deep/weights.gguf';
const FILE = Buffer.alloc(3_000_000, 'a model is a long row of numbers. ');
const SHA256 = createHash('sha256').update(FILE).digest('hex');

/** A hub as the real one behaves: a redirect that tells the checksum, and a store that takes ranges. */
class Hub implements AsyncDisposable {
  readonly requests: { path: string; range: string | undefined; authorization: string | undefined }[] = [];
  /** Cuts each of the next downloads after so many bytes. */
  cuts: number[] = [];
  /** Where it sends those who ask; a path of its own, or another server. */
  store = '/store';
  etag: string | undefined = SHA256;
  refuse: number | undefined;
  readonly #server = createServer((request, response) => this.#answer(request, response));

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url!;
    const { range, authorization } = request.headers;
    this.requests.push({ path, range, authorization });
    if (this.refuse !== undefined) {
      response.writeHead(this.refuse).end();
    } else if (path === '/some/model/resolve/main/deep/weights.gguf') {
      response
        .writeHead(302, { location: this.store, ...(this.etag && { 'x-linked-etag': `"${this.etag}"` }) })
        .end();
    } else if (path === '/store') {
      this.#serve(range, response);
    } else {
      response.writeHead(404).end();
    }
  }

  #serve(range: string | undefined, response: ServerResponse): void {
    const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
    if (from >= FILE.length) {
      response.writeHead(416).end();
      return;
    }
    const bytes = FILE.subarray(from);
    response.writeHead(range ? 206 : 200, { 'content-length': bytes.length });
    const cut = this.cuts.shift();
    if (cut === undefined) response.end(bytes);
    else response.write(bytes.subarray(0, cut), () => response.destroy());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

let hub: Hub;
let folder: string;
let events: PullEvent[];

beforeEach(async () => {
  hub = await new Hub().open();
  folder = mkdtempSync(join(tmpdir(), 'armature-models-'));
  events = [];
});
afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

function bring(file: FileSettings, env: NodeJS.ProcessEnv = {}, signal = new AbortController().signal) {
  return pull(file, {
    folder,
    env: { ...process.env, HF_ENDPOINT: hub.address, no_proxy: '127.0.0.1', ...env },
    timers: systemTimers,
    signal,
    onEvent: (event) => events.push(event),
  });
}

const failures = () => events.flatMap((event) => (event.type === 'failed' ? [event.reason] : []));
const part = () => cachePaths(folder, SOURCE).part;
const filesIn = () => readdirSync(folder).filter((name) => name !== 'locks');

describe('a pull from the hub', () => {
  const file: FileSettings = { from: [{ source: SOURCE }] };

  it('brings the file, checks it against what the hub says, and finds it the next time', async () => {
    const pulled = await bring(file);
    expect(pulled).toMatchObject({ already: false, bytes: FILE.length, sha256: SHA256, source: SOURCE });
    expect(readFileSync(pulled!.path).equals(FILE)).toBe(true);
    const asked = hub.requests.length;
    expect(await bring(file)).toMatchObject({ already: true, path: pulled!.path });
    expect(hub.requests).toHaveLength(asked);
    expect(events.some((event) => event.type === 'progress' && event.total === FILE.length)).toBe(true);
  });

  it('goes on where a transfer broke off', async () => {
    hub.cuts = [1_000_000, 500_000];
    const pulled = await bring(file);
    expect(readFileSync(pulled!.path).equals(FILE)).toBe(true);
    const ranges = hub.requests.filter(({ path }) => path === '/store').map(({ range }) => range);
    expect(ranges[0]).toBeUndefined();
    expect(ranges).toHaveLength(3);
    expect(ranges.at(-1)).toMatch(/^bytes=[1-9]\d*-$/);
  });

  it('goes on with what a pull that was stopped has left', async () => {
    writeFileSync(part(), FILE.subarray(0, 1_234_567));
    const pulled = await bring(file);
    expect(hub.requests.at(-1)!.range).toBe('bytes=1234567-');
    expect(readFileSync(pulled!.path).equals(FILE)).toBe(true);
  });

  it('begins anew where what was left belongs to another file', async () => {
    writeFileSync(part(), Buffer.alloc(1000, 'something else'));
    expect(readFileSync((await bring(file))!.path).equals(FILE)).toBe(true);
    expect(failures()).toEqual([]);
  });

  it('takes no file whose checksum is another, and leaves nothing of it', async () => {
    hub.etag = '0'.repeat(64);
    expect(await bring(file)).toBeUndefined();
    expect(failures()).toEqual([`its SHA-256 is ${SHA256}, not ${'0'.repeat(64)}`]);
    expect(filesIn()).toEqual([]);
  });

  it('goes by the checksum of the configuration before that of the hub', async () => {
    expect(await bring({ ...file, sha256: '1'.repeat(64) })).toBeUndefined();
    hub.etag = undefined;
    expect(await bring({ from: [{ source: SOURCE, sha256: SHA256 }] })).toMatchObject({ sha256: SHA256 });
  });

  it('a file that is not whole yet is not found', async () => {
    const stopping = new AbortController();
    hub.cuts = Array.from({ length: 100 }, () => 200_000);
    const pulling = pull(file, {
      folder,
      env: { ...process.env, HF_ENDPOINT: hub.address, no_proxy: '127.0.0.1' },
      timers: systemTimers,
      signal: stopping.signal,
      onEvent(event) {
        events.push(event);
        expect(find(folder, file)).toBeUndefined();
        if (event.type === 'progress' && event.bytes > 500_000) stopping.abort(new Error('stopped'));
      },
    });
    await expect(pulling).rejects.toThrow('stopped');
    expect(filesIn()).toEqual([expect.stringMatching(/\.part$/)]);
    hub.cuts = [];
    expect(readFileSync((await bring(file))!.path).equals(FILE)).toBe(true);
  });

  it('happens once when several want it at the same time', async () => {
    const pulled = await Promise.all([bring(file), bring(file), bring(file)]);
    expect(pulled.map((one) => one!.already).sort()).toEqual([false, true, true]);
    expect(hub.requests.filter(({ path }) => path === '/store')).toHaveLength(1);
    expect(events.filter(({ type }) => type === 'waiting')).toHaveLength(2);
  });

  it('shows the token to the hub alone', async () => {
    await using store = await new Hub().open();
    hub.store = `${store.address}/store`;
    expect(await bring(file, { HF_TOKEN: 'hf_secret' })).toMatchObject({ sha256: SHA256 });
    expect(hub.requests.map(({ authorization }) => authorization)).toEqual(['Bearer hf_secret']);
    expect(store.requests.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  it.each([
    [401, 'HF_TOKEN'],
    [404, 'no such file'],
    [500, '500'],
  ])('says why where the hub answers %i', async (status, words) => {
    hub.refuse = status;
    expect(await bring(file)).toBeUndefined();
    expect(failures()[0]).toContain(words);
  });
});

describe('sources', () => {
  it('are tried in order, and each failure is told', async () => {
    const other = 'hf:some/model/elsewhere.gguf';
    const sources = [
      { source: 'file:/nowhere/model.gguf' },
      { source: other },
      { source: SOURCE, note: 'the third' },
    ];
    expect(await bring({ from: sources })).toMatchObject({ source: SOURCE, note: 'the third' });
    expect(failures()).toEqual([
      'there is no such file',
      expect.stringContaining('answered 404: no such file'),
    ]);
  });

  it('what is here already is used, wherever it stands in the order', async () => {
    const disk = join(folder, 'own.gguf');
    writeFileSync(disk, FILE);
    const from = [{ source: SOURCE }, { source: `file:${disk}`, sha256: SHA256 }];
    expect(await bring({ from })).toMatchObject({ path: disk, already: true });
    expect(hub.requests).toEqual([]);
  });

  it('a hub that cannot be reached is passed over', async () => {
    const address = hub.address;
    await hub[Symbol.asyncDispose]();
    hub = await new Hub().open();
    expect(await bring({ from: [{ source: SOURCE }] }, { HF_ENDPOINT: address })).toBeUndefined();
    expect(failures()).toEqual([
      expect.stringMatching(/^127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)$/),
    ]);
  });

  it('a file on disk with another checksum is refused', async () => {
    const disk = join(folder, 'own.gguf');
    writeFileSync(disk, 'something else');
    expect(await bring({ from: [{ source: `file:${disk}` }], sha256: SHA256 })).toBeUndefined();
    expect(failures()[0]).toContain('its SHA-256 is');
  });

  it('a package manager that is not there is told', async () => {
    const file = { from: [{ source: 'pip:a==1/b' }, { source: 'npm:a@1/b' }] };
    expect(await bring(file, { PATH: folder })).toBeUndefined();
    expect(failures()).toEqual(['pip is not installed', expect.stringContaining('npm failed')]);
  });

  it('a file of an npm package is brought by npm', { timeout: 120_000 }, async (context) => {
    const pulled = await bring({ from: [{ source: 'npm:empty-npm-package@1.0.0/package.json' }] });
    if (!pulled && !process.env['CI']) context.skip(`npm cannot fetch: ${failures()}`);
    expect(JSON.parse(readFileSync(pulled!.path, 'utf8'))).toMatchObject({ name: 'empty-npm-package' });
    expect(await bring({ from: [{ source: 'npm:empty-npm-package@1.0.0/none.txt' }] })).toBeUndefined();
    expect(failures().at(-1)).toBe('the package has no none.txt');
  });
});
