import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LeaseBook } from '../../control/leases/book.ts';
import type { ControlToGateway, GatewayToControl } from '../../links/messages.ts';
import { ControlLeases } from './leased.ts';

const KEY = 'b|http://a';
type Up = Extract<GatewayToControl, { type: 'lease-ask' | 'lease-return' | 'lease-forget' }>;
type Down = Extract<ControlToGateway, { type: 'lease-grant' | 'lease-recall' }>;

/** One worker as the path uses it: requests come, wait for a unit, run and end. */
class Worker {
  readonly boot: string;
  readonly leases: ControlLeases;
  running = 0;
  waiting = 0;
  /** On their way. Undefined while there is no connection. */
  up: Up[] | undefined;
  down: Down[] = [];
  later: (() => void)[] = [];

  constructor(boot: string, total: number) {
    this.boot = boot;
    this.leases = new ControlLeases({
      send: (message) => {
        this.up?.push(message);
        return this.up !== undefined;
      },
      soon: (run) => this.later.push(run),
    });
    this.leases.onFree = () => this.pull();
    this.leases.declare(KEY, total);
  }

  come(): void {
    if (this.leases.take(KEY, this.waiting + 1)) this.running++;
    else this.waiting++;
  }

  end(): void {
    if (this.running === 0) return;
    this.running--;
    this.leases.give(KEY);
    this.pull();
  }

  pull(): void {
    while (this.waiting > 0 && this.leases.used(KEY) < this.leases.held(KEY)) {
      if (!this.leases.take(KEY, this.waiting)) break;
      this.waiting--;
      this.running++;
    }
    if (this.waiting > 0) this.leases.want(KEY, this.waiting);
  }

  /** Whoever waits gives up. */
  giveUp(): void {
    this.waiting = 0;
  }

  /** The end of a turn of its loop. */
  turn(): void {
    for (const run of this.later.splice(0)) run();
  }
}

/** Three workers and a control that may die, with messages that take their time. */
class World {
  total: number;
  workers: Worker[] = [];
  book: LeaseBook | undefined;
  #boots = 0;
  readonly count = 3;

  constructor(total: number) {
    this.total = total;
    for (let i = 0; i < this.count; i++) this.workers.push(this.#born());
    this.controlBorn();
  }

  #born(): Worker {
    return new Worker(`w${this.#boots++}`, this.total);
  }

  controlDies(): void {
    this.book = undefined;
    for (const worker of this.workers) {
      worker.up = undefined;
      worker.down = [];
    }
  }

  controlBorn(): void {
    if (this.book) return;
    this.book = new LeaseBook((boot, message) => {
      this.workers.find((worker) => worker.boot === boot)?.down.push(message);
    });
    for (const worker of this.workers) this.#joins(worker);
    this.book.open();
  }

  #joins(worker: Worker): void {
    worker.up = [];
    this.book!.learn(worker.boot, worker.leases.holdings());
    worker.leases.up();
  }

  workerDies(index: number): void {
    const dead = this.workers[index]!;
    this.workers[index] = this.#born();
    if (!this.book) return;
    this.book.gone(dead.boot);
    this.#joins(this.workers[index]);
  }

  deliverUp(index: number): void {
    const { up, boot } = this.workers[index]!;
    const message = up?.shift();
    if (!message || !this.book) return;
    if (message.type === 'lease-ask') this.book.ask(boot, KEY, message.want, message.total);
    else if (message.type === 'lease-return') this.book.returned(boot, KEY, message.units, message.want);
    else this.book.forgot(boot, KEY);
  }

  deliverDown(index: number): void {
    const message = this.workers[index]!.down.shift();
    if (message) this.workers[index]!.leases.heard(message);
  }

  declare(index: number): void {
    this.workers[index]!.leases.declare(KEY, this.total);
    this.workers[index]!.pull();
  }

  declareAll(): void {
    for (let index = 0; index < this.workers.length; index++) this.declare(index);
  }

  /** Lets every message arrive and every turn end. */
  settle(): void {
    for (let round = 0; round < 1000; round++) {
      const busy = this.workers.some(({ up, down, later }) => up?.length || down.length || later.length);
      if (!busy) return;
      this.workers.forEach((worker, index) => {
        worker.turn();
        while (worker.up?.length) this.deliverUp(index);
        while (worker.down.length) this.deliverDown(index);
      });
    }
    throw new Error('the leases do not come to rest');
  }

  get held(): number {
    const coming = (worker: Worker) =>
      worker.down.reduce((sum, message) => sum + (message.type === 'lease-grant' ? message.units : 0), 0);
    return this.workers.reduce((sum, worker) => sum + worker.leases.held(KEY) + coming(worker), 0);
  }

  get running(): number {
    return this.workers.reduce((sum, worker) => sum + worker.running, 0);
  }
}

