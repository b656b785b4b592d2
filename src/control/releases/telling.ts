import type { LedgerEvent } from '../../events/contracts.ts';
import type { EventDraft } from '../../events/event-maker.ts';
import type { LedgerService } from '../../events/ledger.ts';
import type { Action } from '../../releases/contracts.ts';
import type { KeptRelease } from './kept.ts';

/** Makes the events of one release: each follows from the one before it, beside causes of its own. */
export class Telling {
  /** The newest that is stored, or on its way. */
  newest: string;
  readonly #kept: KeptRelease;
  readonly #ledger: LedgerService;
  #stuck: Action['reason'] | undefined;

  constructor(kept: KeptRelease, ledger: LedgerService) {
    this.#kept = kept;
    this.#ledger = ledger;
    this.newest = kept.body.newest;
  }

  /** Why it cannot go on now, as it was told last. */
  get stuck(): Action['reason'] | undefined {
    return this.#stuck;
  }

  /** To be stored together with what it tells of. */
  event(draft: Omit<EventDraft, 'subject'>): LedgerEvent {
    return this.#ledger.event(this.#whole(draft));
  }

  /** Nothing depends on it. */
  held(reason: Action['reason'], causes: string[]): void {
    const draft = this.#whole({ type: 'release-held', causes, data: { reason } });
    this.newest = this.#ledger.append(draft).id;
  }

  /** Told once, until something was done, or for another reason. */
  cannot(reason: Action['reason'], intent: string): void {
    if (this.#stuck?.code === reason.code) return;
    this.#stuck = reason;
    this.held(reason, [intent]);
  }

  done(): void {
    this.#stuck = undefined;
  }

  #whole({ causes = [], data, ...draft }: Omit<EventDraft, 'subject'>): EventDraft {
    const { id, body } = this.#kept;
    const { route, to } = body;
    const following = [...new Set([...causes, this.newest])];
    return { ...draft, subject: `release:${id}`, causes: following, data: { route, to, ...data } };
  }
}
