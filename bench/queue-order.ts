import { type Random, seededRandom } from '../src/kernel/random.ts';
import { VirtualTime } from '../src/kernel/virtual-time.ts';
import { DrainRate, ServiceTimes } from '../src/policies/deadline-fit/index.ts';

/**
 * Which order to serve a standing queue in: first come first served, last come first served or CoDel, each with and
 * without prediction, in virtual time. `node bench/queue-order.ts`; its results stand in decision 9.
 */

const PLACES = 32;
const SERVICE_MS = 400;
const DEADLINE_MS = 2_000;
const QUEUE_MAX = 512;
const WARM_MS = 10_000;
const END_MS = 120_000;
const SEEDS = [1, 2, 3];
/** CoDel's target and interval, stretched to the deadline as its 5 ms and 100 ms are to a round trip. */
const TARGET_MS = DEADLINE_MS * 0.05;
const INTERVAL_MS = DEADLINE_MS / 4;

interface Order {
  name: string;
  last?: boolean;
  codel?: boolean;
  /** Judged on arrival and at the turn: by so many spreads above what is expected, or by the longest of late. */
  fit?: { arrival: number | 'longest'; turn: number | 'longest' };
}

interface Load {
  name: string;
  /** Of the capacity; in bursts of 3 s, with 3 s of calm between them, as many in the mean. */
  load: number;
  bursts?: boolean;
  /** The engine turns four times slower half way. */
  slows?: boolean;
}

interface Job {
  at: number;
  serviceMs: number;
  tokens: number;
  timer: unknown;
}

class World {
  readonly time = new VirtualTime();
  readonly #random: Random;
  readonly #order: Order;
  readonly #load: Load;
  readonly #drain = new DrainRate(1);
  readonly #times = new ServiceTimes();
  #queue: Job[] = [];
  #busy = 0;
  #above = 0;
  #nextDrop = 0;
  #drops = 0;
  count = 0;
  good = 0;
  late = 0;
  busyMs = 0;
  wastedMs = 0;
  readonly refusedAfterMs: number[] = [];
  readonly waitedMs: number[] = [];

  constructor(order: Order, load: Load, seed: number) {
    this.#order = order;
    this.#load = load;
    this.#random = seededRandom(seed);
  }

  run(): void {
    this.#arrive();
    this.time.run(END_MS + 60_000);
  }

