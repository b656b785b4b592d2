import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { TimerHandle, Timers } from '../kernel/timers.ts';
import type { PartSpec } from '../links/messages.ts';
import { BackOff } from './back-off.ts';
import type { Exit, Launched, Launcher } from './contracts.ts';

/** How long a part may take to leave after SIGTERM where its spec does not say. */
const GRACE_MS = 10_000;
/** How long it may take once somebody is in a hurry. */
const HURRY_MS = 2000;

export interface KeeperTools {
  launcher: Launcher;
  clock: Clock;
  timers: Timers;
  random: Random;
  onStarted(spec: PartSpec, pid: number, adopted: boolean): void;
  /** `restartInMs` is null for a part that was asked to leave. */
  onLeft(spec: PartSpec, pid: number, exit: Exit, restartInMs: number | null): void;
}

/** Keeps one part running: starts it, starts it again when it dies, and ends it when it is not wanted any more. */
export class PartKeeper {
  spec: PartSpec;
  readonly #tools: KeeperTools;
  readonly #backOff = new BackOff();
  #running: Launched | undefined;
  #startedAt = 0;
  #restart: TimerHandle;
  #kill: TimerHandle;
  #resting = false;
  #stopping: { promise: Promise<void>; done: () => void } | undefined;

  constructor(spec: PartSpec, tools: KeeperTools) {
    this.spec = spec;
    this.#tools = tools;
  }

  /** Undefined while it does not run. */
  get pid(): number | undefined {
    return this.#running?.pid;
  }

  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Starts the part unless it runs. */
  start(): void {
    if (this.#running || this.#stopping || this.#resting) return;
    this.#tools.timers.clear(this.#restart);
    this.#run(this.#tools.launcher.launch(this.spec), false);
  }

  /** Takes over a process that runs already. */
  adopt(launched: Launched): void {
    this.#tools.timers.clear(this.#restart);
    this.#run(launched, true);
  }

  /** Does not start it again: what runs goes on until `stop`. */
  rest(): void {
    this.#resting = true;
    this.#tools.timers.clear(this.#restart);
  }

  signal(name: NodeJS.Signals): void {
    this.#running?.signal(name);
  }

  /**
   * SIGTERM, and SIGKILL when the part has not left in time. Resolves when it is gone; it is not started again. `hurried`:
   * with SIGINT, upon which a worker ends what runs with an error, rather than with the reset that SIGKILL would be.
   */
  stop(hurried = false): Promise<void> {
    const { timers } = this.#tools;
    timers.clear(this.#restart);
    if (!this.#running) return Promise.resolve();
    if (!this.#stopping) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#stopping = { promise, done: resolve };
      this.#running.signal('SIGTERM');
    }
    if (hurried) this.#running.signal('SIGINT');
    timers.clear(this.#kill);
    this.#kill = timers.set(hurried ? HURRY_MS : (this.spec.graceMs ?? GRACE_MS), () =>
      this.signal('SIGKILL'),
    );
    return this.#stopping.promise;
  }

  /** Ends the running process, if any, and goes on with another of this spec. */
  async replace(spec: PartSpec): Promise<void> {
    const stopped = this.stop();
    this.spec = spec;
    await stopped;
    this.start();
  }

  #run(launched: Launched, adopted: boolean): void {
    const { spec } = this;
    this.#running = launched;
    this.#startedAt = this.#tools.clock.mono();
    launched.onExit = (exit) => {
      launched.onExit = undefined;
      this.#ended(spec, launched.pid, exit);
    };
    this.#tools.onStarted(spec, launched.pid, adopted);
  }

  #ended(spec: PartSpec, pid: number, exit: Exit): void {
    const { clock, timers, random, onLeft } = this.#tools;
    this.#running = undefined;
    timers.clear(this.#kill);
    if (this.#stopping) {
      const { done } = this.#stopping;
      this.#stopping = undefined;
      onLeft(spec, pid, exit, null);
      done();
      return;
    }
    if (this.#resting) {
      onLeft(spec, pid, exit, null);
      return;
    }
    const waitMs = this.#backOff.next(clock.mono() - this.#startedAt, random);
    this.#restart = timers.set(waitMs, () => this.start());
    onLeft(spec, pid, exit, waitMs);
  }
}
