import { createInterface } from 'node:readline';
import { systemClock } from '../kernel/clock.ts';
import { systemTimers } from '../kernel/timers.ts';
import type { LoadTask, LoadTaskResult } from './contracts.ts';
import { runTask } from './task.ts';

/**
 * A process that puts a load on a backend, so that whoever asks for it stays free: `load`, with a LoadTask as one line on its
 * input and a LoadTaskResult as one line on its output. It ends early when its input is closed: it outlives nobody.
 */
export async function run(): Promise<void> {
  const ending = new AbortController();
  const lines = createInterface({ input: process.stdin });
  lines.once('close', () => ending.abort());
  const task = await new Promise<LoadTask | undefined>((resolve) => {
    lines.once('line', (line) => resolve(JSON.parse(line) as LoadTask));
    lines.once('close', () => resolve(undefined));
  });
  if (!task) return;
  const result = await runTask(task, {
    clock: systemClock,
    timers: systemTimers,
    signal: ending.signal,
  }).catch((error: Error): LoadTaskResult => ({ unable: error.message }));
  process.stdout.write(`${JSON.stringify(result)}\n`);
  process.stdin.destroy();
}
