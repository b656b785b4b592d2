import { spawn } from 'node:child_process';
import type { Launched, Launcher } from './contracts.ts';

/**
 * Runs parts as child processes: this same Node with this same entry file. Each is the leader of a session of its own, so
 * that a Ctrl-C meant for the supervisor does not reach it and it outlives a supervisor that is killed.
 */
export function childLauncher(entry: string): Launcher {
  return {
    launch(spec) {
      const child = spawn(process.execPath, [...process.execArgv, entry, ...spec.args], {
        detached: true,
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      const launched: Launched = {
        pid: child.pid ?? 0,
        onExit: undefined,
        signal: (name) => void child.kill(name),
      };
      child.once('exit', (exitCode, signal) => launched.onExit?.({ exitCode, signal }));
      // Only where it could not be started: no exit follows then.
      child.once('error', () => {
        if (child.pid === undefined) launched.onExit?.({ exitCode: null, signal: null });
      });
      return launched;
    },
  };
}

/** Sends a signal to a process that may have ended meanwhile. */
export function signalPid(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
