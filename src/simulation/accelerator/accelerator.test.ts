import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import { Accelerator, type Job, type RunningJob, WAITING_MAX } from './accelerator.ts';
import { type AcceleratorProfile, stepMs } from './step.ts';

const PROFILE: AcceleratorProfile = {
  prefillTokensPerSecond: 8000,
  decodeTokensPerSecond: 50,
  batchMax: 32,
  kvTokensMax: 100_000,
  coldStart: 0,
  jitter: 0,
  faults: { errorRate: 0, resetRate: 0, stallRate: 0 },
};

interface Heard {
  job: number;
  at: number;
  what: string;
}

function rig(profile: Partial<AcceleratorProfile> = {}, seed = 1) {
  const time = new VirtualTime();
  const accelerator = new Accelerator({ ...PROFILE, ...profile }, time, time, seededRandom(seed));
  const heard: Heard[] = [];
  let count = 0;
  const submit = (job: Job, onHear: (what: string) => void = () => {}): RunningJob | undefined => {
    const id = count++;
    const hear = (what: string) => {
      heard.push({ job: id, at: time.mono(), what });
      onHear(what);
    };
    return accelerator.submit(job, {
      onToken: (index) => hear(`token ${index}`),
      onEnd: () => hear('end'),
      onFault: (fault) => hear(fault),
    });
  };
  return { time, accelerator, heard, submit };
}

const tokensOf = (heard: Heard[], job: number) =>
  heard.filter((one) => one.job === job).map((one) => one.what);

