import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RateLimit, rateLimitsOf } from '../../config/rate-limits.ts';
import { type Settings, settingsSchema } from '../../config/schema/index.ts';
import { QuotaService } from '../../control/quota/service.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { ControlToGateway, GatewayToControl } from '../../links/messages.ts';
import { Rates } from './rates.ts';
import type { QuotaRefusal, Rate } from './reservation.ts';

type Up = Extract<GatewayToControl, { type: 'quota-ask' | 'quota-used' | 'quota-known' }>;
type Down = Extract<ControlToGateway, { type: 'quota-answer' | 'quota-level' }>;

function tenantsOf(limits: object): Settings['tenants'] {
  return settingsSchema.parse({ tenants: { web: { limits } } }).tenants;
}

/** One worker, whose messages wait until they are delivered. */
class Worker {
  readonly rates: Rates;
  readonly time: VirtualTime;
  up: Up[] | undefined;
  down: Down[] = [];
  later: (() => void)[] = [];
  line: Rate[] = [];
  sent = 0;

  constructor(time: VirtualTime) {
    this.time = time;
    const send = (message: Up) => {
      this.sent++;
      this.up?.push(message);
      return this.up !== undefined;
    };
    const soon = (run: () => void) => void this.later.push(run);
    this.rates = new Rates({ clock: time, timers: time, link: { send, soon } });
  }

  swap(limits: readonly RateLimit[], workers: number): void {
    const rates = this.rates.swap(limits, workers);
    this.line = limits.map(({ key }) => rates.get(key)!);
  }

  /** The end of a turn of its loop. */
  turn(): void {
    for (const run of this.later.splice(0)) run();
  }
}

/** Several workers and a control that may die; messages take as long as the test wants. */
class World {
  readonly time = new VirtualTime();
  readonly workers: Worker[];
  control:
    | { service: QuotaService; peers: { boot: string; send: (message: ControlToGateway) => boolean }[] }
    | undefined;
  #limits: object;

  constructor(limits: object, workers = 3) {
    this.#limits = limits;
    this.workers = Array.from({ length: workers }, () => new Worker(this.time));
    this.limit(limits);
    this.controlBorn();
  }

  limit(limits: object): void {
    this.#limits = limits;
    this.control?.service.swap(tenantsOf(limits));
    for (const worker of this.workers) worker.swap(rateLimitsOf(tenantsOf(limits)), this.workers.length);
  }

