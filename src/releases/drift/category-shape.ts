import type { Random } from '../../kernel/random.ts';
import { jensenShannon, psi, psiCritical } from '../statistics/shifts.ts';
import type { Effect, Shape, Value, Watch } from './contracts.ts';
import { LastValues } from './floats.ts';
import { round, VALUES_MIN, WINDOW } from './numeric-shape.ts';
import { ShareWatch } from './share-watch.ts';
import type { StakesState } from './stakes.ts';

/** Categories that are watched by themselves; the rest of the reference is one more. */
const TOP = 16;
/** Different categories that are known, and how much of their names. */
const KNOWN_MAX = 256;
const NAME_MAX = 48;
const WINDOW_MIN = 20;
const UNSEEN = -1;

interface State {
  counts: [string, number][];
  overflow: number;
  frozen: boolean;
  recent: string;
  last?: number;
  bins?: StakesState[];
  unseen?: StakesState;
  constancy?: StakesState;
}

/** B2: how often each of the most frequent categories comes, all others of the reference, and those that it does not have. */
export class CategoryShape implements Shape {
  /** By name. The name is there once more, so that what is kept of a value is the same text, and not a copy. */
  readonly #counts = new Map<string, { name: string; count: number }>();
  /** Rows of categories beyond those that are known by name. */
  #overflow = 0;
  #frozen = false;
  /** The bin of each known category, once frozen. */
  readonly #bins = new Map<string, number>();
  #before: number[] = [];
  #rows = 0;
  #shares: ShareWatch[] = [];
  #unseen: ShareWatch | undefined;
  #constancy: ShareWatch | undefined;
  #last: number | undefined;
  readonly #recent = new LastValues(WINDOW);
  watches: readonly Watch[] = [];

  takes(value: Value): boolean {
    return typeof value === 'string' || typeof value === 'number';
  }

  kept(value: Value): Value {
    const name = nameOf(value);
    const known = this.#counts.get(name);
    if (known) return known.name;
    // Those that are not known by name are all alike.
    return this.#frozen || this.#counts.size >= KNOWN_MAX ? UNKNOWN : name;
  }

