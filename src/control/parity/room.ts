import type { Clock } from '../../kernel/clock.ts';
import { type WorkerSaid, workerStates } from '../worker-states.ts';
import type { ParityControl } from './contracts.ts';

/** How long what workers said is gone by. */
const FRESH_MS = 500;
/** Of an endpoint's limit, that callers may use while golden prompts go there as well. */
const USED_SHARE_MAX = 0.5;

/**
 * Whether an endpoint has room for what has no hurry. This is what batch priority means for golden prompts, which go past the
 * gateway's queue: one goes out only while callers use at most half of what the endpoint can do, and none of them waits.
 */
export class Room {
  readonly #clock: Clock;
  #states: { atMs: number; states: Promise<WorkerSaid[]> } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async at(backend: string, endpoint: string, control: ParityControl): Promise<boolean> {
    const states = await this.#asked(control);
    let [inflight, limit] = [0, 0];
    for (const { state } of states) {
      if (!state) return false; // a worker too busy to tell
      if (state.routes.some(({ waiting }) => waiting > 0)) return false;
      const here = state.endpoints.find((each) => each.backend === backend && each.endpoint === endpoint);
      inflight += here?.inflight ?? 0;
      limit += here?.limit ?? 0;
    }
    return inflight === 0 || inflight <= USED_SHARE_MAX * limit;
  }

  #asked({ gateways }: ParityControl): Promise<WorkerSaid[]> {
    const nowMs = this.#clock.mono();
    if (!this.#states || nowMs - this.#states.atMs >= FRESH_MS) {
      this.#states = { atMs: nowMs, states: workerStates(gateways) };
    }
    return this.#states.states;
  }
}
