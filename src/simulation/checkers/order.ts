import type { Gateway } from '../../gateway/assemble.ts';
import { priorities } from '../../kernel/priorities.ts';
import type { SimulatedGateway } from '../gateway.ts';

type Line = NonNullable<ReturnType<Gateway['world']['backends']['get']>>['line'];
type Standing = ReturnType<Line['join']>;

/** What a floor may be behind or ahead, in works of the largest request: one is served whole, and one may be stepped over. */
const WORKS_OFF_MAX = 4;
/** Between two tenants: each may be one request ahead, and one more stepped over. */
const SHARES_OFF_MAX = 6;
const RANKS = priorities.length;

/**
 * Watches the lines of those who wait: that a lower priority goes before a higher one only for its floor, that each gets
 * its floor, and that tenants of one priority get what their shares say. Work is counted in tokens, as the line does.
 * What waits for one endpoint alone, or was stepped over for its size, has had its turn and is left out.
 */
export class OrderWatch {
  readonly wrong: string[] = [];
  /** Turns in which more than one priority waited: whether the watch has seen anything. */
  contested = 0;
  readonly #gateway: SimulatedGateway;
  readonly #lines = new Set<Line>();

  constructor(gateway: SimulatedGateway) {
    this.#gateway = gateway;
  }

  /** To be called after each swap of settings. */
  swapped(): void {
    for (const [name, { line }] of this.#gateway.gateway.world.backends) {
      if (this.#lines.has(line)) continue;
      this.#lines.add(line);
      this.#watch(name, line);
    }
  }

  #watch(name: string, line: Line): void {
    const books = new LineBooks(line);
    const join = line.join.bind(line);
    const serve = line.serve.bind(line);
    const leave = line.leave.bind(line);
    const clear = line.clear.bind(line);
    line.join = (waiter, now) => {
      const standing = join(waiter, now);
      books.joined(standing);
      return standing;
    };
    line.serve = (standing, now) => {
      if (books.has(standing)) {
        if (books.isContested()) this.contested++;
        for (const what of books.served(standing)) this.#say(name, now, what);
      }
      serve(standing, now);
    };
    line.leave = (standing, now) => {
      books.left(standing);
      leave(standing, now);
    };
    line.clear = () => {
      books.cleared();
      return clear();
    };
  }

  #say(backend: string, now: number, what: string): void {
    if (this.wrong.length < 10)
      this.wrong.push(`at ${now.toFixed(1)} ms, in the line of ${backend}: ${what}`);
  }
}

class LineBooks {
  readonly #line: Line;
  readonly #waiting = new Set<Standing>();
  /** Work that each priority is owed by its floor, below 0 what it had ahead of it, while it has waited. */
  readonly #owed = new Array<number>(RANKS).fill(0);
  /** How much more of its share one tenant had than another, since both have waited: `RANK|A|B`. */
  readonly #ahead = new Map<string, number>();
  #workMax = 0;
  #shareMin = 1;

  constructor(line: Line) {
    this.#line = line;
  }

  has(standing: Standing): boolean {
    return this.#waiting.has(standing);
  }

  joined(standing: Standing): void {
    this.#waiting.add(standing);
    this.#workMax = Math.max(this.#workMax, standing.waiter.work);
    this.#shareMin = Math.min(this.#shareMin, standing.waiter.share);
  }

  left(standing: Standing): void {
    this.#waiting.delete(standing);
    this.#forget();
  }

  cleared(): void {
    this.#waiting.clear();
    this.#forget();
  }

  isContested(): boolean {
    return new Set(this.#queued().map(({ waiter }) => waiter.rank)).size > 1;
  }

  /** Somebody got a place; what is wrong with that. */
  served(standing: Standing): string[] {
    const wrong = [...this.#priorities(standing), ...this.#tenants(standing)];
    this.#waiting.delete(standing);
    this.#forget();
    return wrong;
  }

  /** Those whose turn is still to come. */
  #queued(): Standing[] {
    return [...this.#waiting].filter(({ parked, waiter }) => !parked && waiter.only === undefined);
  }

  #priorities(standing: Standing): string[] {
    const { rank, work } = standing.waiter;
    const wrong: string[] = [];
    const waits = new Array<boolean>(RANKS).fill(false);
    for (const { waiter } of this.#queued()) waits[waiter.rank] = true;
    const highest = waits.indexOf(true);
    const allowed = WORKS_OFF_MAX * this.#workMax;
    for (let at = 0; at < RANKS; at++) {
      if (!waits[at] || at === highest) continue;
      if (at !== rank) this.#owed[at]! += this.#line.floors[at]! * work;
      if (this.#owed[at]! > allowed) {
        const figures = `${Math.round(this.#owed[at]!)} tokens, floor ${this.#line.floors[at]}`;
        wrong.push(
          `${priorities[at]} starves: it is owed ${figures}, and the largest request has ${this.#workMax}`,
        );
      }
    }
    // Its own turn: what it had beyond its floor, before higher ones that waited.
    if (highest >= 0 && highest < rank && !standing.parked && standing.waiter.only === undefined) {
      this.#owed[rank]! -= work * (1 - this.#line.floors[rank]!);
      if (this.#owed[rank]! < -allowed) {
        wrong.push(
          `${priorities[rank]} went before ${priorities[highest]} beyond its floor, by ${Math.round(-this.#owed[rank]!)} tokens`,
        );
      }
    } else if (waits[rank]) this.#owed[rank] = Math.max(0, this.#owed[rank]! - work);
    return wrong;
  }

  #tenants(standing: Standing): string[] {
    const { rank, tenant, share, work } = standing.waiter;
    if (standing.parked || standing.waiter.only) return [];
    const wrong: string[] = [];
    const others = new Set(
      this.#queued()
        .filter(({ waiter }) => waiter.rank === rank)
        .map(({ waiter }) => waiter.tenant),
    );
    if (!others.has(tenant)) return [];
    others.delete(tenant);
    for (const other of others) {
      const by = this.#add(`${rank}|${tenant}|${other}`, work / share);
      this.#add(`${rank}|${other}|${tenant}`, -work / share);
      if (by * this.#shareMin > SHARES_OFF_MAX * this.#workMax) {
        wrong.push(
          `${tenant} had ${Math.round(by)} tokens for each of its share more than ${other}, which waited all the time, of ${priorities[rank]}`,
        );
      }
    }
    return wrong;
  }

  #add(key: string, by: number): number {
    const value = (this.#ahead.get(key) ?? 0) + by;
    this.#ahead.set(key, value);
    return value;
  }

  /** Who waits no more has no claims from then. */
  #forget(): void {
    const present = new Set<string>();
    const waits = new Array<boolean>(RANKS).fill(false);
    for (const { waiter } of this.#queued()) {
      present.add(`${waiter.rank}|${waiter.tenant}`);
      waits[waiter.rank] = true;
    }
    for (let at = 0; at < RANKS; at++) if (!waits[at]) this.#owed[at] = Math.min(0, this.#owed[at]!);
    for (const key of this.#ahead.keys()) {
      const [rank, a, b] = key.split('|');
      if (!present.has(`${rank}|${a}`) || !present.has(`${rank}|${b}`)) this.#ahead.delete(key);
    }
  }
}