  learn(value: Value): void {
    const name = nameOf(value);
    const known = this.#counts.get(name);
    if (known) known.count++;
    else if (this.#counts.size < KNOWN_MAX) this.#counts.set(name, { name, count: 1 });
    else this.#overflow++;
  }

  freeze(): boolean {
    this.#frozen = true;
    const counts = [...this.#counts.values()].sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
    this.#rows = counts.reduce((sum, { count }) => sum + count, this.#overflow);
    if (this.#rows < VALUES_MIN) return false;
    for (const [at, { name }] of counts.entries()) this.#bins.set(name, Math.min(at, TOP));
    const rest = counts.slice(TOP).reduce((sum, { count }) => sum + count, this.#overflow);
    const before = [...counts.slice(0, TOP).map(({ count }) => count), ...(rest > 0 ? [rest] : [])];
    this.#before = before;
    this.#shares = before.map(
      (count) => new ShareWatch('distribution', 1, count, this.#rows, { less: true }),
    );
    const isConstant = counts.length === 1 && this.#overflow === 0;
    this.#unseen = new ShareWatch(isConstant ? 'varying' : 'unseen', 0.15, 0, this.#rows);
    this.#constancy = isConstant ? undefined : new ShareWatch('constant', 0.05, before[0]!, this.#rows);
    this.watches = [this.#distribution(), this.#unseen, ...(this.#constancy ? [this.#constancy] : [])];
    return true;
  }

  /** The mean over the bins: one that goes up takes from others, so that the strongest says it. */
  #distribution(): Watch {
    const shares = this.#shares;
    const strongest = () => shares.reduce((best, each) => (each.evidence > best.evidence ? each : best));
    const nameOfBin = (bin: number) => this.#nameOf(bin);
    return {
      change: 'distribution',
      weight: 0.6,
      get evidence() {
        return shares.reduce((sum, each) => sum + each.evidence, 0) / shares.length;
      },
      get since() {
        return strongest().since;
      },
      get direction() {
        const best = strongest();
        return `${best.direction} ${nameOfBin(shares.indexOf(best))}`;
      },
      begin: () => {
        for (const share of shares) share.begin();
      },
    };
  }

  observe(value: Value, _random: Random): void {
    if (!this.#unseen) return;
    // Where the reference had more categories than are known, one that is not known may have been among them.
    const bin = this.#bins.get(nameOf(value)) ?? (this.#overflow > 0 ? TOP : UNSEEN);
    // What was never seen is told by itself: among the known ones nothing moves by it.
    if (bin !== UNSEEN)
      for (let at = 0; at < this.#shares.length; at++) this.#shares[at]!.observe(at === bin);
    this.#unseen.observe(bin === UNSEEN);
    this.#constancy?.observe(bin === this.#last && bin !== TOP && bin !== UNSEEN);
    this.#last = bin;
    this.#recent.push(bin);
  }

  moved(rows: number): number {
    const { before, now } = this.#sharesOf(rows);
    return now.reduce((sum, share, bin) => sum + Math.max(0, share - before[bin]!), 0);
  }

  effect(rows: number): Effect | undefined {
    const { before, now, rows: count } = this.#sharesOf(Math.max(rows, WINDOW_MIN));
    if (count < WINDOW_MIN) return undefined;
    const names = [...this.#before.map((_, bin) => this.#nameOf(bin)), 'unseen'];
    const most = now.reduce(
      (at, share, bin) => (share - before[bin]! > now[at]! - before[at]! ? bin : at),
      0,
    );
    return {
      category: names[most]!,
      shareBefore: round(before[most]!),
      share: round(now[most]!),
      moved: round(this.moved(rows)),
    };
  }

  window(): Record<string, number> | undefined {
    const { before, now, rows } = this.#sharesOf(WINDOW);
    if (rows < WINDOW_MIN) return undefined;
    // What was never seen has no share to be compared with: it is told beside.
    const [known, unseen] = [now.slice(0, -1), now.at(-1)!];
    const all = known.reduce((sum, share) => sum + share, 0) || 1;
    const among = known.map((share) => share / all);
    return {
      rows,
      unseen: round(unseen),
      psi: round(psi(before.slice(0, -1), among)),
      psiCritical: round(psiCritical(known.length, 0.05, this.#rows, rows)),
      jensenShannon: round(jensenShannon(before, now)),
    };
  }

  #nameOf(bin: number): string {
    return bin >= TOP ? 'others' : ([...this.#bins].find(([, at]) => at === bin)?.[0] ?? 'others');
  }

  /** Shares of the bins and of the unseen, before and in the last rows. */
  #sharesOf(rows: number): { before: number[]; now: number[]; rows: number } {
    const recent = this.#recent.last(rows);
    const now = [...this.#before, 0].map(() => 0);
    for (const bin of recent) now[bin === UNSEEN ? now.length - 1 : bin]! += 1 / recent.length;
    return { before: [...this.#before.map((count) => count / this.#rows), 0], now, rows: recent.length };
  }

  toJSON(): State {
    return {
      counts: [...this.#counts.values()].map(({ name, count }) => [name, count]),
      overflow: this.#overflow,
      frozen: this.#frozen,
      recent: this.#recent.toJSON(),
      ...(this.#last !== undefined && { last: this.#last }),
      ...(this.#unseen && { bins: this.#shares.map((each) => each.toJSON()), unseen: this.#unseen.toJSON() }),
      ...(this.#constancy && { constancy: this.#constancy.toJSON() }),
    };
  }

  restore({ counts, overflow, frozen, recent, last, bins, unseen, constancy }: State): void {
    for (const [name, count] of counts) this.#counts.set(name, { name, count });
    this.#overflow = overflow;
    if (frozen) this.freeze();
    this.#recent.restore(recent);
    this.#last = last;
    for (const [bin, state] of (bins ?? []).entries()) this.#shares[bin]?.restore(state);
    if (unseen) this.#unseen?.restore(unseen);
    if (constancy) this.#constancy?.restore(constancy);
  }
}

/** Stands for any category that is not known by name. */
const UNKNOWN = '\u0000unknown';

/** A part of a text would keep the whole of it: it is copied. */
function nameOf(value: Value): string {
  const text = String(value);
  return text.length <= NAME_MAX ? text : Buffer.from(text.slice(0, NAME_MAX)).toString();
}
