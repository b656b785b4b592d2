import type { PartNotice } from '../links/messages.ts';

/** Notices kept while control is away; the oldest go first when there are more. */
const KEPT_MAX = 1000;

/** What control is told of its siblings, at once or, while it is away, when it is back. */
export class ControlNotices {
  #send: ((notice: PartNotice) => boolean) | undefined;
  #kept: PartNotice[] = [];

  tell(notice: PartNotice): void {
    if (this.#send?.(notice)) return;
    this.#kept.push(notice);
    if (this.#kept.length > KEPT_MAX) this.#kept.shift();
  }

  /** Control has connected. */
  up(send: (notice: PartNotice) => boolean): void {
    this.#send = send;
    const kept = this.#kept;
    this.#kept = [];
    for (const notice of kept) this.tell(notice);
  }

  /** The connection that uses `send` has ended. */
  down(send: (notice: PartNotice) => boolean): void {
    if (this.#send === send) this.#send = undefined;
  }
}
