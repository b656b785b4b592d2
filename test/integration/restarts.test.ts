import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Armature, freePort, startArmature } from '../upstream/armature.ts';
import type { Answer } from '../upstream/client.ts';
import { eventually } from '../upstream/waiting.ts';

/** Endpoints that are restarted one after another under load, each in good order or killed. */

const ENGINE = join(import.meta.dirname, '../upstream/draining-engine.ts');
const ENDPOINTS = 4;
/** Callers that ask one request after another, half of them for streams. */
const CALLERS = 16;

class Engine implements AsyncDisposable {
  readonly port: number;
  readonly #manner: string;
  #process!: ChildProcess;

  private constructor(port: number, manner: string) {
    this.port = port;
    this.#manner = manner;
  }

  static async start(manner: string): Promise<Engine> {
    const engine = new Engine(await freePort(), manner);
    await engine.#start();
    return engine;
  }

  async #start(): Promise<void> {
    this.#process = spawn(process.execPath, [ENGINE, String(this.port), this.#manner], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(this.#process.stdout!, 'data');
  }

  /** Ends it by this signal, and starts another on its port once it has left. */
  async restart(signal: NodeJS.Signals): Promise<void> {
    const left = once(this.#process, 'exit');
    this.#process.kill(signal);
    await left;
    await this.#start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const left = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await left;
  }
}

interface Asked {
  stream: boolean;
  answer: Answer;
}

/** Asks without a pause until it is told to stop; gives every answer. */
function load(armature: Armature, callers = CALLERS, body: object = {}) {
  let stopped = false;
  const asked: Asked[] = [];
  const running = Array.from({ length: callers }, async (_, caller) => {
    const stream = caller % 2 === 0;
    while (!stopped) asked.push({ stream, answer: await armature.chat({ stream, ...body }, [], 30_000) });
  });
  return {
    asked,
    async stop(): Promise<Asked[]> {
      stopped = true;
      await Promise.all(running);
      return asked;
    },
  };
}

function isWhole({ stream, answer }: Asked): boolean {
  return answer.status === 200 && answer.fault === undefined && (!stream || answer.done);
}

const hadBegun = ({ stream, answer }: Asked) => stream && answer.status === 200 && answer.events.length > 1;
const told = ({ stream, answer }: Asked) => `${stream ? 'stream' : 'whole'} ${answer}`;

async function allWell(armature: Armature): Promise<boolean> {
  const { backends } = (await armature.admin('/api/v1/status')).json();
  return backends[0].endpoints.every(({ state }: { state: string }) => state === 'well');
}

/** Restarts each endpoint in turn under load, and gives what every caller was answered. */
async function restartAll(manner: string, signal: NodeJS.Signals): Promise<Asked[]> {
  await using engines = new AsyncDisposableStack();
  const all: Engine[] = [];
  for (let at = 0; at < ENDPOINTS; at++) all.push(engines.use(await Engine.start(manner)));
  await using armature = await startArmature({
    backends: {
      b1: {
        engine: 'vllm',
        model: 'm',
        endpoints: all.map(({ port }) => `http://127.0.0.1:${port}/v1`),
        limits: { concurrency: 64 },
      },
    },
    routes: { chat: { targets: [{ backend: 'b1' }], deadline: '20s' } },
  });
  const { asked, stop } = load(armature);
  for (const engine of all) {
    const before = asked.length;
    await eventually('traffic goes on', () => asked.length > before + 2 * CALLERS, 20_000);
    // One after another: the one before is in use again.
    await eventually('all are well', () => allWell(armature), 20_000);
    await engine.restart(signal);
  }
  const before = asked.length;
  await eventually('traffic goes on', () => asked.length > before + 2 * CALLERS, 20_000);
  const answers = await stop();
  await armature.idle();
  return answers;
}

describe('endpoints restarted one after another under load', { timeout: 120_000 }, () => {
  test.each(['closes', 'busy', 'lingers'])(
    'fail nobody where each finishes what it has (it %s)',
    async (manner) => {
      const answers = await restartAll(manner, 'SIGTERM');
      expect(answers.length).toBeGreaterThan(5 * CALLERS);
      expect(answers.filter((each) => !isWhole(each)).map(told)).toEqual([]);
    },
  );

  test('fail nobody where they are killed, save the streams that had begun', async () => {
    const answers = await restartAll('closes', 'SIGKILL');
    expect(answers.filter((each) => !isWhole(each) && !hadBegun(each)).map(told)).toEqual([]);
    expect(answers.filter(hadBegun).length).toBeGreaterThan(0);
  });
});

describe('a host of ours that is replaced under load', { timeout: 120_000 }, () => {
  const config = (decodeTokensPerSecond: number) => ({
    backends: {
      near: {
        engine: 'sim',
        profile: { coldStart: '500ms', decodeTokensPerSecond, batchMax: 256, kvTokensMax: 1_000_000 },
        limits: { concurrency: 64 },
      },
    },
    routes: { chat: { targets: [{ backend: 'near' }], deadline: '20s' } },
  });

  async function serving(armature: Armature, pid?: number): Promise<number> {
    return eventually(
      'the host serves',
      async () => {
        const status = (await armature.admin('/api/v1/status')).json();
        const { host } = status.backends[0];
        return host.state === 'serving' && host.pid !== pid && host.pid;
      },
      20_000,
    );
  }

  test('by a change of its settings fails nobody', async () => {
    await using armature = await startArmature(config(200));
    let pid = await serving(armature);
    const { asked, stop } = load(armature, CALLERS, { max_tokens: 20 });
    for (const speed of [300, 200]) {
      const before = asked.length;
      await eventually('traffic goes on', () => asked.length > before + 2 * CALLERS, 20_000);
      await armature.configure(config(speed));
      armature.kill('supervisor', 'SIGHUP');
      pid = await serving(armature, pid);
    }
    const answers = await stop();
    expect(answers.filter((each) => !isWhole(each)).map(told)).toEqual([]);
    await armature.idle();
  });

  test('after it was killed fails nobody but the streams that had begun', async () => {
    await using armature = await startArmature(config(200));
    let pid = await serving(armature);
    const { asked, stop } = load(armature, CALLERS, { max_tokens: 20 });
    for (let turn = 0; turn < 2; turn++) {
      const before = asked.length;
      await eventually('traffic goes on', () => asked.length > before + 2 * CALLERS, 20_000);
      armature.kill('host-near');
      pid = await serving(armature, pid);
    }
    const answers = await stop();
    expect(answers.filter((each) => !isWhole(each) && !hadBegun(each)).map(told)).toEqual([]);
    await armature.idle();
  });
});
