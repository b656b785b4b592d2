import { isAlive } from '../kernel/alive.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import { signalPid } from './child-launcher.ts';
import type { Exit, Launched } from './contracts.ts';

const LOOK_MS_MIN = 5;
const LOOK_MS_MAX = 250;

/**
 * A part that another supervisor started, so that no exit of it is told. It is known by its pid; once its link is closed it
 * is looked at until its process has ended, or until it has said hello again.
 */
export class AdoptedPart implements Launched {
  readonly pid: number;
  onExit: ((exit: Exit) => void) | undefined;
  readonly #timers: Timers;
  #look: TimerHandle;

  constructor(pid: number, timers: Timers) {
    this.pid = pid;
    this.#timers = timers;
  }

  signal(name: NodeJS.Signals): void {
    signalPid(this.pid, name);
  }

  linkUp(): void {
    this.#timers.clear(this.#look);
  }

  linkDown(waitMs = LOOK_MS_MIN): void {
    this.#look = this.#timers.set(waitMs, () => {
      if (isAlive(this.pid)) this.linkDown(Math.min(waitMs * 2, LOOK_MS_MAX));
      else this.onExit?.({ exitCode: null, signal: null });
    });
  }
}
