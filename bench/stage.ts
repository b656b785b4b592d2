import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../src/kernel/clock.ts';
import { systemTimers } from '../src/kernel/timers.ts';
import type { Peer } from './peers/peers.ts';
import { processTree } from './process-tree.ts';

/** The machine that a comparison runs on: which core does what, the upstream, and the peers that stand before it. */

/** The proxy's core, and that of load and upstream. */
export const PROXY_CORE = 0;
const LOAD_CORE = 1;
const START_MS_MAX = 60_000;
const STOP_MS_MAX = 10_000;

export const UPSTREAM_PATH = '/v1/chat/completions';

export interface Standing {
  peer: Peer;
  version: string;
  pid: number;
  /** `HOST:PORT`. */
  address: string;
  headers: string[];
}

/** Percentiles of `load`, microseconds. */
export interface Times {
  count: number;
  p50Us: number;
  p99Us: number;
}

interface Way {
  requests: number;
  total: Times;
  first: Times;
}

/** What bench/native/load.c prints. */
export interface Loaded {
  seconds: number;
  bad: number;
  events: number;
  reads: number;
  dials: number;
  age: Times;
  a: Way;
  b: Way;
}

export interface StreamShape {
  events: number;
  gapUs: number;
  firstUs: number;
}

const pinned = availableParallelism() >= 2 && spawnSync('taskset', ['-V']).status === 0;

function onCore(core: number, argv: readonly string[]): [string, string[]] {
  const all = pinned ? ['taskset', '-c', String(core), ...argv] : [...argv];
  return [all[0]!, all.slice(1)];
}

/** A chat of about 550 bytes; where it streams, the mock finds the shape in its words. */
function chatBody(shape?: StreamShape): string {
  const words = shape ? ` mock:${shape.events}/${shape.gapUs}/${shape.firstUs}` : '';
  const system =
    'You answer for a shop that sells garden tools. Be short and plain, give one next step, and say so when a ' +
    'question is not about tools, gardens or an order.';
  const user =
    'Hello, I ordered a pair of shears on Monday and a watering can on Tuesday. The page shows one parcel only, and ' +
    'it has been at the same depot since Wednesday. Are both in that parcel, and can it still be sent to my office ' +
    `instead of my home?${words}`;
  return JSON.stringify({
    model: 'mock',
    messages: [
      { role: 'system', content: system },
      { role: 'user', content: user },
    ],
    max_tokens: 256,
    ...(shape && { stream: true }),
  });
}

export class Stage {
  readonly pinned = pinned;
  readonly #folder = mkdtempSync(join(tmpdir(), 'armature-bench-'));
  readonly #native: { mock: string; load: string };
  readonly #children: ChildProcess[] = [];
  readonly upstream: string;

  private constructor(native: { mock: string; load: string }, port: number) {
    this.#native = native;
    this.upstream = `127.0.0.1:${port}`;
  }

  /** Compiles the upstream and the load, and starts the upstream. Throws where there is no C compiler. */
  static async open(): Promise<Stage> {
    const folder = mkdtempSync(join(tmpdir(), 'armature-bench-native-'));
    const built = (name: string) => {
      const source = fileURLToPath(new URL(`native/${name}.c`, import.meta.url));
      execFileSync('cc', ['-O2', '-o', join(folder, name), source], {
        stdio: ['ignore', 'ignore', 'inherit'],
      });
      return join(folder, name);
    };
    const stage = new Stage({ mock: built('mock'), load: built('load') }, await freePort());
    const port = stage.upstream.split(':')[1]!;
    stage.#children.push(spawn(...onCore(LOAD_CORE, [stage.#native.mock, port]), { stdio: 'ignore' }));
    await waitFor(() => fetch(`http://${stage.upstream}/count`).then((response) => response.ok));
    // This process only waits while bursts run; what it does between them belongs to the load's side.
    if (pinned)
      execFileSync('taskset', ['-a', '-c', '-p', String(LOAD_CORE), String(process.pid)], {
        stdio: 'ignore',
      });
    return stage;
  }

