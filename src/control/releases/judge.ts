import type { LedgerEvent } from '../../events/contracts.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { ReleaseReport } from '../../releases/canary/contracts.ts';
import type { CanaryState } from '../../releases/canary/machine.ts';
import type { Action, Evidence, GateVerdict, Phase } from '../../releases/contracts.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { ReleaseMachine } from './contracts.ts';

/** The machine of one release. One that fails has judged nothing: then the release goes back, and control goes on. */
export class Judge {
  readonly #machine: ReleaseMachine;
  readonly #clock: Clock;
  readonly #log: Logger;
  #fault: string | undefined;

  /** `fault`: why there is nothing to judge by, where that is so from the beginning. */
  constructor(
    machine: ReleaseMachine,
    { clock, log, fault }: { clock: Clock; log: Logger; fault?: string | undefined },
  ) {
    this.#machine = machine;
    this.#clock = clock;
    this.#log = log;
    this.#fault = fault;
  }

  /** Takes milliseconds where much was seen: for whoever asks, not for each look. */
  get report(): ReleaseReport {
    return this.#machine.report(this.#clock.wall());
  }
  get state(): CanaryState {
    return this.#machine.state;
  }
  get phase(): Phase {
    return this.#machine.phase;
  }
  get ended(): boolean {
    return this.#machine.ended;
  }

  /** What is to be done now; see CanaryMachine.advance. */
  get due(): Action[] {
    try {
      if (this.#fault === undefined) return this.#machine.advance(this.#clock.wall());
    } catch (error) {
      this.#failed(error);
    }
    const reason = { code: 'release-not-judged', figures: { message: this.#fault ?? '' } };
    return [{ do: 'roll-back', reason, causes: [] }];
  }

  evidence(event: LedgerEvent): void {
    try {
      this.#machine.evidence({ event: event.id, evidence: event.data as unknown as Evidence });
    } catch (error) {
      this.#failed(error);
    }
  }

  gate(name: string, { passed, event }: GateVerdict): void {
    this.#machine.gate(name, passed, event);
  }

  done(action: Action): void {
    this.#machine.done(action, this.#clock.wall());
  }

  abort(): boolean {
    return this.#machine.abort();
  }

  promote(): boolean {
    return this.#fault === undefined && this.#machine.promote();
  }

  #failed(error: unknown): void {
    this.#fault = error instanceof Error ? error.message : String(error);
    this.#log.error({ err: error }, 'a release cannot be judged any more: it is rolled back');
  }
}
