import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect } from 'vitest';
import { seededRandom } from '../../src/kernel/random.ts';
import { BatchRunner } from '../../src/sessions/batches/runner.ts';
import { FileDisk } from '../../src/sessions/files/disk.ts';
import type { FileStore } from '../../src/sessions/files/store/index.ts';
import module from '../../src/sessions/files/store/module.ts';
import type { StoredBatch } from '../../src/sessions/files/store/rows.ts';
import type { StoreError } from '../../src/store/contracts.ts';
import { Database } from '../../src/store/sqlite/database.ts';
import { type Engine, VirtualGateway } from './virtual-gateway.ts';

const A = 'http://a:1';
export const HOUR = 3_600_000;
const worlds: BatchWorld[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

/** Files and batches over the path in virtual time; the store is a file, asked without a thread. */
export class BatchWorld {
  readonly gateway: VirtualGateway;
  readonly folder = mkdtempSync(join(tmpdir(), 'armature-batches-'));
  readonly disk = new FileDisk(this.folder);
  readonly store: FileStore;
  readonly runners: BatchRunner[] = [];
  /** What calls of the store reject with instead. */
  trouble: StoreError | undefined;
  readonly #database: Database;
  #batches = 0;

  constructor(engine: Engine, more: { route?: object; backend?: object; top?: object } = {}) {
    this.gateway = new VirtualGateway({
      backends: { b1: { engine: 'openai', model: 'm', endpoints: [`${A}/v1`], ...more.backend } },
      routes: { chat: { targets: [{ backend: 'b1' }], deadline: '10s', ...more.route } },
      ...more.top,
    });
    this.gateway.engines.set(A, engine);
    const database = new Database(join(this.folder, 'files.db'), () => undefined, {
      migrations: module.migrations,
    });
    const operations = module.operations(database) as Record<string, (args: never) => unknown>;
    this.store = {
      exists: true,
      call: async (name: string, args: unknown) => {
        if (this.trouble) throw this.trouble;
        return database.transaction(() => operations[name]!(args as never));
      },
      close: async () => database.close(),
    } as unknown as FileStore;
    this.#database = database;
    worlds.push(this);
  }

  async close(): Promise<void> {
    let open = this.runners.length;
    this.trouble = undefined;
    this.gateway.path.draining = true;
    this.gateway.path.endAll();
    for (const runner of this.runners) void runner.close().then(() => open--);
    for (let i = 0; open > 0 && i < 1000; i++) await this.pass(100);
    this.#database.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A worker that runs batches; `pid` is that of a process that lives, or is dead. */
  worker(boot: string, pid = process.ppid): BatchRunner {
    const { time } = this.gateway;
    const { store, disk } = this;
    const log = { warn: () => undefined };
    const runner = new BatchRunner({
      store,
      disk,
      boot,
      pid,
      clock: time,
      timers: time,
      random: seededRandom(3),
      log,
    });
    runner.start(this.gateway.path);
    this.runners.push(runner);
    return runner;
  }

  async start(count: number, more: { tenant?: string; windowMs?: number } = {}): Promise<string> {
    const { tenant = 'open', windowMs = 24 * HOUR } = more;
    const lines = Array.from({ length: count }, (_, i) => ({
      custom_id: `q-${i}`,
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model: 'chat', messages: [{ role: 'user', content: `question ${i}` }] },
    }));
    const id = `file-${this.#batches}`;
    const text = lines.map((line) => JSON.stringify(line)).join('\n');
    writeFileSync(this.disk.pathOf(id), text);
    const createdMs = this.gateway.time.wall();
    const file = {
      id,
      tenant,
      purpose: 'batch',
      filename: 'in',
      bytes: text.length,
      createdMs,
      expiresMs: undefined,
    };
    const bounds = { tenantBytesMax: 1e9, totalBytesMax: 1e9, tenantFilesMax: 100 };
    expect(await this.store.call('addFile', { file, bounds })).toBe('added');
    const batch = await this.store.call('addBatch', {
      batch: {
        id: `batch_${this.#batches++}`,
        tenant,
        endpoint: '/v1/chat/completions',
        inputFile: id,
        completionWindow: '24h',
        metadata: null,
        outputKeptMs: undefined,
        createdMs,
        expiresMs: createdMs + windowMs,
      },
      tenantOpenMax: 100,
    });
    return (batch as StoredBatch).id;
  }

  async batch(id: string, tenant = 'open'): Promise<StoredBatch> {
    return (await this.store.call('batch', { id, tenant }))!;
  }

  /** Turns virtual time, with the disk's own time in between, until it holds. */
  async until(holds: () => boolean | Promise<boolean>, stepMs = 50, steps = 20_000): Promise<void> {
    for (let i = 0; i < steps; i++) {
      await this.pass(stepMs);
      if (await holds()) return;
    }
    expect.fail('it never came to be');
  }

  async pass(ms: number): Promise<void> {
    await this.gateway.time.advance(ms);
    // The file is read by threads of their own.
    for (let i = 0; i < 10; i++) await setImmediate();
  }

  async end(id: string, stepMs?: number): Promise<StoredBatch> {
    await this.until(
      async () =>
        !['validating', 'in_progress', 'finalizing', 'cancelling'].includes((await this.batch(id)).status),
      stepMs,
    );
    return this.batch(id);
  }

  linesOf(
    file: string | undefined,
  ): { custom_id: string; error: { code: string } | null; response: { status_code: number } | null }[] {
    if (file === undefined) return [];
    const text = readFileSync(this.disk.pathOf(file), 'utf8');
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  get asked(): string[] {
    return this.gateway.served.map(({ request }) => JSON.parse(String(request.body)).messages[0].content);
  }
}

/** Chooses what an engine does by what it is asked, and by how often it was asked before. */
export function choosing(choose: (asked: string, before: number) => Engine): Engine {
  const times = new Map<string, number>();
  return (served) => {
    const asked = JSON.parse(String(served.request.body)).messages[0].content;
    const before = times.get(asked) ?? 0;
    times.set(asked, before + 1);
    choose(asked, before)(served);
  };
}