  /** Starts a peer on the proxy's core and sees that its answers are right. */
  async start(peer: Peer): Promise<Standing> {
    const version = peer.version();
    if (version === undefined) throw new Error(`${peer.name} is not installed; see bench/peers/install.sh`);
    const folder = join(this.#folder, peer.name);
    mkdirSync(folder);
    const spot = { port: await freePort(), upstream: this.upstream, folder };
    const { argv, env } = peer.command(spot);
    const log = openSync(join(folder, 'log'), 'w');
    const child = spawn(...onCore(PROXY_CORE, argv), {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: ['ignore', log, log],
    });
    this.#children.push(child);
    const standing: Standing = {
      peer,
      version,
      pid: child.pid!,
      address: `127.0.0.1:${spot.port}`,
      headers: peer.headers?.(spot) ?? [],
    };
    await waitFor(() => this.#answersRightly(standing));
    const before = await this.#posts();
    const requests = await this.requests(standing, 1, 0.2);
    const streams = await this.streams(standing, 1, 0.2, { events: 7, gapUs: 2000, firstUs: 0 });
    if (requests.bad + streams.bad > 0)
      throw new Error(`${peer.name} does not answer rightly; see ${folder}/log`);
    const reached = (await this.#posts()) - before;
    if (reached < requests.a.requests + streams.a.requests)
      throw new Error(`${peer.name} answers from a cache`);
    return standing;
  }

  /** A closed loop of plain requests. */
  requests(standing: Standing, connections: number, seconds: number): Promise<Loaded> {
    return this.#load(standing, chatBody(), ['-n', String(connections), '-t', String(seconds)]);
  }

  /** One request in flight: straight to the upstream (a) and through the peer (b), in turn. */
  pairs(standing: Standing, requests: number): Promise<Loaded> {
    const more = ['-b', standing.address, '-k', '50', '-n', '1', '-r', String(requests)];
    return this.#load({ ...standing, address: this.upstream }, chatBody(), more);
  }

  /** Streams that are always open. */
  streams(standing: Standing, count: number, seconds: number, shape: StreamShape): Promise<Loaded> {
    const spreadUs = shape.firstUs + (shape.events - 1) * shape.gapUs;
    const more = [
      '-n',
      String(count),
      '-t',
      String(seconds),
      '-e',
      String(shape.events),
      '-s',
      String(spreadUs),
    ];
    return this.#load(standing, chatBody(shape), more);
  }

  /** The upstream itself, to measure what is there without a peer. */
  direct(standing: Standing): Standing {
    return { ...standing, address: this.upstream, headers: [] };
  }

  async close(): Promise<void> {
    const pids = this.#children.flatMap((child) => (child.pid === undefined ? [] : processTree(child.pid)));
    for (const child of this.#children) child.kill('SIGTERM');
    const alive = () => this.#children.some((child) => child.exitCode === null && child.signalCode === null);
    await waitFor(async () => !alive(), STOP_MS_MAX).catch(() => {
      for (const pid of pids) kill(pid);
    });
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #answersRightly({ address, headers }: Standing): Promise<boolean> {
    const response = await fetch(`http://${address}${UPSTREAM_PATH}`, {
      method: 'POST',
      headers: [
        ['content-type', 'application/json'],
        ...headers.map((line) => line.split(': ', 2) as [string, string]),
      ],
      body: chatBody(),
    });
    return response.ok && (await response.text()).includes('by noon tomorrow');
  }

  async #posts(): Promise<number> {
    const response = await fetch(`http://${this.upstream}/count`);
    return ((await response.json()) as { posts: number }).posts;
  }

  #load(standing: Standing, body: string, more: string[]): Promise<Loaded> {
    const file = join(this.#folder, 'body.json');
    writeFileSync(file, body);
    const headers = standing.headers.flatMap((line) => ['-H', line]);
    const argv = [
      this.#native.load,
      '-a',
      standing.address,
      '-f',
      file,
      '-p',
      UPSTREAM_PATH,
      ...headers,
      ...more,
    ];
    return new Promise((resolve, reject) => {
      const child = spawn(...onCore(LOAD_CORE, argv), { stdio: ['ignore', 'pipe', 'inherit'] });
      let printed = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
      });
      child.on('error', reject);
      child.on('close', (code) => {
        if (code === 0) resolve(JSON.parse(printed) as Loaded);
        else reject(new Error(`load ended with ${code}`));
      });
    });
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Polls until it holds; a rejection counts as not yet. Rejects after `withinMs` milliseconds. */
export async function waitFor(holds: () => Promise<boolean>, withinMs = START_MS_MAX): Promise<void> {
  const end = systemClock.mono() + withinMs;
  let last: unknown;
  while (systemClock.mono() < end) {
    try {
      if (await holds()) return;
    } catch (error) {
      last = error;
    }
    await pause(20);
  }
  throw new Error(`not within ${withinMs} ms${last instanceof Error ? `: ${last.message}` : ''}`);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => systemTimers.set(ms, resolve));
}
