import { limitsOf } from '../../config/rate-limits.ts';
import type { Settings } from '../../config/schema/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import type { Leases } from '../contracts.ts';
import type { Rates } from './rates.ts';
import type { QuotaDone, QuotaLine, QuotaRefusal, Rate, Reservation, Slots } from './reservation.ts';

/** How long a request waits for a unit that other workers hold idle; on a machine with time for it, it comes within a millisecond. */
const SLOT_MS_MAX = 250;
/** Requests of one limit that may wait so. */
const WAITING_MAX = 1000;
/** After one has waited in vain nobody waits for so long, unless a unit comes free. */
const DRY_MS = 1000;

/** The lines of one tenant. */
interface TenantLines {
  /** On routes that have no limits of their own; undefined where nothing holds there. */
  elsewhere: QuotaLine | undefined;
  onRoute: ReadonlyMap<string, QuotaLine>;
}

/** What tenants are held to, as this worker's snapshot has it, and who has taken what of it. */
export class Quotas {
  readonly #leases: Leases;
  readonly #rates: Rates;
  readonly #clock: Clock;
  readonly #timers: Timers;
  #tenants: ReadonlyMap<string, TenantLines> = new Map();
  readonly #slots = new Map<string, Slots>();
  #timer: TimerHandle;

  constructor(options: { leases: Leases; rates: Rates; clock: Clock; timers: Timers }) {
    this.#leases = options.leases;
    this.#rates = options.rates;
    this.#clock = options.clock;
    this.#timers = options.timers;
  }

