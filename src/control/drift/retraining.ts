import type { LedgerService } from '../../events/ledger.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { RunHook } from './hook.ts';
import type { Watched } from './watched.ts';

export interface RetrainingOptions {
  ledger: LedgerService;
  timers: Timers;
  runHook: RunHook;
  /** What is kept of it has changed. */
  changed: (watched: Watched) => void;
}

const ATTEMPTS_MAX = 3;
const AGAIN_MS = 30_000;

/**
 * Tells hooks of changes that stay. What control was about to tell when it died is told again by the one that follows: the
 * alarm's id says that it is the same.
 */
export class Retraining {
  readonly #options: RetrainingOptions;
  readonly #closing = new AbortController();
  readonly #waiting = new Set<TimerHandle>();

  constructor(options: RetrainingOptions) {
    this.#options = options;
  }

  /** `confirmed` is the event that says that the change stays. */
  ask(watched: Watched, confirmed: string): void {
    if (!watched.settings.hook) return;
    watched.hook = { state: 'running', attempts: 0, event: confirmed };
    void this.#run(watched, confirmed);
  }

  /** After a restart of control. */
  goOn(watched: Watched): void {
    const { hook } = watched;
    if (hook?.state === 'running' && hook.event !== undefined) void this.#run(watched, hook.event);
  }

  async #run(watched: Watched, confirmed: string): Promise<void> {
    const { ledger, runHook, changed } = this.#options;
    const { route, backend, model, settings, monitor } = watched;
    const { incident } = monitor;
    const hook = watched.hook!;
    if (!settings.hook || !incident) return;
    hook.attempts++;
    changed(watched);
    const subject = `drift:${route}|${backend}|${incident.first.feature}`;
    const body = JSON.stringify({ alarm: incident.event, route, backend, model, ...incident.first });
    try {
      const job = await runHook(settings.hook, body, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      const data = { route, backend, attempts: hook.attempts, ...(job !== undefined && { job }) };
      const { id } = ledger.append({ type: 'retraining-asked', subject, causes: [confirmed], data });
      watched.hook = {
        state: 'asked',
        attempts: hook.attempts,
        event: id,
        ...(job !== undefined && { job }),
      };
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      const { message } = error as Error;
      if (hook.attempts < ATTEMPTS_MAX) {
        this.#again(watched, confirmed);
        return;
      }
      const data = { route, backend, attempts: hook.attempts, error: message };
      const { id } = ledger.append({ type: 'retraining-failed', subject, causes: [confirmed], data });
      watched.hook = { state: 'failed', attempts: hook.attempts, event: id, error: message };
    }
    changed(watched);
  }

  #again(watched: Watched, confirmed: string): void {
    const timer = this.#options.timers.set(AGAIN_MS, () => {
      this.#waiting.delete(timer);
      void this.#run(watched, confirmed);
    });
    this.#waiting.add(timer);
  }

  close(): void {
    this.#closing.abort();
    for (const timer of this.#waiting) this.#options.timers.clear(timer);
  }
}
