import type { ControlToGateway, GatewayToControl } from '../../links/messages.ts';
import type { Leases } from '../contracts.ts';

type Outgoing = Extract<GatewayToControl, { type: 'lease-ask' | 'lease-return' | 'lease-forget' }>;
type Incoming = Extract<ControlToGateway, { type: 'lease-grant' | 'lease-recall' }>;

interface Held {
  total: number;
  held: number;
  used: number;
  /** Units to be handed back as soon as they are not in use, whatever waits for them here. */
  owed: number;
  /** Other workers are short: units that nothing here waits for go back at the end of the turn. */
  pressed: boolean;
  /** What control was last told that this worker could use. */
  told: number;
  /** How many more could be used, as was last said. */
  short: number;
  /** Settled at the end of this turn. */
  touched: boolean;
  forgotten: boolean;
}

/**
 * Leases of one of several workers. It uses what control has granted, asks when that does not do, and hands back what is
 * recalled: at once what is idle, the rest as it comes free. While control is away it goes on with what it holds.
 */
export class ControlLeases implements Leases {
  onFree: ((key: string) => void) | undefined;

  readonly #keys = new Map<string, Held>();
  readonly #send: (message: Outgoing) => boolean;
  readonly #soon: (run: () => void) => void;
  #touched: string[] = [];

  constructor(options: {
    /** False where there is no connection. */
    send: (message: Outgoing) => boolean;
    /** Runs something at the end of this turn of the loop. */
    soon: (run: () => void) => void;
  }) {
    this.#send = options.send;
    this.#soon = options.soon;
  }

  declare(key: string, total: number): void {
    const known = this.#keys.get(key);
    if (known && !known.forgotten && known.total === total) return;
    const held = known ?? {
      total,
      held: 0,
      used: 0,
      owed: 0,
      pressed: false,
      told: 0,
      short: 0,
      touched: false,
      forgotten: false,
    };
    held.total = total;
    held.forgotten = false;
    this.#keys.set(key, held);
    this.#ask(key, held);
    this.#wake(key, held);
  }

  /** Units in use are handed back as they come free. */
  forget(key: string): void {
    const held = this.#keys.get(key);
    if (!held || held.forgotten) return;
    held.forgotten = true;
    held.short = 0;
    this.#send({ type: 'lease-forget', key });
    this.#touch(key, held);
  }

  take(key: string, waiting: number): boolean {
    const held = this.#keys.get(key);
    if (!held || held.forgotten) return false;
    if (held.used < Math.min(held.held, held.total)) {
      held.used++;
      held.short = Math.max(0, waiting - 1);
      return true;
    }
    held.short = Math.max(1, waiting);
    this.#touch(key, held);
    return false;
  }

  want(key: string, waiting: number): void {
    const held = this.#keys.get(key);
    if (!held || held.forgotten || held.short === waiting) return;
    held.short = waiting;
    this.#touch(key, held);
  }

  give(key: string): void {
    const held = this.#keys.get(key);
    if (!held || held.used === 0) return;
    held.used--;
    if (held.owed > 0) this.#handBack(key, held, 1);
    else this.#wake(key, held);
    if (held.pressed || held.forgotten) this.#touch(key, held);
  }

  used(key: string): number {
    return this.#keys.get(key)?.used ?? 0;
  }

  held(key: string): number {
    return this.#keys.get(key)?.held ?? 0;
  }

  /** What this worker holds of every key, for its hello. */
  holdings(): Record<string, number> {
    const holdings: Record<string, number> = {};
    for (const [key, held] of this.#keys) if (held.held > 0) holdings[key] = held.held;
    return holdings;
  }

  /** A connection stands and control knows the holdings: what was recalled before is void, wants are told anew. */
  up(): void {
    for (const [key, held] of this.#keys) {
      held.owed = 0;
      held.pressed = false;
      if (held.forgotten) this.#touch(key, held);
      else this.#ask(key, held);
    }
  }

  heard(message: Incoming): void {
    const held = this.#keys.get(message.key);
    if (!held) {
      // Granted before control knew that the key was forgotten.
      const { key } = message;
      if (message.type === 'lease-grant')
        this.#send({ type: 'lease-return', key, units: message.units, want: 0 });
      return;
    }
    if (message.type === 'lease-grant') {
      held.held += message.units;
      this.#wake(message.key, held);
    } else {
      held.owed += message.units;
      held.pressed = message.pressed;
    }
    this.#touch(message.key, held);
  }

  #want(held: Held): number {
    return Math.min(held.total, held.used + held.short);
  }

  /** Tells that units are free which could not be taken before. */
  #wake(key: string, held: Held): void {
    if (held.short === 0 || held.used >= Math.min(held.held, held.total)) return;
    held.short = 0;
    this.onFree?.(key);
  }

  /** At the end of the turn, when everybody who waits has had the chance to take, tells control what has changed. */
  #touch(key: string, held: Held): void {
    if (held.touched) return;
    held.touched = true;
    if (this.#touched.length === 0) this.#soon(() => this.#settle());
    this.#touched.push(key);
  }

  #settle(): void {
    const touched = this.#touched;
    this.#touched = [];
    for (const key of touched) {
      const held = this.#keys.get(key);
      if (!held) continue;
      held.touched = false;
      const idle = held.held - held.used;
      // Whoever said that it waits can do nothing with a unit now: it will say so again.
      if (idle > 0) held.short = 0;
      const back = held.pressed || held.forgotten ? idle : Math.min(idle, held.owed);
      if (back > 0) this.#handBack(key, held, back);
      if (held.forgotten) {
        if (held.held === 0) this.#keys.delete(key);
      } else if (this.#want(held) > Math.max(held.held, held.told)) this.#ask(key, held);
    }
  }

  #handBack(key: string, held: Held, units: number): void {
    const want = this.#want(held);
    // Without a connection nothing is owed: what is held is told with the next hello.
    if (!this.#send({ type: 'lease-return', key, units, want })) return;
    held.held -= units;
    held.owed = Math.max(0, held.owed - units);
    held.told = want;
  }

  #ask(key: string, held: Held): void {
    held.told = this.#want(held);
    this.#send({ type: 'lease-ask', key, want: held.told, total: held.total });
  }
}
