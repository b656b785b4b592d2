import type { ControlToGateway } from '../../links/messages.ts';
import { fairShares } from './shares.ts';

/** What the book wants told to a worker. */
export type LeaseMessage = Extract<ControlToGateway, { type: 'lease-grant' | 'lease-recall' }>;

interface Holder {
  /** Units granted and not yet returned, whether the worker knows of them yet or not. */
  held: number;
  /** What it could use, as it last said. */
  want: number;
  /** The limit as its snapshot says; undefined until it has declared the key and after it forgot it. */
  total: number | undefined;
  /** Units that were recalled and have not come back. */
  owed: number;
  /** Undefined while the worker may think otherwise: it declares a key that it forgot a moment ago. */
  pressed: boolean | undefined;
  /** When it was last granted a unit, as a count of grants. */
  granted: number;
}

/**
 * Who holds how many units of which limit. The units granted never sum above the limit: where workers are told different
 * limits, on their way from one snapshot to the next, the lowest counts. Nobody short: what is free is spread evenly.
 * Somebody short: the others hand back what is idle, and where everybody wants more than there is, each gets a fair share.
 *
 * Pure: every call says by `send` what workers are to be told. Workers are known by their boot, so that one which drains
 * and its successor are two. Keys live as long as a worker declares them or holds of them.
 */
export class LeaseBook {
  readonly #keys = new Map<string, Map<string, Holder>>();
  readonly #send: (boot: string, message: LeaseMessage) => void;
  /** Nothing is granted before `open`: a book that was just made does not know yet what living workers hold. */
  #opened = false;
  #grants = 0;

  constructor(send: (boot: string, message: LeaseMessage) => void) {
    this.#send = send;
  }

  get opened(): boolean {
    return this.#opened;
  }

  /** Every worker that may be alive has been learned: from now on units are granted. */
  open(): void {
    if (this.#opened) return;
    this.#opened = true;
    for (const key of [...this.#keys.keys()]) this.#balance(key);
  }

  /** What a worker says it holds, when it connects: it takes the place of what the book thought of it. */
  learn(boot: string, holdings: Record<string, number>): void {
    for (const [key, holders] of this.#keys) if (!(key in holdings)) holders.delete(boot);
    for (const [key, held] of Object.entries(holdings)) {
      this.#holders(key).set(boot, {
        held,
        want: held,
        total: undefined,
        owed: 0,
        pressed: false,
        granted: 0,
      });
    }
    for (const key of [...this.#keys.keys()]) this.#balance(key);
  }

  /** The worker has died: what it held is free. */
  gone(boot: string): void {
    for (const [key, holders] of [...this.#keys]) if (holders.delete(boot)) this.#balance(key);
  }

  ask(boot: string, key: string, want: number, total: number): void {
    const holder = this.#holder(boot, key);
    holder.want = want;
    holder.total = total;
    this.#balance(key);
  }

  returned(boot: string, key: string, units: number, want: number): void {
    const holder = this.#keys.get(key)?.get(boot);
    if (!holder) return;
    const back = Math.min(units, holder.held);
    holder.held -= back;
    holder.owed = Math.max(0, holder.owed - back);
    holder.want = want;
    this.#balance(key);
  }

  /** The worker does not count among those who share the key any more; what it holds comes back as it ends its requests. */
  forgot(boot: string, key: string): void {
    const holder = this.#keys.get(key)?.get(boot);
    if (!holder) return;
    holder.want = 0;
    holder.total = undefined;
    this.#balance(key);
  }

  /** Units held by each worker, by boot. */
  holdings(key: string): Record<string, number> {
    return Object.fromEntries([...(this.#keys.get(key) ?? [])].map(([boot, { held }]) => [boot, held]));
  }

  #holders(key: string): Map<string, Holder> {
    let holders = this.#keys.get(key);
    if (!holders) this.#keys.set(key, (holders = new Map()));
    return holders;
  }

  #holder(boot: string, key: string): Holder {
    const holders = this.#holders(key);
    let holder = holders.get(boot);
    if (!holder) {
      holder = { held: 0, want: 0, total: undefined, owed: 0, pressed: undefined, granted: 0 };
      holders.set(boot, holder);
    }
    return holder;
  }

  #balance(key: string): void {
    const holders = this.#keys.get(key)!;
    let total = Number.POSITIVE_INFINITY;
    let held = 0;
    for (const [boot, holder] of holders) {
      if (holder.total === undefined && holder.held === 0) holders.delete(boot);
      total = Math.min(total, holder.total ?? total);
      held += holder.held;
    }
    if (holders.size === 0) this.#keys.delete(key);
    // Nobody has said yet what the limit is; nobody asks for units then either.
    if (!this.#opened || holders.size === 0 || total === Number.POSITIVE_INFINITY) return;

    const all = [...holders];
    let free = total - held;
    sharesOf(all, total).forEach((share, index) => {
      const [boot, holder] = all[index]!;
      const units = Math.min(share - holder.held, free);
      if (units <= 0) return;
      free -= units;
      this.#grant(boot, key, holder, units);
    });
    const short = all.filter(([, holder]) => isShort(holder)).length;
    // Computed anew: who holds none has changed.
    sharesOf(all, total).forEach((share, index) => {
      const [boot, holder] = all[index]!;
      const units = Math.max(0, holder.held - share - holder.owed);
      const pressed = holder.held > 0 && short > (isShort(holder) ? 1 : 0);
      if (units === 0 && pressed === holder.pressed) return;
      holder.owed += units;
      holder.pressed = pressed;
      this.#send(boot, { type: 'lease-recall', key, units, pressed });
    });
    if (short === 0 && free > 0) this.#spread(key, all, free);
  }

  /** Nobody is short: what is free goes to those who share the key, the same to each, so that their next take needs no asking. */
  #spread(key: string, all: [string, Holder][], free: number): void {
    const sharing = all.filter(([, holder]) => holder.total !== undefined);
    sharing.sort(([, a], [, b]) => a.held - b.held);
    sharing.forEach(([boot, holder], done) => {
      const units = Math.ceil(free / (sharing.length - done));
      if (units === 0) return;
      free -= units;
      this.#grant(boot, key, holder, units);
    });
  }

  #grant(boot: string, key: string, holder: Holder, units: number): void {
    holder.held += units;
    holder.granted = ++this.#grants;
    this.#send(boot, { type: 'lease-grant', key, units });
  }
}

function isShort(holder: Holder): boolean {
  return holder.want > holder.held;
}

function sharesOf(all: [string, Holder][], total: number): number[] {
  // Units go round where there are too few: those that hold none come before the others, the longest without one first.
  const claims = all.map(([, { want, held, granted }]) => ({
    units: Math.max(want, held),
    rank: held === 0 ? -granted : Number.NEGATIVE_INFINITY,
  }));
  return fairShares(total, claims);
}
