import { spawn } from 'node:child_process';
import type { Timers } from '../../kernel/timers.ts';
import type { LoadTask, LoadTaskResult } from '../../load/contracts.ts';

/** Beyond what the task itself may take: to start the process, and to end it. */
const GRACE_MS = 30_000;
const OUTPUT_CHARACTERS_MAX = 64 * 1024;

export interface LoadProcess {
  pid: number;
  result: Promise<LoadTaskResult>;
}

/**
 * Makes a load in a process of its own, so that control goes on listening; `entry` is what Armature's processes start with.
 * The process ends when the signal or control does. The result rejects where it could not say anything.
 */
export function startLoad(
  task: LoadTask,
  { entry, timers, signal }: { entry: string; timers: Timers; signal: AbortSignal },
): LoadProcess {
  const child = spawn(process.execPath, [...process.execArgv, entry, 'load'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  // What it is given holds the key of the backend: it goes in by its input, which other processes cannot see.
  child.stdin.on('error', () => undefined); // it has left: its exit tells more
  child.stdin.write(`${JSON.stringify(task)}\n`);
  const end = () => child.stdin.end();
  signal.addEventListener('abort', end, { once: true });
  const timer = timers.set(task.warmupMs + task.durationMs + task.timeoutMs + GRACE_MS, () =>
    child.kill('SIGKILL'),
  );
  let output = '';
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (text: string) => {
    output = (output + text).slice(0, OUTPUT_CHARACTERS_MAX);
  });
  const result = new Promise<LoadTaskResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, name) => {
      timers.clear(timer);
      signal.removeEventListener('abort', end);
      try {
        resolve(JSON.parse(output) as LoadTaskResult);
      } catch {
        reject(new Error(`the load test said nothing and left with ${name ?? code}`));
      }
    });
  });
  return { pid: child.pid ?? 0, result };
}