describe('a simulated accelerator', () => {
  it('reads a prompt at the prefill rate and generates at the decode rate', async () => {
    const { time, heard, submit } = rig();
    submit({ promptTokens: 800, outputTokens: 3 });
    await time.advance(1000);
    expect(heard.map((one) => [one.what, Math.round(one.at * 1000) / 1000])).toEqual([
      ['token 0', 100],
      ['token 1', 120],
      ['token 2', 140],
      ['end', 140],
    ]);
    expect(time.pending).toBe(0);
  });

  it('cuts a long prompt so that decoding sequences keep their pace', async () => {
    const { time, heard, submit } = rig();
    submit({ promptTokens: 1, outputTokens: 20 });
    await time.advance(50);
    submit({ promptTokens: 20_000, outputTokens: 1 });
    await time.advance(5000);
    const at = heard.filter((one) => one.job === 0 && one.what !== 'end').map((one) => one.at);
    const gaps = at.slice(1).map((when, index) => when - at[index]!);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(stepMs(PROFILE, 2047, 1) + 1e-6);
    expect(tokensOf(heard, 1)).toEqual(['token 0', 'end']);
  });

  it('gives a full batch the throughput of the formula', async () => {
    const { time, accelerator, submit } = rig({ batchMax: 16 });
    for (let i = 0; i < 16; i++) submit({ promptTokens: 1, outputTokens: 5000 });
    await time.advance(1000);
    const before = accelerator.load().outputTokensTotal;
    await time.advance(20_000);
    const perSecond = (accelerator.load().outputTokensTotal - before) / 20;
    expect(perSecond / (16 / (1 / 50 + 15 / 8000))).toBeCloseTo(1, 2);
  });

  it('lets in no more than batchMax, and the next one as soon as one leaves', async () => {
    const { time, accelerator, heard, submit } = rig({ batchMax: 2 });
    submit({ promptTokens: 1, outputTokens: 2 });
    submit({ promptTokens: 1, outputTokens: 10 });
    submit({ promptTokens: 1, outputTokens: 1 });
    await time.advance(1);
    expect(accelerator.load()).toMatchObject({ running: 2, waiting: 1 });
    await time.advance(1000);
    const first = heard.find((one) => one.job === 0 && one.what === 'end')!;
    const third = heard.find((one) => one.job === 2 && one.what === 'token 0')!;
    expect(third.at - first.at).toBeCloseTo(stepMs(PROFILE, 1, 1), 6);
  });

  it('makes a job wait until its tokens fit, and those behind it too', async () => {
    const { time, accelerator, heard, submit } = rig({ kvTokensMax: 100 });
    submit({ promptTokens: 50, outputTokens: 10 });
    submit({ promptTokens: 50, outputTokens: 10 });
    submit({ promptTokens: 1, outputTokens: 1 });
    await time.advance(1);
    expect(accelerator.load()).toMatchObject({ running: 1, waiting: 2, kvTokens: 60 });
    await time.advance(5000);
    const order = heard.filter((one) => one.what === 'token 0').map((one) => one.job);
    expect(order).toEqual([0, 1, 2]);
    expect(accelerator.fits({ promptTokens: 90, outputTokens: 11 })).toBe(false);
  });

  it('does nothing before its cold start is over', async () => {
    const { time, heard, submit } = rig({ coldStart: 3000 });
    submit({ promptTokens: 8, outputTokens: 1 });
    await time.advance(5000);
    expect(heard[0]!.at).toBeCloseTo(3001, 6);
  });

  it('gives a cancelled job’s place and tokens back at once', async () => {
    const { time, accelerator, heard, submit } = rig({ batchMax: 1 });
    const first = submit({ promptTokens: 1, outputTokens: 1000 });
    const second = submit({ promptTokens: 1, outputTokens: 1 });
    await time.advance(100);
    first!.cancel();
    first!.cancel();
    expect(accelerator.load()).toMatchObject({ running: 0, kvTokens: 0 });
    const before = heard.filter((one) => one.job === 0).length;
    await time.advance(100);
    expect(heard.filter((one) => one.job === 0)).toHaveLength(before);
    expect(tokensOf(heard, 1)).toEqual(['token 0', 'end']);
    second!.cancel();
    expect(accelerator.load()).toMatchObject({ running: 0, waiting: 0, kvTokens: 0 });
  });

  it('refuses what it has no room to queue', () => {
    const { submit } = rig();
    for (let i = 0; i < WAITING_MAX; i++) expect(submit({ promptTokens: 1, outputTokens: 1 })).toBeDefined();
    expect(submit({ promptTokens: 1, outputTokens: 1 })).toBeUndefined();
  });

  it('fails, cuts and stalls the shares that it is told to', async () => {
    const { time, accelerator, heard, submit } = rig({
      batchMax: 1000,
      faults: { errorRate: 0.1, resetRate: 0.2, stallRate: 0.3 },
    });
    for (let i = 0; i < 2000; i++) submit({ promptTokens: 1, outputTokens: 4 });
    await time.advance(60_000);
    const share = (what: string) => heard.filter((one) => one.what === what).length / 2000;
    expect(share('error')).toBeCloseTo(0.1, 1);
    expect(share('reset')).toBeCloseTo(0.2, 1);
    expect(share('end')).toBeCloseTo(0.4, 1);
    expect(accelerator.load()).toMatchObject({ running: 0, waiting: 0, kvTokens: 0 });
  });

  it('stops for good when closed', async () => {
    const { time, accelerator, heard, submit } = rig({
      faults: { errorRate: 0.5, resetRate: 0, stallRate: 0 },
    });
    for (let i = 0; i < 20; i++) submit({ promptTokens: 1, outputTokens: 4 });
    accelerator.close();
    await time.advance(1000);
    expect(heard).toEqual([]);
    expect(time.pending).toBe(0);
  });
});

interface Arrival extends Job {
  afterMs: number;
  cancelAfterTokens: number | undefined;
}