  controlBorn(): void {
    if (this.control) return;
    const service = new QuotaService(this.time);
    service.swap(tenantsOf(this.#limits));
    const peers = this.workers.map((worker, at) => ({
      boot: `w${at}`,
      send: (message: ControlToGateway) => {
        worker.down.push(message as Down);
        return true;
      },
    }));
    this.control = { service, peers };
    for (const worker of this.workers) {
      worker.up = [];
      worker.rates.up();
    }
  }

  controlDies(): void {
    if (!this.control) return;
    this.control = undefined;
    for (const worker of this.workers) {
      worker.up = undefined;
      worker.down = [];
      worker.rates.down();
    }
  }

  deliverUp(at: number): void {
    const message = this.workers[at]!.up?.shift();
    if (message && this.control) this.control.service.heard(this.control.peers[at]!, message);
  }

  deliverDown(at: number): void {
    const worker = this.workers[at]!;
    const message = worker.down.shift();
    if (message) worker.rates.heard(message);
  }

  /** Everything that is on its way arrives. */
  settle(): void {
    for (let left = 1; left > 0; ) {
      left = 0;
      this.workers.forEach((worker, at) => {
        worker.turn();
        for (; (worker.up?.length ?? 0) > 0; left++) this.deliverUp(at);
        for (; worker.down.length > 0; left++) this.deliverDown(at);
      });
    }
  }

  take(at: number, ...amounts: number[]): { answer: QuotaRefusal | 'granted' | undefined } {
    const taken: { answer: QuotaRefusal | 'granted' | undefined } = { answer: undefined };
    const { rates, line } = this.workers[at]!;
    rates.take(line, amounts, (refusal) => {
      if (taken.answer !== undefined) throw new Error('decided twice');
      taken.answer = refusal ?? 'granted';
    });
    return taken;
  }
}

const granted = (all: { answer: unknown }[]) => all.filter(({ answer }) => answer === 'granted').length;

describe('rates of several workers', () => {
  it('never let more through together than there is, and all of it', () => {
    const world = new World({ requests: '5/s' });
    const all = [0, 1, 2, 0, 1, 2, 0, 1, 2].map((at) => world.take(at, 1));
    expect(granted(all)).toBe(0);
    world.settle();
    expect(granted(all)).toBe(5);
    const refusal = all.find(({ answer }) => answer !== 'granted')!.answer as QuotaRefusal;
    expect(refusal).toMatchObject({ by: 'rate', code: 'quota-short', waitMs: 200 });
  });

  it('are not asked for again before there may be enough', async () => {
    const world = new World({ requests: '5/s' });
    for (let i = 0; i < 6; i++) world.take(0, 1);
    world.settle();
    const sent = world.workers[0]!.sent;
    const flood = Array.from({ length: 1000 }, () => world.take(0, 1));
    expect([granted(flood), world.workers[0]!.sent]).toEqual([0, sent]);
    expect(flood.every(({ answer }) => answer !== undefined)).toBe(true);
    await world.time.advance(200);
    const next = world.take(0, 1);
    world.settle();
    expect(next.answer).toBe('granted');
  });

  it('are opened again to those that were refused when something comes back', () => {
    const world = new World({ tokens: '60000/min' });
    const big = world.take(0, 50_000);
    world.settle();
    const refused = world.take(1, 20_000);
    world.settle();
    expect([big.answer, refused.answer]).toEqual([
      'granted',
      expect.objectContaining({ code: 'quota-short' }),
    ]);
    world.workers[0]!.rates.settle(world.workers[0]!.line[0]!, -49_993);
    world.settle();
    const again = world.take(1, 20_000);
    world.settle();
    expect(again.answer).toBe('granted');
  });

  it('are taken all or none', () => {
    const world = new World({ requests: '1/s', tokens: '100/min' });
    const all = [world.take(0, 1, 101), world.take(1, 1, 60), world.take(2, 1, 60), world.take(0, 0, 40)];
    world.settle();
    expect(
      all.map(({ answer }) => (answer === 'granted' ? answer : answer?.by === 'rate' && answer.code)),
    ).toEqual(['quota-never', 'granted', 'quota-short', 'granted']);
  });

  it('go on by shares while control does not answer, and it is told what went through', async () => {
    const world = new World({ tokens: '60000/min' });
    const before = world.take(0, 30_000);
    world.settle();
    world.controlDies();
    // A third of the 30,000 that are left by what this one knows.
    const alone = [world.take(0, 8_000), world.take(0, 8_000), world.take(0, 60_001)];
    expect(
      alone.map(({ answer }) => (answer === 'granted' ? answer : answer?.by === 'rate' && answer.code)),
    ).toEqual(['granted', 'quota-share-short', 'quota-never']);
    await world.time.advance(18_000);
    expect(world.take(0, 8_000).answer).toBe('granted');
    expect(before.answer).toBe('granted');
    world.controlBorn();
    world.settle();
    expect([...world.control!.service.levels().values()][0]).toBeCloseTo(30_000 + 18_000 - 16_000, 3);
  });

  it('let a request through that is more than a share holds, in debt', async () => {
    const world = new World({ requests: '1/min' });
    world.controlDies();
    expect([world.take(0, 1).answer, world.take(0, 1).answer]).toEqual([
      'granted',
      expect.objectContaining({ code: 'quota-share-short' }),
    ]);
    await world.time.advance(179_000);
    expect(world.take(0, 1).answer).not.toBe('granted');
    await world.time.advance(1_000);
    expect(world.take(0, 1).answer).toBe('granted');
  });

  it('decide by shares what control is too slow for, and take its late grants back', async () => {
    const world = new World({ requests: '30/min' });
    const late = world.take(0, 1);
    await world.time.advance(999);
    expect(late.answer).toBeUndefined();
    await world.time.advance(1);
    expect(late.answer).toBe('granted');
    // Nobody waits for it again before it answers.
    expect(world.take(0, 1).answer).toBe('granted');
    world.settle();
    expect([...world.control!.service.levels().values()][0]).toBeCloseTo(28, 6);
    const next = world.take(0, 1);
    expect(next.answer).toBeUndefined();
    world.settle();
    expect(next.answer).toBe('granted');
    await world.time.advance(1000);
    expect(world.time.pending).toBe(0);
  });

  it('begin in a new control with the least that a worker knows of', () => {
    const world = new World({ requests: '100/d' });
    for (let i = 0; i < 40; i++) world.take(0, 1);
    world.settle();
    for (let i = 0; i < 40; i++) world.take(1, 1);
    world.settle();
    world.controlDies();
    world.controlBorn();
    world.settle();
    const more = Array.from({ length: 100 }, (_, i) => world.take(i % 3, 1));
    world.settle();
    expect(granted(more)).toBe(20);
  });

  it('keep their level when a worker is no longer alone', () => {
    const world = new World({ requests: '100/d' }, 1);
    for (let i = 0; i < 60; i++) expect(world.take(0, 1).answer).toBe('granted');
    expect(world.workers[0]!.sent).toBe(0);
    world.workers.push(new Worker(world.time));
    world.control!.peers.push({
      boot: 'w1',
      send: (message) => world.workers[1]!.down.push(message as Down) > 0,
    });
    world.workers[1]!.up = [];
    world.workers[1]!.rates.up();
    world.limit({ requests: '100/d' });
    world.settle();
    const more = Array.from({ length: 100 }, (_, i) => world.take(i % 2, 1));
    world.settle();
    expect(granted(more)).toBe(40);
  });

  const act = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('take' as const),
        at: fc.nat(2),
        share: fc.integer({ min: 1, max: 100 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('settle' as const),
        at: fc.nat(50),
        share: fc.integer({ min: -100, max: 20 }),
      }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constantFrom('up' as const, 'down' as const, 'turn' as const),
        at: fc.nat(2),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 90 }) }),
    },
  );

  it('over any sequence and any delay never let through more than the burst and what time brought', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 150 }), async (acts) => {
        const world = new World({ requests: '5/s', tokens: '600/min' });
        const held: { at: number; tokens: number; taken: { answer: unknown }; used: number }[] = [];
        let waitedMs = 0;
        for (const each of acts) {
          if (each.do === 'take') {
            const tokens = each.share * 6;
            held.push({ at: each.at, tokens, taken: world.take(each.at, 1, tokens), used: tokens });
          } else if (each.do === 'settle') {
            const one = held[each.at];
            if (one?.taken.answer !== 'granted' || one.used !== one.tokens) continue;
            const more = Math.round((one.tokens * each.share) / 100);
            one.used += more;
            const { rates, line } = world.workers[one.at]!;
            rates.settle(line[1]!, more);
          } else if (each.do === 'wait') {
            waitedMs += each.ms;
            if (waitedMs >= 1000) {
              world.settle(); // so that control is never too slow
              waitedMs = each.ms;
            }
            await world.time.advance(each.ms);
          } else if (each.do === 'up') world.deliverUp(each.at);
          else if (each.do === 'down') world.deliverDown(each.at);
          else world.workers[each.at]!.turn();
          const through = held.filter(({ taken }) => taken.answer === 'granted');
          const came = world.time.mono() / 1000;
          expect(through.length).toBeLessThanOrEqual(5 + 5 * came + 1e-6);
          const overdrawn = through.reduce((sum, { used, tokens }) => sum + Math.max(0, used - tokens), 0);
          const used = through.reduce((sum, one) => sum + one.used, 0);
          expect(used - overdrawn).toBeLessThanOrEqual(600 + 10 * came + 1e-6);
        }
        world.settle();
        expect(held.every(({ taken }) => taken.answer !== undefined)).toBe(true);
        // Nothing is lost either: what is there is what was not used.
        const used = held
          .filter(({ taken }) => taken.answer === 'granted')
          .reduce((sum, one) => sum + one.used, 0);
        const tokens = world.control!.service.levels().get('|web|tokens')!;
        expect(tokens).toBeGreaterThanOrEqual(Math.min(600, 600 - used) - 1e-6);
      }),
      { numRuns: 200 },
    );
  });

  it('whenever control dies, let through no more than one burst beyond that', async () => {
    const event = fc.oneof(
      { weight: 8, arbitrary: fc.record({ do: fc.constant('take' as const), at: fc.nat(2) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), at: fc.nat(200) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('dies', 'born'), at: fc.constant(0) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 200 }), async (events) => {
        const world = new World({ requests: '6/s' });
        const taken: { answer: unknown }[] = [];
        let deaths = 0;
        for (const each of events) {
          if (each.do === 'take') taken.push(world.take(each.at, 1));
          else if (each.do === 'wait') await world.time.advance(each.at);
          else if (each.do === 'born') world.controlBorn();
          else if (world.control) {
            world.controlDies();
            deaths++;
          }
          world.settle();
          expect(granted(taken)).toBeLessThanOrEqual(
            6 * (1 + deaths) + (6 * world.time.mono()) / 1000 + 1e-6,
          );
        }
        world.controlBorn();
        world.settle();
        expect(taken.every(({ answer }) => answer !== undefined)).toBe(true);
      }),
      { numRuns: 100 },
    );
  });
});
