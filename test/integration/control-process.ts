import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { LedgerEvent } from '../../src/events/contracts.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { type Connection, connect } from '../../src/links/connect.ts';
import type { Message } from '../../src/links/link.ts';
import type {
  ControlToGateway,
  GatewayToControl,
  HostToControl,
  Snapshot,
} from '../../src/links/messages.ts';
import { socketPath } from '../../src/links/socket-path.ts';
import { freePort } from '../upstream/armature.ts';
import { type Answer, type Ask, ask } from '../upstream/client.ts';
import { eventually, within } from '../upstream/waiting.ts';

const ENTRY = join(import.meta.dirname, '../../src/main.ts');

type Config = Record<string, unknown>;

/** A control process alone: no supervisor and no gateway but those that a test makes. */
export class ControlProcess implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'armature-control-'));
  readonly data = join(this.folder, 'data');
  readonly file = join(this.folder, 'armature.yaml');
  adminPort = 0;
  #child: ChildProcess | undefined;
  #open: Connection<never>[] = [];

  static async start(config: Config): Promise<ControlProcess> {
    const control = new ControlProcess();
    mkdirSync(control.data);
    control.adminPort = await freePort();
    control.write(config);
    await control.up();
    return control;
  }

  /** `admin.listen` is filled in. */
  write(config: Config): void {
    const admin = { listen: `127.0.0.1:${this.adminPort}`, ...(config.admin as object) };
    writeFileSync(this.file, stringify({ ...config, admin }));
  }

  /** Resolves once `answers` says that it does. */
  async up(answers = async () => (await this.admin('/api/openapi.json')).status === 200): Promise<void> {
    const log = openSync(join(this.folder, 'log'), 'a');
    const args = [ENTRY, 'control', '--data', this.data, '-c', this.file];
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', log, log] });
    closeSync(log);
    const look = () => {
      if (this.#child?.exitCode !== null) throw new Error(`control left: ${this.log}`);
      return answers();
    };
    await eventually('control answers', look, 20_000);
  }

  get log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8');
  }
  get token(): string {
    return readFileSync(join(this.data, 'run/admin.token'), 'utf8').trim();
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }
  /** Ends the process and gives its exit code. */
  end(name: NodeJS.Signals): Promise<number | null> {
    this.signal(name);
    return this.left();
  }
  /** Waits until it has left. */
  left(): Promise<number | null> {
    const child = this.#child!;
    if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode);
    return within('control leaves', 10_000, new Promise((resolve) => child.once('exit', resolve)));
  }

  admin(path: string, request: Partial<Ask> = {}): Promise<Answer> {
    return ask(this.adminPort, { method: 'GET', ...request, path });
  }
  /** With the local token. */
  change(method: string, path: string, body?: unknown): Promise<Answer> {
    const headers: [string, string][] = [['authorization', `Bearer ${this.token}`]];
    return this.admin(path, { method, headers, ...(body !== undefined && { body }) });
  }
  async json<Body>(path: string): Promise<Body> {
    const answer = await this.admin(path);
    if (answer.status !== 200) throw new Error(`${path}: ${answer}`);
    return JSON.parse(answer.content.toString()) as Body;
  }
  async events(type: string): Promise<LedgerEvent[]> {
    const text = (await this.admin(`/api/v1/events?type=${type}`)).content.toString();
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as LedgerEvent);
  }
  /** The first event of a type, once there is one. */
  event(type: string): Promise<LedgerEvent> {
    return eventually(`an event ${type}`, async () => (await this.events(type)).at(-1));
  }
  /** The sum over all series that begin so. */
  async metric(start: string): Promise<number> {
    const text = (await this.admin('/metrics')).content.toString();
    const lines = text.split('\n').filter((line) => line.startsWith(start));
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }

  /** Connects as a worker would. */
  async gateway(options: Partial<FakeGatewayOptions> = {}): Promise<FakeGateway> {
    const gateway = new FakeGateway(this.data, { worker: 0, boot: 'boot-0', metrics: [], ...options });
    this.#open.push(gateway.link as Connection<never>);
    await eventually('a snapshot', () => gateway.snapshots.length > 0);
    return gateway;
  }

  /** Connects as a model host would, and tells its address. */
  host(backend: string, address: string): Connection<HostToControl> {
    const link = connect<Message, HostToControl>(socketPath(this.data, 'control'), {
      hello: () => ({
        type: 'hello',
        role: 'host',
        part: `host-${backend}`,
        pid: process.pid,
        boot: 'host-boot',
        backend,
        address,
        note: '',
        upMs: 0,
      }),
      onMessage: () => {},
      timers: systemTimers,
      random: systemRandom,
    });
    this.#open.push(link as Connection<never>);
    return link;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#open.map((link) => link.close()));
    await this.end('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface FakeGatewayOptions {
  worker: number;
  boot: string;
  /** What it answers when it is asked for its metrics. */
  metrics: unknown;
}

/** The worker's side of the link, by hand. */
export class FakeGateway {
  readonly snapshots: Snapshot[] = [];
  readonly stored: number[] = [];
  readonly link: Connection<GatewayToControl>;
  readonly boot: string;
  metrics: unknown;

  constructor(data: string, { worker, boot, metrics }: FakeGatewayOptions) {
    this.boot = boot;
    this.metrics = metrics;
    const about = {
      type: 'hello',
      role: 'gateway',
      part: `gateway-${worker}`,
      pid: process.pid,
      boot,
      worker,
    } as const;
    this.link = connect<ControlToGateway, GatewayToControl>(socketPath(data, 'control'), {
      hello: () => ({ ...about, holdings: {} }),
      onMessage: (message) => this.#heard(message),
      timers: systemTimers,
      random: systemRandom,
    });
  }

  /** The newest snapshot. */
  get snapshot(): Snapshot {
    return this.snapshots.at(-1)!;
  }

  /** Waits for a snapshot beyond a number. */
  after(number: number): Promise<Snapshot> {
    return eventually(`a snapshot after ${number}`, () => this.snapshots.find((it) => it.number > number));
  }

  #heard(message: ControlToGateway): void {
    if (message.type === 'snapshot') this.snapshots.push(message.snapshot);
    if (message.type === 'facts-stored') this.stored.push(message.sequence);
    if (message.type === 'ask' && message.what === 'metrics') {
      this.link.send({ type: 'reply', ask: message.ask, data: this.metrics });
    }
  }
}
