import { describe, expect, it } from 'vitest';
import { seededRandom } from '../kernel/random.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { Outcome, Sender, Watch } from './contracts.ts';
import { Recorder } from './recorder.ts';
import { formatReport, reportOf } from './report.ts';
import { Run, type RunSettings } from './run.ts';
import { constant, type Lengths, unscheduled } from './schedule.ts';

const fixed: Lengths = () => ({ promptTokens: 3, outputTokens: 4 });
const OK: Outcome = { status: 200, failure: undefined, degraded: undefined, outputTokens: 4 };

interface Server extends Sender {
  asked: number;
  aborted: number;
}

/** A server in virtual time: `answer` says after how many milliseconds it answers what, or never. */
function server(
  time: VirtualTime,
  answer: (atMs: number) => { afterMs: number; outcome?: Outcome } | 'never',
): Server {
  const self: Server = {
    asked: 0,
    aborted: 0,
    send(_request, watch: Watch) {
      self.asked++;
      watch.onSent();
      const plan = answer(time.mono());
      if (plan !== 'never') time.set(plan.afterMs, () => watch.onEnd(plan.outcome ?? OK));
      return () => {
        self.aborted++;
      };
    },
    close: async () => {},
  };
  return self;
}

function settings(more: Partial<RunSettings>): RunSettings {
  return {
    schedule: constant(100, fixed),
    concurrency: undefined,
    inflightMax: 1000,
    warmupMs: 0,
    durationMs: 10_000,
    countMax: Number.POSITIVE_INFINITY,
    timeoutMs: 60_000,
    deadlineMs: 100,
    compose: () => ({ path: '/', body: '', streams: false }),
    ...more,
  };
}

async function play(time: VirtualTime, sender: Sender, more: Partial<RunSettings> = {}) {
  const run = new Run(settings(more), sender, time, time);
  const result = run.start();
  await time.advance(200_000);
  expect(time.pending).toBe(0);
  return result;
}

describe('an open loop', () => {
  it('sends at the intended times and counts what came of it', async () => {
    const time = new VirtualTime();
    const sender = server(time, () => ({ afterMs: 20 }));
    const { tally, measuredMs } = await play(time, sender);
    expect(sender.asked).toBe(1000);
    expect(tally).toMatchObject({
      intended: 1000,
      ok: 1000,
      good: 1000,
      late: 0,
      dropped: 0,
      outputTokens: 4000,
    });
    expect(tally.total!.p50).toBeCloseTo(20, 1);
    expect(measuredMs).toBe(10_000);
  });

  it('charges a stall to all who would have come meanwhile', async () => {
    const time = new VirtualTime();
    // For two of ten seconds nobody is answered; then all are at once.
    const stalled = server(time, (at) => ({ afterMs: at >= 4000 && at < 6000 ? 6000 - at + 1 : 1 }));
    const { tally } = await play(time, stalled);
    // A fifth of the requests fell into the stall, and waited evenly between 0 and 2 s.
    expect(tally.intended).toBe(1000);
    expect(tally.total!.p50).toBeCloseTo(1, 1);
    expect(tally.total!.p90).toBeGreaterThan(950);
    expect(tally.total!.p90).toBeLessThan(1050);
    expect(tally.total!.p99).toBeGreaterThan(1850);
    expect(tally.good / tally.intended).toBeCloseTo(0.81, 2);
  });

  it('is not slowed by a client that comes late itself: latency starts at the intended time', async () => {
    const time = new VirtualTime();
    // Written to a connection only 50 ms after it was meant to be, as when connections run short.
    const sender: Sender = {
      send(_request, watch) {
        time.set(50, () => watch.onSent());
        time.set(60, () => watch.onEnd(OK));
        return () => {};
      },
      close: async () => {},
    };
    const { tally } = await play(time, sender, { durationMs: 1000 });
    expect(tally).toMatchObject({ intended: 100, late: 100 });
    expect(tally.sendDelay!.p50).toBeCloseTo(50, 0);
    expect(tally.total!.p50).toBeCloseTo(60, 0);
  });

  it('leaves the warm-up out', async () => {
    const time = new VirtualTime();
    const sender = server(time, (at) => ({ afterMs: at < 1000 ? 900 : 1 }));
    const { tally, measuredMs } = await play(time, sender, { warmupMs: 1000, durationMs: 2000 });
    expect(sender.asked).toBe(300);
    expect(tally).toMatchObject({ intended: 200, ok: 200 });
    expect(tally.total!.max).toBeLessThan(2);
    expect(measuredMs).toBe(2000);
  });

  it('gives up a request after its timeout, and drops what is too much', async () => {
    const time = new VirtualTime();
    const sender = server(time, () => 'never');
    const { tally } = await play(time, sender, { durationMs: 100, timeoutMs: 500 });
    expect(tally).toMatchObject({ intended: 10, ok: 0, failed: 10, failures: { timeout: 10 } });
    expect(sender.aborted).toBe(10);
    const flood = server(time, () => 'never');
    const { tally: flooded } = await play(time, flood, {
      schedule: constant(1_000_000, fixed),
      durationMs: 2,
    });
    expect(flood.asked).toBe(1000);
    expect(flooded).toMatchObject({ dropped: 1000, intended: 2000 });
  });

  it('counts statuses, failures and rungs, and keeps failures out of the percentiles', async () => {
    const time = new VirtualTime();
    let turn = 0;
    const outcomes: Outcome[] = [
      { ...OK, degraded: 'answer' },
      { status: 503, failure: 'http-503', degraded: undefined, outputTokens: 0 },
    ];
    const sender = server(time, () => ({
      afterMs: turn % 2 === 0 ? 5 : 5000,
      outcome: outcomes[turn++ % 2]!,
    }));
    const { tally } = await play(time, sender, { durationMs: 1000 });
    expect(tally).toMatchObject({
      ok: 50,
      failed: 50,
      statuses: { 200: 50, 503: 50 },
      failures: { 'http-503': 50 },
      degraded: { answer: 50 },
    });
    expect(tally.total!.max).toBeLessThan(6);
  });

  it('ends when it is stopped, and counts what was on its way', async () => {
    const time = new VirtualTime();
    const sender = server(time, () => 'never');
    const run = new Run(settings({}), sender, time, time);
    const result = run.start();
    await time.advance(95);
    run.stop();
    expect((await result).tally).toMatchObject({ intended: 10, unfinished: 10 });
    expect(time.pending).toBe(0);
  });

  it('ends after so many requests', async () => {
    const time = new VirtualTime();
    const sender = server(time, () => ({ afterMs: 7 }));
    const { tally, measuredMs } = await play(time, sender, { countMax: 25 });
    expect(tally).toMatchObject({ intended: 25, ok: 25 });
    expect(measuredMs).toBeCloseTo(247, 6);
  });
});

