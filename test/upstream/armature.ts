import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type Answer, type Ask, ask } from './client.ts';
import type { ScriptedEngine } from './engine.ts';
import type { Headers } from './exchange.ts';
import { type Inspector, openInspector } from './inspector.ts';
import { killRemains, type Part, partsOf, socketsOf } from './parts.ts';
import { parseMetrics, type Sample } from './samples.ts';
import type { Json } from './sse.ts';
import { eventually, within } from './waiting.ts';

const COMMAND = join(import.meta.dirname, '../../bin/armature');
const READY_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 15_000;

/** The file, as an object. `gateway.listen` and `admin.listen` are filled in where absent. */
export type Config = Record<string, Json>;

export interface StartOptions {
  /** False: does not wait until the gateway is ready. */
  ready?: boolean;
  /** Environment beside the tests' own, whose ARMATURE_* are not passed on. */
  env?: Record<string, string>;
}

export interface CommandResult {
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/** A backend as configurations write it, with limits that a test is not surprised by. */
export function backendOf(
  engines: ScriptedEngine | string | (ScriptedEngine | string)[],
  more: Config = {},
): Config {
  const engine: string = more['engine'] ?? 'openai';
  const openai = !['oip', 'triton', 'kserve', 'mlserver', 'openvino', 'torchserve'].includes(engine);
  const list = Array.isArray(engines) ? engines : [engines];
  const endpoints = list.map((one) => (typeof one === 'string' ? one : openai ? one.v1 : one.root));
  return {
    engine,
    model: 'engine-model',
    endpoints,
    limits: { concurrency: 256 },
    ...more,
    timeouts: { connect: '1s', firstByte: '10s', idle: '10s', total: '60s', ...more['timeouts'] },
  };
}

/** One backend `b1` behind one route `chat`. */
export function plainConfig(
  engines: ScriptedEngine | string | (ScriptedEngine | string)[],
  more: { backend?: Config; route?: Config; top?: Config } = {},
): Config {
  return {
    ...more.top,
    backends: { b1: backendOf(engines, more.backend) },
    routes: { chat: { targets: [{ backend: 'b1' }], deadline: '30s', ...more.route } },
  };
}

/** An Armature of the shipped command in a temporary folder of its own; nothing of it is left after disposal. */
export class Armature implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'armature-test-'));
  readonly file = join(this.folder, 'armature.yaml');
  readonly data = join(this.folder, 'data');
  gatewayPort = 0;
  adminPort = 0;
  /** The `up` that was started last. */
  #up: ChildProcess | undefined;
  #starts = 0;
  #env: Record<string, string>;
  #killAtExit = () => killRemains(this.data);

  constructor(env: Record<string, string>) {
    mkdirSync(this.data);
    this.#env = env;
    process.on('exit', this.#killAtExit);
  }

  /** Writes the configuration; addresses stay the same from the first to the last. */
  async configure(config: Config): Promise<void> {
    this.gatewayPort ||= portOf(config['gateway']?.listen) ?? (await freePort());
    this.adminPort ||= portOf(config['admin']?.listen) ?? (await freePort());
    const listening = {
      ...config,
      gateway: { listen: `127.0.0.1:${this.gatewayPort}`, ...config['gateway'] },
      admin: { listen: `127.0.0.1:${this.adminPort}`, ...config['admin'] },
    };
    writeFileSync(this.file, stringify(listening));
  }

  /** Starts `up`; a second one beside a living or dead first is the test's own business. */
  async up(options: StartOptions = {}): Promise<void> {
    const log = openSync(join(this.folder, `up-${++this.#starts}.log`), 'w');
    this.#up = spawn(COMMAND, ['up', '-c', this.file, '--data', this.data], {
      cwd: this.folder,
      env: this.#environment(),
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    if (options.ready !== false) await this.ready();
  }

  async ready(withinMs = READY_WITHIN_MS): Promise<void> {
    const look = async () => {
      const code = this.#up?.exitCode;
      if (typeof code === 'number') throw new Error(`armature up left with ${code}:\n${this.logs}`);
      return (await ask(this.gatewayPort, { method: 'GET', path: '/readyz' }, 2000)).status === 200;
    };
    try {
      await eventually('/readyz says 200', look, withinMs);
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error}\n${this.logs}`);
    }
  }

  /** What all starts have printed, on both outputs. */
  get logs(): string {
    const files = readdirSync(this.folder).filter((name) => name.endsWith('.log'));
    return files.map((name) => readFileSync(join(this.folder, name), 'utf8')).join('');
  }

  ask(request: Ask, withinMs?: number): Promise<Answer> {
    return ask(this.gatewayPort, request, withinMs);
  }
  /** A chat on the route `chat` unless the body names another. */
  chat(body: Record<string, unknown> = {}, headers: Headers = [], withinMs?: number): Promise<Answer> {
    return this.ask({ path: '/v1/chat/completions', body: chatBody(body), headers }, withinMs);
  }
  admin(path: string, request: Partial<Ask> = {}): Promise<Answer> {
    return ask(this.adminPort, { method: 'GET', ...request, path });
  }

  async metrics(): Promise<Sample[]> {
    const answer = await this.admin('/metrics');
    if (answer.status !== 200) throw new Error(`/metrics: ${answer}`);
    return parseMetrics(answer.content.toString());
  }
  /** The sum over all series of that name that carry these labels. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const wanted = Object.entries(labels);
    return (await this.metrics())
      .filter(
        (sample) => sample.name === name && wanted.every(([key, value]) => sample.labels[key] === value),
      )
      .reduce((sum, sample) => sum + sample.value, 0);
  }
  /** Waits until every gauge of running and waiting requests reads zero; throws with those that do not. */
  async idle(withinMs = 5000): Promise<void> {
    let busy: Sample[] = [];
    const look = async () => {
      const samples = await this.metrics();
      busy = samples.filter(
        ({ name, value }) => /^armature_(inflight|queue_depth)$/.test(name) && value !== 0,
      );
      return busy.length === 0;
    };
    await eventually('idle', look, withinMs).catch(() => {
      throw new Error(`not idle after ${withinMs} ms: ${JSON.stringify(busy)}`);
    });
  }

  /** Runs another command of the same program on this data directory. */
  run(...args: string[]): Promise<CommandResult> {
    const options = { cwd: this.folder, env: this.#environment(), timeout: 30_000, maxBuffer: 64 * 2 ** 20 };
    return new Promise((resolve) => {
      const child = execFile(COMMAND, [...args, '--data', this.data], options, (_error, stdout, stderr) =>
        resolve({ exitCode: child.exitCode, stdout, stderr }),
      );
    });
  }
  async why(id: string): Promise<Json> {
    const { exitCode, stdout, stderr } = await this.run('why', id, '--json');
    if (exitCode !== 0) throw new Error(`armature why ${id}: ${exitCode} ${stderr}`);
    return JSON.parse(stdout);
  }
  /** The ledger's events, oldest first. */
  async events(type?: string): Promise<Json[]> {
    const { exitCode, stdout, stderr } = await this.run('events', ...(type ? ['--type', type] : []));
    if (exitCode !== 0) throw new Error(`armature events: ${exitCode} ${stderr}`);
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }
  /** A new key of the tenant. */
  async key(tenant: string): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run('keys', 'create', tenant, '--json');
    if (exitCode !== 0) throw new Error(`armature keys create ${tenant}: ${exitCode} ${stderr}`);
    return JSON.parse(stdout).key;
  }

  /** The living processes: `supervisor`, `control`, `gateway-0`, `host-NAME`. */
  parts(): Part[] {
    return partsOf(this.data);
  }
  pid(part: string): number {
    const found = this.parts().find((one) => one.part === part);
    if (found === undefined) throw new Error(`no ${part} runs`);
    return found.pid;
  }
  /** Sends a signal to one part and gives the pid it had. */
  kill(part: string, signal: NodeJS.Signals = 'SIGKILL'): number {
    const pid = this.pid(part);
    process.kill(pid, signal);
    return pid;
  }
  /** Sockets that all parts hold open. */
  sockets(): number {
    return this.parts().reduce((sum, { pid }) => sum + socketsOf(pid), 0);
  }

  /** Opens the inspector of a part, once; needs NODE_OPTIONS=--inspect-port=0 in the environment. */
  inspect(part: string): Promise<Inspector> {
    return openInspector(this.pid(part), () => this.logs);
  }

  /** SIGTERM to `up`; gives its exit code, or throws when it does not leave in time. */
  async stop(withinMs = STOP_WITHIN_MS): Promise<number | null> {
    const up = this.#up;
    if (up === undefined || up.exitCode !== null || up.signalCode !== null) return up?.exitCode ?? null;
    up.kill('SIGTERM');
    return this.left(withinMs);
  }
  /** Waits until `up` has left by itself. */
  left(withinMs = STOP_WITHIN_MS): Promise<number | null> {
    const up = this.#up!;
    if (up.exitCode !== null || up.signalCode !== null) return Promise.resolve(up.exitCode);
    return within('armature up leaves', withinMs, new Promise((resolve) => up.once('exit', resolve)));
  }

  /** Ends everything. ARMATURE_TEST_KEEP=1 leaves the folder, with the configuration, the logs and the data. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.stop();
    } finally {
      killRemains(this.data);
      process.off('exit', this.#killAtExit);
      if (process.env['ARMATURE_TEST_KEEP']) process.stderr.write(`kept ${this.folder}\n`);
      else rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
    }
  }

  #environment(): NodeJS.ProcessEnv {
    const outer = Object.entries(process.env).filter(([name]) => !name.startsWith('ARMATURE_'));
    return { ...Object.fromEntries(outer), HOME: this.folder, ...this.#env };
  }
}

/** Runs `armature up` on this configuration and waits until it is ready. */
export async function startArmature(config: Config, options: StartOptions = {}): Promise<Armature> {
  const armature = new Armature(options.env ?? {});
  try {
    await armature.configure(config);
    await armature.up(options);
    return armature;
  } catch (error) {
    await armature[Symbol.asyncDispose]();
    throw error;
  }
}

export function chatBody(more: Record<string, unknown> = {}): Json {
  return { model: 'chat', messages: [{ role: 'user', content: 'Hi' }], ...more };
}

function portOf(listen: string | undefined): number | undefined {
  return listen === undefined ? undefined : Number(listen.slice(listen.lastIndexOf(':') + 1));
}

/** A port that nobody listens on, below the range from which the system takes the callers' side of connections. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 31_000);
    const free = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once('error', () => resolve(false));
      server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
