import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { GatewayToControl, Observation } from '../../links/messages.ts';
import type { ObservationSink } from './route-drift.ts';

/** Observations that wait; what comes beyond is lost, and counted. */
const WAITING_MAX = 1000;
const TELL_MS = 500;

/** Takes observations to control: some may be lost, such as while control is away, and how many is told. */
export class Observations implements ObservationSink {
  readonly #send: (message: GatewayToControl) => boolean;
  readonly #timers: Timers;
  #waiting: Observation[] = [];
  #lost = 0;
  #timer: TimerHandle;

  constructor(send: (message: GatewayToControl) => boolean, timers: Timers) {
    this.#send = send;
    this.#timers = timers;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  push(observation: Observation): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.#lost++;
      return;
    }
    if (this.#waiting.push(observation) === 1) this.#timer = this.#timers.set(TELL_MS, () => this.flush());
  }

  /** Tells what waits. */
  flush(): void {
    this.#timers.clear(this.#timer);
    if (this.#waiting.length === 0) return;
    const observations = this.#waiting;
    this.#waiting = [];
    if (this.#send({ type: 'observations', observations, lost: this.#lost })) this.#lost = 0;
    else this.#lost += observations.length;
  }
}
