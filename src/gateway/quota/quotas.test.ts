import { describe, expect, it } from 'vitest';
import { settingsSchema } from '../../config/schema/index.ts';
import { LeaseBook } from '../../control/leases/book.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { ControlToGateway } from '../../links/messages.ts';
import { ControlLeases } from '../leases/leased.ts';
import { Quotas } from './quotas.ts';
import { Rates } from './rates.ts';
import { type QuotaRefusal, Reservation } from './reservation.ts';

/** Requests at once, whose units several workers lease from control. */

function workersOf(count: number, concurrency: number) {
  const time = new VirtualTime();
  const down: (() => void)[] = [];
  const up: (() => void)[] = [];
  const turns: (() => void)[] = [];
  const leases: ControlLeases[] = [];
  const book = new LeaseBook((boot, message) => {
    down.push(() =>
      leases[Number(boot)]!.heard(message as Extract<ControlToGateway, { type: 'lease-grant' }>),
    );
  });
  book.open();
  const { tenants, gateway } = settingsSchema.parse({ tenants: { web: { limits: { concurrency } } } });
  const workers = Array.from({ length: count }, (_, at) => {
    const boot = String(at);
    const own = new ControlLeases({
      send(message) {
        up.push(() => {
          if (message.type === 'lease-ask') book.ask(boot, message.key, message.want, message.total);
          else if (message.type === 'lease-return')
            book.returned(boot, message.key, message.units, message.want);
          else book.forgot(boot, message.key);
        });
        return true;
      },
      soon: (run) => void turns.push(run),
    });
    leases.push(own);
    const rates = new Rates({ clock: time, timers: time });
    const quotas = new Quotas({ leases: own, rates, clock: time, timers: time });
    own.onFree = (key) => quotas.freed(key);
    quotas.swap({ tenants, gateway });
    return quotas;
  });
  const settle = () => {
    while (down.length + up.length + turns.length > 0) (turns.shift() ?? up.shift() ?? down.shift())!();
  };
  settle();
  const take = (at: number) => {
    const line = workers[at]!.lineOf('web', 'chat')!;
    const reservation = new Reservation(line, []);
    const taken = { reservation, answer: undefined as QuotaRefusal | 'granted' | undefined };
    workers[at]!.reserve(reservation, (refusal) => {
      taken.answer = refusal ?? 'granted';
    });
    return {
      ...taken,
      get answer() {
        return taken.answer;
      },
      end: () => workers[at]!.release(reservation),
    };
  };
  /** One in each of two workers. */
  const both = () => {
    const taken = [take(0), take(1)] as const;
    settle();
    return taken;
  };
  return { time, workers, leases, settle, take, both };
}

const REFUSED = { by: 'slots', limit: expect.anything() };

describe('requests at once over several workers', () => {
  it('come from where they are idle, to whichever worker is asked', () => {
    const { settle, take } = workersOf(3, 3);
    const all = [take(1), take(1), take(1)];
    expect(all.map(({ answer }) => answer)).toEqual([undefined, undefined, undefined]);
    settle();
    expect(all.map(({ answer }) => answer)).toEqual(['granted', 'granted', 'granted']);
  });

  it('are refused after a moment where all are in use, then at once, until one comes free', async () => {
    const { time, settle, take, both } = workersOf(2, 2);
    const [here, there] = both();
    const late = take(0);
    settle();
    await time.advance(249);
    expect(late.answer).toBeUndefined();
    await time.advance(1);
    expect([late.answer, take(0).answer]).toEqual([REFUSED, REFUSED]);
    there.end();
    settle();
    const next = take(0);
    settle();
    expect([here.answer, next.answer]).toEqual(['granted', 'granted']);
    expect(time.pending).toBe(0);
  });

  it('are given to the next where one who waits leaves, and nothing stays taken', async () => {
    const { time, leases, workers, settle, take, both } = workersOf(2, 2);
    const held = both();
    const [first, second] = [take(0), take(0)];
    settle();
    first.end();
    held[1]!.end();
    settle();
    expect([first.answer, second.answer]).toEqual([undefined, 'granted']);
    held[0]!.end();
    second.end();
    settle();
    await time.advance(260);
    expect(leases.map((each) => each.used('|web'))).toEqual([0, 0]);
    expect(workers.map(({ state }) => state!.slots)).toEqual([{ '|web': 0 }, { '|web': 0 }]);
  });

  it('are waited for no longer where the limit is taken away', () => {
    const { workers, settle, take, both } = workersOf(2, 2);
    const held = both();
    const waiting = take(0);
    settle();
    const { gateway } = settingsSchema.parse({});
    for (const quotas of workers) quotas.swap({ tenants: undefined, gateway });
    held[0]!.end();
    expect(waiting.answer).not.toBe(undefined);
    held[1]!.end();
    settle();
    expect(workers.map(({ state }) => state)).toEqual([undefined, undefined]);
  });
});
