import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { partsOf } from '../test/upstream/parts.ts';
import { peers } from './peers/peers.ts';
import { freePort, Stage, type Standing, waitFor } from './stage.ts';

/**
 * `node bench/profile.ts [--streams] [--seconds N] [--lines N]`: where a gateway worker spends its time under requests
 * on 32 connections, or under 100 streams: self time by place and by function, from V8's sampling profiler.
 */
const { values } = parseArgs({
  options: {
    streams: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '5' },
    lines: { type: 'string', default: '40' },
  },
});
const SHAPE = { events: 50, gapUs: 10_000, firstUs: 0 };

interface Profile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    hitCount: number;
  }[];
}

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'armature-profile-'));
const stage = await Stage.open();
const armature = peers.find(({ name }) => name === 'armature')!;
const port = await freePort();
const { argv } = armature.command({ port, upstream: stage.upstream, folder });
const log = openSync(join(folder, 'log'), 'w');
const up = spawn(argv[0]!, argv.slice(1), {
  env: { ...process.env, NODE_OPTIONS: '--inspect-port=0' },
  stdio: ['ignore', log, log],
});
try {
  await waitFor(() => fetch(`http://127.0.0.1:${port}/readyz`).then((response) => response.ok));
  const { pid } = partsOf(join(folder, 'data')).find(({ part }) => part === 'gateway-0')!;
  if (stage.pinned) execFileSync('taskset', ['-a', '-c', '-p', '0', String(pid)], { stdio: 'ignore' });
  const standing: Standing = { peer: armature, version: '', pid, address: `127.0.0.1:${port}`, headers: [] };
  await put(standing, 3);
  const profile = await profiled(pid, () => put(standing, Number(values.seconds)));
  print(profile);
} finally {
  up.kill('SIGTERM');
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
}

async function put(standing: Standing, seconds: number): Promise<void> {
  const loaded = values.streams
    ? await stage.streams(standing, 100, seconds, SHAPE)
    : await stage.requests(standing, 32, seconds);
  const { total } = loaded.a;
  console.error(`${total.count} answers, p50 ${total.p50Us} us, ${loaded.events} events, ${loaded.bad} bad`);
}

async function profiled(pid: number, work: () => Promise<void>): Promise<Profile> {
  process.kill(pid, 'SIGUSR1');
  const address = () =>
    readFileSync(join(folder, 'log'), 'utf8').match(/Debugger listening on (ws:\S+)/)?.[1];
  await waitFor(async () => address() !== undefined);
  const socket = new WebSocket(address()!);
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
  let asked = 0;
  const call = (method: string, params = {}) =>
    new Promise<unknown>((resolve) => {
      const id = ++asked;
      const hear = (event: MessageEvent) => {
        const message = JSON.parse(String(event.data)) as { id?: number; result?: unknown };
        if (message.id !== id) return;
        socket.removeEventListener('message', hear);
        resolve(message.result);
      };
      socket.addEventListener('message', hear);
      socket.send(JSON.stringify({ id, method, params }));
    });
  await call('Profiler.enable');
  await call('Profiler.setSamplingInterval', { interval: 200 });
  await call('Profiler.start');
  await work();
  const { profile } = (await call('Profiler.stop')) as { profile: Profile };
  socket.close();
  return profile;
}

function print({ nodes }: Profile): void {
  const idle = new Set(['(idle)', '(root)']);
  const busy = nodes.filter(({ callFrame }) => !idle.has(callFrame.functionName));
  const all = busy.reduce((sum, { hitCount }) => sum + hitCount, 0);
  const sums = (name: (frame: Profile['nodes'][number]['callFrame']) => string): [string, number][] => {
    const by = new Map<string, number>();
    for (const { callFrame, hitCount } of busy) {
      by.set(name(callFrame), (by.get(name(callFrame)) ?? 0) + hitCount);
    }
    return [...by].sort(([, a], [, b]) => b - a);
  };
  const show = (rows: [string, number][]) => {
    for (const [name, hits] of rows) console.log(`${((hits * 100) / all).toFixed(1).padStart(5)} %  ${name}`);
  };
  console.log('self time by place');
  show(sums(({ url, functionName }) => placeOf(url, functionName)).slice(0, 20));
  console.log('\nself time by function');
  const label = ({ url, functionName, lineNumber }: Profile['nodes'][number]['callFrame']) =>
    `${functionName || '(anonymous)'}  ${url.replace(`file://${root}`, '')}${url ? `:${lineNumber + 1}` : ''}`;
  show(sums(label).slice(0, Number(values.lines)));
}

/** A folder of src, a package, or the runtime. */
function placeOf(url: string, functionName: string): string {
  const path = url.replace(`file://${root}`, '');
  const own = /^src\/[^/]+(\/[^/.]+(?=\/))?/.exec(path)?.[0];
  const installed = /node_modules\/((@[^/]+\/)?[^/]+)/.exec(path)?.[1];
  return own ?? installed ?? (path === '' ? functionName : path.split('/').slice(0, 2).join('/'));
}
