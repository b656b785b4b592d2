import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VirtualTime } from './virtual-time.ts';

describe('virtual time', () => {
  it('runs timers in the order in which they are due, and those of one moment in the order in which they were set', async () => {
    const time = new VirtualTime();
    const ran: string[] = [];
    time.set(20, () => ran.push(`late at ${time.mono()}`));
    time.set(10, () => ran.push(`first at ${time.mono()}`));
    time.set(10, () => ran.push(`second at ${time.mono()}`));
    await time.advance(15);
    expect(ran).toEqual(['first at 10', 'second at 10']);
    expect([time.mono(), time.pending]).toEqual([15, 1]);
    await time.advance(5);
    expect(ran.at(-1)).toBe('late at 20');
  });

  it('runs what timers set while it advances, when it is due by then', async () => {
    const time = new VirtualTime();
    const ran: number[] = [];
    const again = () => {
      ran.push(time.mono());
      time.set(4, again);
    };
    time.set(4, again);
    await time.advance(10);
    expect(ran).toEqual([4, 8]);
  });

  it('never runs a timer that was cleared, even by one of the same moment', async () => {
    const time = new VirtualTime();
    const ran: string[] = [];
    const cleared = time.set(5, () => ran.push('cleared'));
    time.set(1, () => time.clear(cleared));
    time.clear(undefined);
    await time.advance(10);
    expect(ran).toEqual([]);
    expect(time.pending).toBe(0);
  });

  it('lets promises settle between timers', async () => {
    const time = new VirtualTime();
    const ran: string[] = [];
    time.set(1, () => void Promise.resolve().then(() => ran.push('promise')));
    time.set(2, () => ran.push('timer'));
    await time.advance(2);
    expect(ran).toEqual(['promise', 'timer']);
  });

  it('starts its wall clock where it is told to', async () => {
    const time = new VirtualTime(1000);
    await time.advance(50);
    expect([time.wall(), time.mono()]).toEqual([1050, 50]);
  });

  it('runs at once what does not wait for promises', () => {
    const time = new VirtualTime();
    const ran: number[] = [];
    time.set(3, () => {
      ran.push(time.mono());
      time.set(3, () => ran.push(time.mono()));
    });
    time.run(5);
    expect([ran, time.mono(), time.nextAt]).toEqual([[3], 5, 6]);
    time.run(5);
    expect([ran, time.mono(), time.nextAt]).toEqual([[3, 6], 10, undefined]);
  });

  it('keeps the order, whatever is set and cleared', () => {
    const steps = fc.array(fc.record({ delay: fc.nat(50), clears: fc.option(fc.nat(60)) }), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(steps, (all) => {
        const time = new VirtualTime();
        const ran: number[] = [];
        const handles = all.map(({ delay }, index) => time.set(delay, () => ran.push(index)));
        const cleared = new Set(all.flatMap(({ clears }) => (clears === null ? [] : [clears])));
        for (const index of cleared) time.clear(handles[index]);
        const left = all
          .map(({ delay }, index) => ({ delay, index }))
          .filter(({ index }) => !cleared.has(index));
        expect(time.pending).toBe(left.length);
        time.run(50);
        const expected = left.sort((a, b) => a.delay - b.delay || a.index - b.index);
        expect(ran).toEqual(expected.map(({ index }) => index));
        expect(time.pending).toBe(0);
      }),
    );
  });
});
