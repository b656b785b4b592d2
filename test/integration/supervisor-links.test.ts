import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { type Connection, connect } from '../../src/links/connect.ts';
import type { ControlToSupervisor, Hello, PartSpec, SupervisorToControl } from '../../src/links/messages.ts';
import { EXIT_FATAL } from '../../src/links/part.ts';
import { socketPath } from '../../src/links/socket-path.ts';
import type { Launched } from '../../src/supervisor/contracts.ts';
import { Supervisor } from '../../src/supervisor/supervisor.ts';
import { eventually } from '../upstream/waiting.ts';

/** The supervisor with a real socket and parts that are made up. */

const timing = { clock: systemClock, timers: systemTimers, random: systemRandom };

let folder: string;
let socket: string;
let supervisor: Supervisor;
/** What happened to parts, in order. */
let done: string[];
let fatal: string[];
const running = new Map<string, Launched>();
const connections: Connection<ControlToSupervisor>[] = [];
let pid = 1_000_000;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'supervisor-'));
  socket = socketPath(folder, 'supervisor');
  done = [];
  fatal = [];
  supervisor = new Supervisor({
    ...timing,
    launcher: {
      launch(spec) {
        done.push(`start ${spec.part}`);
        const launched: Launched = {
          pid: ++pid,
          onExit: undefined,
          signal(name) {
            done.push(`${name} ${spec.part}`);
            if (name === 'SIGTERM') setImmediate(() => launched.onExit?.({ exitCode: 0, signal: null }));
          },
        };
        running.set(spec.part, launched);
        return launched;
      },
    },
    log: { info: () => {}, warn: () => {} },
    onChange: () => {},
    onFatal: (part) => fatal.push(part),
  });
});

afterEach(async () => {
  await Promise.all(connections.splice(0).map((one) => one.close()));
  await supervisor.leave();
  rmSync(folder, { recursive: true, force: true });
});

const spec = (part: string, revision?: string): PartSpec => ({
  part,
  role: part === 'control' ? 'control' : part.startsWith('host') ? 'host' : 'gateway',
  args: [part],
  ...(revision === undefined ? {} : { revision }),
});

function hello(part: string, as: number): Hello {
  return { type: 'hello', role: spec(part).role, part, pid: as, boot: 'b' };
}

/** A part that says hello as this process. */
function joins(part: string, as: number) {
  const heard: SupervisorToControl[] = [];
  const connection = connect<SupervisorToControl, ControlToSupervisor>(socket, {
    hello: () => hello(part, as),
    onMessage: (message) => heard.push(message),
    ...timing,
  });
  connections.push(connection);
  return { heard, connection };
}

test('what control wants is started, ended and replaced; what has not changed is left alone', async () => {
  await supervisor.start(socket, [spec('control'), spec('gateway-0'), spec('host-a', '1')], []);
  const { connection } = joins('control', running.get('control')!.pid);
  await eventually('control is there', () => connection.up);
  done = [];
  connection.send({
    type: 'want',
    parts: [spec('control'), spec('gateway-1'), spec('host-a', '2'), spec('host-b', '1')],
  });
  await eventually('all is done', () => done.length === 5);
  expect(done).toContain('SIGTERM gateway-0');
  expect(done.filter((what) => what.endsWith('host-a'))).toEqual(['SIGTERM host-a', 'start host-a']);
  expect(done).toContain('start gateway-1');
  expect(done).toContain('start host-b');
  expect(supervisor.running.map(({ part }) => part)).toEqual(['control', 'host-a', 'gateway-1', 'host-b']);
});

test('gateways leave first, control last', async () => {
  await supervisor.start(socket, [spec('control'), spec('host-a'), spec('gateway-0'), spec('gateway-1')], []);
  done = [];
  await supervisor.leave();
  expect(done).toEqual(['SIGTERM gateway-0', 'SIGTERM gateway-1', 'SIGTERM host-a', 'SIGTERM control']);
});

test('control hears of its siblings, of what happened before it came too', async () => {
  await supervisor.start(socket, [spec('control'), spec('gateway-0')], []);
  const { heard } = joins('control', running.get('control')!.pid);
  await eventually('it has heard', () => heard.length === 3);
  running.get('gateway-0')!.onExit!({ exitCode: null, signal: 'SIGKILL' });
  await eventually('it has heard', () => heard.length === 5);
  expect(heard.shift()).toEqual({ type: 'parts', parts: ['control', 'gateway-0'] });
  expect(heard.map((it) => `${it.type} ${'part' in it ? it.part : ''}`)).toEqual([
    'part-started control',
    'part-started gateway-0',
    'part-left gateway-0',
    'part-started gateway-0',
  ]);
  expect(heard[2]).toMatchObject({ exitCode: null, signal: 'SIGKILL', restartInMs: 0 });
});

test('a part that nobody wants is told to leave', async () => {
  await supervisor.start(socket, [spec('gateway-0')], []);
  const stranger = spawn('sleep', ['1000']);
  const ended = new Promise((resolve) => stranger.once('exit', (_, signal) => resolve(signal)));
  joins('gateway-0', stranger.pid!);
  expect(await ended).toBe('SIGTERM');
});

test('a part of a supervisor before is taken over, and replaced where it was started as something else', async () => {
  const [one, two] = [spawn('sleep', ['1000']), spawn('sleep', ['1000'])];
  const earlier = [
    { part: 'gateway-0', pid: one.pid!, identity: JSON.stringify([['gateway-0'], null]) },
    { part: 'host-a', pid: two.pid!, identity: JSON.stringify([['host-a'], 'old']) },
  ];
  const ended = new Promise((resolve) => two.once('exit', resolve));
  const links = [joins('gateway-0', one.pid!), joins('host-a', two.pid!)];
  await supervisor.start(socket, [spec('gateway-0'), spec('host-a', 'new')], earlier);
  expect(done).toEqual([]);
  await ended;
  await links[1]!.connection.close();
  await eventually('the other one has been started', () => done.includes('start host-a'));
  expect(supervisor.running.find(({ part }) => part === 'gateway-0')?.pid).toBe(one.pid);

  // Its link breaks and comes back: it is the same part all the same.
  await links[0]!.connection.close();
  const again = joins('gateway-0', one.pid!);
  await eventually('it is back', () => again.connection.up);
  one.kill('SIGKILL');
  await again.connection.close();
  await eventually('its successor has been started', () => done.includes('start gateway-0'));
});

test.each([
  ['is none', { type: 'want', parts: [] }],
  ['names no part', { ...hello('gateway-0', 7), part: 7 }],
  ['names no process', hello('gateway-0', -1)],
  ['names every process', hello('gateway-0', 0)],
])('a hello that %s ends its connection and nothing else', async (_, first) => {
  await supervisor.start(socket, [spec('gateway-0')], []);
  let down = 0;
  const connection = connect<SupervisorToControl, ControlToSupervisor>(socket, {
    hello: () => first as ControlToSupervisor,
    onMessage: () => {},
    onDown: () => down++,
    ...timing,
  });
  connections.push(connection);
  await eventually('it is cut off', () => down > 0);
  expect(done).toEqual(['start gateway-0']);
});

test('says when a part cannot run at all', async () => {
  await supervisor.start(socket, [spec('gateway-0')], []);
  running.get('gateway-0')!.onExit!({ exitCode: EXIT_FATAL, signal: null });
  expect(fatal).toEqual(['gateway-0']);
});

test('leaves even when it is asked to while it starts', async () => {
  const started = supervisor.start(socket, [spec('gateway-0')], []);
  await supervisor.leave();
  await started;
  expect(done).toEqual([]);
});