  swap({ tenants, gateway }: Pick<Settings, 'tenants' | 'gateway'>): void {
    const all = Object.entries(tenants ?? {}).map(([name, tenant]) => limitsOf(name, tenant));
    const rates = this.#rates.swap(
      all.flatMap((limits) => limits.rates),
      gateway.workers,
    );
    for (const slots of this.#slots.values()) slots.retired = true;
    const lines = new Map<string, TenantLines>();
    for (const { rates: own, concurrency } of all) {
      const tenant = (own[0] ?? concurrency[0])?.tenant;
      if (tenant === undefined) continue;
      const rateList = own.map(({ key }) => rates.get(key)!);
      const slotsList = concurrency.map((limit) => this.#declare(limit));
      lines.set(tenant, linesOf(rateList, slotsList));
    }
    this.#tenants = lines;
    for (const slots of [...this.#slots.values()]) this.#forgetIfIdle(slots);
  }

  /** What holds for the requests of a tenant on a route; undefined where nothing does. */
  lineOf(tenant: string, route: string): QuotaLine | undefined {
    if (this.#tenants.size === 0) return undefined;
    const lines = this.#tenants.get(tenant);
    return lines && (lines.onRoute.get(route) ?? lines.elsewhere);
  }

  /** What is there of rates, and slots in use, by key; undefined where nothing is limited. */
  get state(): { rates: Record<string, number>; slots: Record<string, number> } | undefined {
    if (this.#tenants.size === 0) return undefined;
    const slots = [...this.#slots.keys()].map((key) => [key, this.#leases.used(key)]);
    return { rates: this.#rates.levels(), slots: Object.fromEntries(slots) };
  }

  /** Takes everything that is asked for, or nothing. `done` is called once, at once or a little later, save for one that is given up meanwhile. */
  reserve(reservation: Reservation, done: QuotaDone): void {
    reservation.done = done;
    this.#takeSlots(reservation);
  }

  /** Settles its rates on what was really used, once. */
  settle(reservation: Reservation, tokens: number, requests: number): void {
    if (!reservation.taken) return;
    reservation.taken = false;
    const { line, amounts } = reservation;
    for (let i = 0; i < line.rates.length; i++) {
      const rate = line.rates[i]!;
      this.#rates.settle(rate, (rate.limit.kind === 'tokens' ? tokens : requests) - amounts[i]!);
    }
  }

  /** It is over, whichever way: slots come back. Rates that nobody has settled come back whole. */
  release(reservation: Reservation): void {
    if (reservation.over) return;
    reservation.over = true;
    this.settle(reservation, 0, 0);
    const next = reservation.line.slots[reservation.slots];
    if (next) this.#leave(next, reservation);
    this.#giveSlots(reservation);
  }

  /** A unit has come that could not be had before. */
  freed(key: string): void {
    const slots = this.#slots.get(key);
    if (!slots) return;
    slots.dryUntil = 0;
    for (let first = slots.waiting[0]; first; first = slots.waiting[0]) {
      if (!this.#leases.take(key, slots.waiting.length)) return;
      slots.waiting.shift();
      first.slots++;
      this.#takeSlots(first);
    }
  }

  #takeSlots(reservation: Reservation): void {
    const { slots: all, rates } = reservation.line;
    while (reservation.slots < all.length) {
      const slots = all[reservation.slots]!;
      const { key, max } = slots.limit;
      if (this.#leases.take(key, slots.waiting.length + 1)) {
        reservation.slots++;
        continue;
      }
      // Others hold the rest, and hand it over where it is idle there.
      if (this.#leases.held(key) < max && this.#mayWait(slots)) this.#wait(slots, reservation);
      else this.#decided(reservation, { by: 'slots', limit: slots.limit });
      return;
    }
    this.#rates.take(rates, reservation.amounts, (refusal) => {
      reservation.taken = refusal === undefined;
      // Whoever left while control was asked has used nothing.
      if (reservation.over) this.settle(reservation, 0, 0);
      else this.#decided(reservation, refusal);
    });
  }

  #decided(reservation: Reservation, refusal: QuotaRefusal | undefined): void {
    if (refusal) this.#giveSlots(reservation);
    const { done } = reservation;
    reservation.done = undefined;
    done?.(refusal);
  }

  #mayWait({ waiting, dryUntil }: Slots): boolean {
    return waiting.length < WAITING_MAX && (dryUntil === 0 || this.#clock.mono() >= dryUntil);
  }

  #wait(slots: Slots, reservation: Reservation): void {
    reservation.dueAt = this.#clock.mono() + SLOT_MS_MAX;
    slots.waiting.push(reservation);
    this.#timer ??= this.#timers.set(SLOT_MS_MAX, () => this.#late());
  }

  /** Whoever has waited long enough is refused: the units are in use elsewhere. */
  #late(): void {
    this.#timer = undefined;
    const now = this.#clock.mono();
    let next = Number.POSITIVE_INFINITY;
    for (const slots of this.#slots.values()) {
      const { waiting, limit } = slots;
      while (waiting.length > 0 && waiting[0]!.dueAt <= now) {
        const first = waiting.shift()!;
        slots.dryUntil = now + DRY_MS;
        this.#leases.want(limit.key, waiting.length);
        this.#decided(first, { by: 'slots', limit });
      }
      if (waiting.length > 0) next = Math.min(next, waiting[0]!.dueAt);
    }
    if (next < Number.POSITIVE_INFINITY) this.#timer ??= this.#timers.set(next - now, () => this.#late());
  }

  #leave(slots: Slots, reservation: Reservation): void {
    const at = slots.waiting.indexOf(reservation);
    if (at < 0) return;
    slots.waiting.splice(at, 1);
    this.#leases.want(slots.limit.key, slots.waiting.length);
  }

  #giveSlots(reservation: Reservation): void {
    const all = reservation.line.slots;
    for (let i = 0; i < reservation.slots; i++) {
      this.#leases.give(all[i]!.limit.key);
      this.#forgetIfIdle(all[i]!);
    }
    reservation.slots = 0;
  }

  #declare(limit: Slots['limit']): Slots {
    const known = this.#slots.get(limit.key);
    const slots = known ?? { limit, waiting: [], dryUntil: 0, retired: false };
    slots.limit = limit;
    slots.retired = false;
    if (!known) this.#slots.set(limit.key, slots);
    this.#leases.declare(limit.key, limit.max);
    return slots;
  }

  /** What no snapshot names ends with the last request that uses it. */
  #forgetIfIdle(slots: Slots): void {
    const { key } = slots.limit;
    if (!slots.retired || this.#slots.get(key) !== slots || this.#leases.used(key) > 0) return;
    this.#slots.delete(key);
    this.#leases.forget(key);
    for (const waiting of slots.waiting.splice(0))
      this.#decided(waiting, { by: 'slots', limit: slots.limit });
  }
}

/** For each route what holds for all of them together, and what holds there. */
function linesOf(rates: readonly Rate[], slots: readonly Slots[]): TenantLines {
  const lineOf = (route: string | undefined): QuotaLine => {
    const holds = ({ limit }: { limit: { route: string | undefined } }) =>
      limit.route === undefined || limit.route === route;
    return { rates: rates.filter(holds), slots: slots.filter(holds) };
  };
  const routes = new Set([...rates, ...slots].flatMap(({ limit }) => limit.route ?? []));
  const elsewhere = lineOf(undefined);
  return {
    elsewhere: elsewhere.rates.length + elsewhere.slots.length > 0 ? elsewhere : undefined,
    onRoute: new Map([...routes].map((route) => [route, lineOf(route)])),
  };
}