describe('whatever jobs come and go', () => {
  const arrivals: fc.Arbitrary<Arrival[]> = fc.array(
    fc.record({
      afterMs: fc.nat(200),
      promptTokens: fc.integer({ min: 1, max: 400 }),
      outputTokens: fc.nat(30),
      cancelAfterTokens: fc.option(fc.nat(30), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 30 },
  );
  const profiles = fc.record({
    batchMax: fc.integer({ min: 1, max: 8 }),
    kvTokensMax: fc.integer({ min: 430, max: 2000 }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    faults: fc.constantFrom(PROFILE.faults, { errorRate: 0.1, resetRate: 0.1, stallRate: 0.1 }),
  });

  async function play(profile: Partial<AcceleratorProfile>, jobs: Arrival[], seed: number) {
    const { time, accelerator, heard, submit } = rig(profile, seed);
    const bounds = () => {
      const load = accelerator.load();
      expect(load.kvTokens).toBeLessThanOrEqual(profile.kvTokensMax!);
      expect(load.running).toBeLessThanOrEqual(profile.batchMax!);
    };
    for (const job of jobs) {
      await time.advance(job.afterMs);
      let tokens = 0;
      const running = submit(job, (what) => {
        bounds();
        if (what.startsWith('token') && ++tokens === job.cancelAfterTokens) running!.cancel();
      });
      bounds();
    }
    await time.advance(120_000);
    expect(accelerator.load()).toMatchObject({ running: 0, waiting: 0, kvTokens: 0 });
    expect(time.pending).toBe(0);
    return heard;
  }

  it('loses no token, repeats none, and stays within its limits', async () => {
    await fc.assert(
      fc.asyncProperty(profiles, arrivals, fc.nat(1000), async (profile, jobs, seed) => {
        const heard = await play(profile, jobs, seed);
        for (const [id, job] of jobs.entries()) {
          const said = tokensOf(heard, id);
          const tokens = said.filter((what) => what.startsWith('token'));
          expect(tokens).toEqual(tokens.map((_, index) => `token ${index}`));
          const last = said.at(-1);
          if (last === 'end') expect(tokens).toHaveLength(job.outputTokens);
          if (last === 'error') expect(said).toEqual(['error']);
          if (profile.faults.errorRate === 0 && last !== 'end')
            expect(tokens).toHaveLength(job.cancelAfterTokens!);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('does the same again for the same seed', async () => {
    await fc.assert(
      fc.asyncProperty(profiles, arrivals, fc.nat(1000), async (profile, jobs, seed) => {
        expect(await play(profile, jobs, seed)).toEqual(await play(profile, jobs, seed));
      }),
      { numRuns: 15 },
    );
  });

  /** What a listener to first tokens and ends hears, and what the gauges say now and then. */
  function playByTheClock(profile: Partial<AcceleratorProfile>, jobs: Arrival[], firstOnly: boolean) {
    const time = new VirtualTime();
    const accelerator = new Accelerator({ ...PROFILE, ...profile }, time, time, seededRandom(7));
    const heard: (Heard | object)[] = [];
    // A timer fires at `now + delay`, whose last bit depends on when it was set.
    const exactly = (ms: number) => Math.round(ms * 1e6) / 1e6;
    const load = () => ({ ...accelerator.load(), busyMs: exactly(accelerator.load().busyMs) });
    for (const [id, job] of jobs.entries()) {
      time.run(job.afterMs);
      const hear = (what: string) => heard.push({ job: id, at: exactly(time.mono()), what });
      const running = accelerator.submit(job, {
        firstOnly,
        onToken: (index) => index === 0 && hear('first'),
        onEnd: () => hear('end'),
        onFault: hear,
      })!;
      const { cancelAfterTokens } = job;
      // Never at the very end of a step: which of the two comes first is then a matter of which timer was set first.
      if (cancelAfterTokens !== undefined)
        time.set(cancelAfterTokens * 37.3 + 0.0123, () => running.cancel());
      if (id % 7 === 3) accelerator.pace = id % 2 === 0 ? 1 : 3;
      heard.push(load());
    }
    time.run(600_000);
    heard.push(load());
    expect(time.pending).toBe(0);
    return heard;
  }

  it('takes the same times where steps are passed over as where each token is told', () => {
    fc.assert(
      fc.property(profiles, arrivals, (profile, jobs) => {
        expect(playByTheClock(profile, jobs, true)).toEqual(playByTheClock(profile, jobs, false));
      }),
      { numRuns: 300 },
    );
  });

  it('passes over steps in which nothing is told', () => {
    const time = new VirtualTime();
    const accelerator = new Accelerator(PROFILE, time, time, seededRandom(1));
    let ended = 0;
    const sink = { firstOnly: true, onToken: () => {}, onEnd: () => ended++, onFault: () => {} };
    for (let i = 0; i < 10; i++) accelerator.submit({ promptTokens: 10, outputTokens: 200 }, sink);
    let turns = 0;
    for (; time.nextAt !== undefined; turns++) time.run(time.nextAt - time.mono());
    expect(ended).toBe(10);
    expect(turns).toBeLessThan(5);
  });
});