  #arrive(): void {
    const now = this.time.mono();
    if (now > END_MS) return;
    this.#come(now);
    const { load, bursts } = this.#load;
    const inBurst = Math.floor(now / 3_000) % 2 === 0;
    const rate = ((bursts ? (inBurst ? 2 * load - 0.3 : 0.3) : load) * PLACES) / SERVICE_MS;
    this.time.set(-Math.log(1 - this.#random.next()) / rate, () => this.#arrive());
  }

  #come(now: number): void {
    const draw =
      Math.sqrt(-2 * Math.log(1 - this.#random.next())) * Math.cos(2 * Math.PI * this.#random.next());
    // A long tail, and sizes that tell about it in part.
    const serviceMs = SERVICE_MS * Math.exp(0.8 * draw - 0.32);
    const tokens = Math.max(1, Math.round(serviceMs * (0.6 + 0.8 * this.#random.next())));
    const job: Job = { at: now, serviceMs, tokens, timer: undefined };
    if (now > WARM_MS) this.count++;
    if (this.#busy < PLACES && this.#queue.length === 0) {
      this.#serve(job, now);
      return;
    }
    const { fit, last } = this.#order;
    if (fit) {
      const own = last ? 0 : this.#queue.reduce((sum, one) => sum + one.tokens, 0);
      const ahead = { rank: 0, above: 0, own, places: this.#busy, floors: [1], waits: () => true };
      const waitMs = this.#drain.waitMs(ahead, now);
      if (waitMs + this.#service(job, fit.arrival, now) > DEADLINE_MS) {
        this.#refuse(job, now);
        return;
      }
    }
    if (this.#queue.length >= QUEUE_MAX) {
      this.#refuse(job, now);
      return;
    }
    if (this.#queue.push(job) === 1) this.#drain.contested(now, true);
    job.timer = this.time.set(DEADLINE_MS, () => {
      this.#queue = this.#queue.filter((one) => one !== job);
      this.#emptied();
      this.#refuse(job, this.time.mono());
    });
  }

  #serve(job: Job, now: number): void {
    this.time.clear(job.timer);
    this.#busy++;
    const leftMs = job.at + DEADLINE_MS - now;
    const wholeMs = job.serviceMs * (this.#load.slows && now > END_MS / 2 ? 4 : 1);
    const tookMs = Math.min(wholeMs, leftMs);
    this.time.set(tookMs, () => {
      const end = this.time.mono();
      this.#busy--;
      this.#drain.finished(0, job.tokens, tookMs, end);
      if (wholeMs <= leftMs) this.#times.observe('any', job.tokens, wholeMs, end);
      else this.#times.atLeast('any', job.tokens, tookMs, end);
      this.#count(job, now - job.at, tookMs, wholeMs <= leftMs);
      this.#next(end);
    });
  }

  #count(job: Job, waitedMs: number, tookMs: number, inTime: boolean): void {
    if (job.at <= WARM_MS) return;
    this.busyMs += tookMs;
    if (inTime) {
      this.good++;
      this.waitedMs.push(waitedMs);
    } else {
      this.late++;
      this.wastedMs += tookMs;
    }
  }

  #next(now: number): void {
    while (this.#busy < PLACES && this.#queue.length > 0) {
      const job = this.#order.last ? this.#queue.pop()! : this.#queue.shift()!;
      this.#emptied();
      if (this.#order.codel && this.#isDropped(job, now)) this.#refuse(job, now);
      else if (this.#isTooLate(job, now)) this.#refuse(job, now);
      else this.#serve(job, now);
    }
  }

  #isTooLate(job: Job, now: number): boolean {
    const { fit } = this.#order;
    if (!fit || this.#queue.length === 0) return false;
    return this.#service(job, fit.turn, now) > job.at + DEADLINE_MS - now;
  }

  /** Nichols and Jacobson, Controlling Queue Delay (2012). */
  #isDropped(job: Job, now: number): boolean {
    if (now - job.at < TARGET_MS || this.#queue.length === 0) {
      this.#above = 0;
      return false;
    }
    if (this.#above === 0) {
      this.#above = now + INTERVAL_MS;
      this.#drops = Math.max(0, this.#drops - 2);
      this.#nextDrop = this.#above;
    }
    if (now < this.#nextDrop) return false;
    this.#nextDrop = now + INTERVAL_MS / Math.sqrt(++this.#drops);
    return true;
  }

  #service(job: Job, spreads: number | 'longest', now: number): number {
    const { levelMs, spreadMs, safeMs } = this.#times.expected('any', job.tokens, now);
    return spreads === 'longest' ? safeMs : levelMs + spreads * spreadMs;
  }

  #refuse(job: Job, now: number): void {
    this.time.clear(job.timer);
    if (job.at > WARM_MS) this.refusedAfterMs.push(now - job.at);
  }

  #emptied(): void {
    if (this.#queue.length === 0) this.#drain.contested(this.time.mono(), false);
  }
}

function percentile(values: number[], share: number): number {
  values.sort((a, b) => a - b);
  return values.length === 0 ? 0 : Math.round(values[Math.floor(share * (values.length - 1))]!);
}

const fit = { arrival: 'longest', turn: 'longest' } as const;
const orders: Order[] = [
  { name: 'first' },
  { name: 'last', last: true },
  { name: 'codel', codel: true },
  { name: 'first, fit (0, 0)', fit: { arrival: 0, turn: 0 } },
  { name: 'first, fit (1, 1)', fit: { arrival: 1, turn: 1 } },
  { name: 'first, fit (longest, 2)', fit: { arrival: 'longest', turn: 2 } },
  { name: 'first, fit', fit },
  { name: 'last, fit', last: true, fit },
  { name: 'codel, fit', codel: true, fit },
];
const loads: Load[] = [
  { name: '0.9', load: 0.9 },
  { name: '1.3', load: 1.3 },
  { name: '5', load: 5 },
  { name: '1, bursts', load: 1, bursts: true },
  { name: '5, bursts', load: 5, bursts: true },
  { name: '1.3, slows', load: 1.3, slows: true },
];

for (const load of loads) {
  console.log(`load ${load.name}`);
  console.table(
    orders.map((order) => {
      const worlds = SEEDS.map((seed) => new World(order, load, seed));
      for (const world of worlds) world.run();
      const sum = (of: (world: World) => number) => worlds.reduce((all, world) => all + of(world), 0);
      const refused = worlds.flatMap(({ refusedAfterMs }) => refusedAfterMs);
      const waited = worlds.flatMap(({ waitedMs }) => waitedMs);
      return {
        order: order.name,
        'answers in time, a second': Math.round(
          sum(({ good }) => good) / SEEDS.length / ((END_MS - WARM_MS) / 1000),
        ),
        'work that came to nothing': Number((sum((it) => it.wastedMs) / sum((it) => it.busyMs)).toFixed(3)),
        'of 1000 served too late': Math.round((1000 * sum(({ late }) => late)) / sum(({ count }) => count)),
        'refused after, p99 ms': percentile(refused, 0.99),
        'waited, median ms': percentile(waited, 0.5),
      };
    }),
  );
}