describe('a closed loop', () => {
  it('keeps so many on their way, and one that ends brings the next', async () => {
    const time = new VirtualTime();
    let now = 0;
    let most = 0;
    const sender: Sender = {
      send(_request, watch) {
        most = Math.max(most, ++now);
        watch.onSent();
        time.set(10, () => {
          now--;
          watch.onEnd(OK);
        });
        return () => {};
      },
      close: async () => {},
    };
    const { tally } = await play(time, sender, {
      schedule: unscheduled(fixed),
      concurrency: 8,
      durationMs: 1000,
    });
    expect(most).toBe(8);
    expect(tally).toMatchObject({ intended: 800, ok: 800 });
    expect(tally.total!.max).toBeCloseTo(10, 1);
  });
});

describe('a stream', () => {
  it('is timed by its first token, the gaps between tokens and its end', async () => {
    const time = new VirtualTime();
    const sender: Sender = {
      send(_request, watch) {
        watch.onSent();
        for (const at of [100, 110, 120, 150]) time.set(at, () => watch.onToken());
        time.set(155, () => watch.onEnd(OK));
        return () => {};
      },
      close: async () => {},
    };
    const { tally } = await play(time, sender, { durationMs: 1000 });
    expect(tally.firstToken!.p50).toBeCloseTo(100, 0);
    expect(tally.betweenTokens!.count).toBe(300);
    expect(tally.betweenTokens!.p50).toBeCloseTo(10, 1);
    expect(tally.betweenTokens!.max).toBeCloseTo(30, 1);
    expect(tally.total!.p50).toBeCloseTo(155, 0);
    expect(tally.good).toBe(100); // the first token came within the deadline, the end did not
  });
});

describe('percentiles', () => {
  it('are those of the sorted values, to a tenth of a percent', () => {
    const random = seededRandom(5);
    const recorder = new Recorder(1000);
    const values = Array.from({ length: 50_000 }, () => Math.exp(random.next() * 10) / 3);
    for (const endedAt of values) {
      recorder.end({ intendedAt: 0, sentAt: 0, firstTokenAt: undefined, endedAt, promptTokens: 1 }, OK);
    }
    values.sort((a, b) => a - b);
    const spread = recorder.tally().total!;
    for (const [name, share] of [
      ['p50', 0.5],
      ['p90', 0.9],
      ['p95', 0.95],
      ['p99', 0.99],
      ['p999', 0.999],
    ] as const) {
      const exact = values[Math.ceil(share * values.length) - 1]!;
      expect(Math.abs(spread[name] / exact - 1)).toBeLessThan(0.0015);
    }
    expect(spread.max / values.at(-1)!).toBeCloseTo(1, 3);
  });
});

describe('a report', () => {
  const subject = {
    url: 'http://127.0.0.1:7070/v1',
    what: 'chat',
    model: 'chat',
    arrivals: 'open loop, constant 100/s',
    closed: false,
    warmupMs: 0,
    deadlineMs: 100,
    seed: 1,
    stopped: false,
  };

  it('says what was asked, what came back, and what the figures leave out', async () => {
    const time = new VirtualTime();
    const sender = server(time, (at) => (at < 9000 ? { afterMs: 20 } : 'never'));
    const run = new Run(settings({}), sender, time, time);
    const result = run.start();
    await time.advance(10_500);
    run.stop();
    const report = reportOf(subject, await result);
    expect(report.perSecond).toEqual({ ok: 90, good: 90, promptTokens: 270, outputTokens: 360 });
    expect(report.goodShare).toBe(0.9);
    const text = formatReport(report);
    expect(text).toContain('1,000 intended, 900 ok, 0 failed, 100 unfinished');
    expect(text).toContain('90.00 % within 100ms');
    expect(text).toMatch(/^total +20\.0/m);
    expect(text).toContain('the true ones are worse');
  });

  it('warns that a closed loop hides waiting', async () => {
    const time = new VirtualTime();
    const sender = server(time, () => ({ afterMs: 20 }));
    const result = await play(time, sender, {
      schedule: unscheduled(fixed),
      concurrency: 1,
      durationMs: 100,
    });
    expect(formatReport(reportOf({ ...subject, closed: true }, result))).toContain('A closed loop waits');
  });
});
