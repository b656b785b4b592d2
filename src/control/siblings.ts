import type { LedgerService } from '../events/ledger.ts';
import type { PartNotice } from '../links/messages.ts';
import type { Logger } from '../telemetry/logger.ts';

/** What the supervisor tells of the other parts becomes events: a start follows from the end before it. */
export class Siblings {
  readonly #ledger: LedgerService;
  readonly #log: Logger;
  /** By part: the event of its last end. As many as there are parts in the configuration's life. */
  readonly #ends = new Map<string, string>();

  constructor(ledger: LedgerService, log: Logger) {
    this.#ledger = ledger;
    this.#log = log;
  }

  /** Gives the id of the event. */
  heard(message: PartNotice): string {
    const { part, pid, wallMs } = message;
    const subject = part.startsWith('gateway-') ? part.replace('gateway-', 'worker:') : `part:${part}`;
    if (message.type === 'part-started') {
      const end = this.#ends.get(part);
      this.#ends.delete(part);
      const { id } = this.#ledger.append({
        type: message.adopted ? 'part-adopted' : 'part-started',
        subject,
        causes: end === undefined ? [] : [end],
        data: { part, pid },
        wallMs,
      });
      return id;
    }
    const { exitCode, signal, restartInMs } = message;
    // One that was asked to leave has not died, and how one ended that another supervisor started is not known.
    const died = restartInMs !== null && exitCode !== 0;
    const type = !died ? 'part-left' : part.startsWith('gateway-') ? 'worker-died' : 'part-died';
    if (died) this.#log.error({ childPid: pid, exitCode, signal, restartInMs }, `${part} died`);
    const data = { part, pid, exitCode, signal, restartInMs };
    const { id } = this.#ledger.append({ type, subject, data, wallMs });
    if (restartInMs !== null) this.#ends.set(part, id);
    return id;
  }
}