const worker = fc.nat(2);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant('come' as const), worker) },
  { weight: 5, arbitrary: fc.tuple(fc.constant('end' as const), worker) },
  { weight: 5, arbitrary: fc.tuple(fc.constant('turn' as const), worker) },
  { weight: 6, arbitrary: fc.tuple(fc.constant('up' as const), worker) },
  { weight: 6, arbitrary: fc.tuple(fc.constant('down' as const), worker) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('workerDies' as const), worker) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('controlDies' as const), worker) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('controlBorn' as const), worker) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('giveUp' as const), worker) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('forget' as const), worker) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('declare' as const), worker) },
);

function take(world: World, [what, index]: [string, number]): void {
  const at = world.workers[index]!;
  if (what === 'come') at.come();
  else if (what === 'end') at.end();
  else if (what === 'giveUp') at.giveUp();
  else if (what === 'turn') at.turn();
  else if (what === 'up') world.deliverUp(index);
  else if (what === 'down') world.deliverDown(index);
  else if (what === 'workerDies') world.workerDies(index);
  else if (what === 'controlDies') world.controlDies();
  else if (what === 'controlBorn') world.controlBorn();
  else if (what === 'forget') at.leases.forget(KEY);
  else world.declare(index);
}

/** Ends every request, and counts what is held when all has come to rest. */
function finish(world: World): void {
  world.controlBorn();
  world.declareAll();
  world.settle();
  for (
    let round = 0;
    round < 1000 && world.workers.some(({ running, waiting }) => running + waiting > 0);
    round++
  ) {
    for (const worker of world.workers) worker.end();
    world.settle();
  }
}

test('leases never exceed the limit, lose no unit, and serve whoever asks once units are idle', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.array(step, { maxLength: 120 }), (total, steps) => {
      const world = new World(total);
      for (const taken of steps) {
        take(world, taken);
        expect(world.held).toBeLessThanOrEqual(total);
        expect(world.running).toBeLessThanOrEqual(total);
      }
      world.controlBorn();
      world.declareAll();
      world.settle();
      const idle = total - world.running;
      for (const { waiting } of world.workers) if (idle > 0) expect(waiting).toBe(0);
      finish(world);
      for (const { waiting } of world.workers) expect(waiting).toBe(0);
      expect(world.held).toBe(total);
    }),
    { numRuns: 2000 },
  );
});

test('a limit that changes is never exceeded by more than was held before, and is kept once requests have ended', () => {
  const changes = fc.array(
    fc.oneof(step, fc.tuple(fc.constant('total' as const), fc.integer({ min: 1, max: 12 }))),
    {
      maxLength: 80,
    },
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), changes, (total, steps) => {
      const world = new World(total);
      let last = total;
      for (const taken of steps) {
        const before = world.held;
        if (taken[0] === 'total') {
          // No more than two limits are on their way at once.
          world.settle();
          last = world.total;
          world.total = taken[1];
          world.declareAll();
        } else take(world, taken as [string, number]);
        expect(world.held).toBeLessThanOrEqual(Math.max(before, world.total, last));
      }
      finish(world);
      expect(world.held).toBe(world.total);
    }),
    { numRuns: 1000 },
  );
});

test.each([1, 2, 3, 4, 7])('%i units go round among three workers that never have enough', (total) => {
  const world = new World(total);
  const served = world.workers.map(() => 0);
  for (let round = 0; round < 60; round++) {
    for (const worker of world.workers) while (worker.waiting < 5) worker.come();
    world.settle();
    world.workers.forEach((worker, index) => {
      served[index]! += worker.running;
      while (worker.running > 0) worker.end();
    });
    world.settle();
  }
  expect(served.reduce((a, b) => a + b)).toBeGreaterThanOrEqual(60 * total);
  for (const count of served) expect(count).toBeGreaterThanOrEqual(Math.floor((60 * total) / 3 / 2));
});

test('a worker alone holds the whole limit after one ask, and goes on while control is away', () => {
  const world = new World(4);
  world.settle();
  world.workerDies(1);
  world.workerDies(2);
  world.settle();
  world.controlDies();
  const [first] = world.workers;
  const held = first!.leases.held(KEY);
  expect(held).toBeGreaterThan(0);
  for (let i = 0; i < 6; i++) first!.come();
  expect(first!.running).toBe(held);
  first!.end();
  expect(first!.running).toBe(held);
});
