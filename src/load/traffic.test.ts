import { describe, expect, it } from 'vitest';
import type { Arrival } from '../simulation/contracts.ts';
import { merged, parseTraffic, type TrafficPart, trafficOf, trafficOfTrace } from './traffic.ts';

const part = (text: string): TrafficPart => {
  const read = parseTraffic(text);
  if (typeof read === 'string') throw new Error(read);
  return read;
};
const arrivals = (text: string, seed = 1): Arrival[] => [...trafficOf(part(text), 'chat', seed)];

describe('a part of a load', () => {
  it('comes at its rate, in its time, with its lengths', () => {
    const all = arrivals('rate=50/s,at=10s,for=100s,in=100-200,out=7,stream=0.25,tenant=web,priority=batch');
    expect(Math.abs(all.length - 5000)).toBeLessThan(250);
    expect(all[0]!.atMs).toBeGreaterThanOrEqual(10_000);
    expect(all.at(-1)!.atMs).toBeLessThan(110_000);
    expect(all.every(({ promptTokens }) => promptTokens >= 100 && promptTokens <= 200)).toBe(true);
    expect(all[0]).toMatchObject({ outputTokens: 7, outputTokensMax: 7, tenant: 'web', priority: 'batch' });
    const streams = all.filter(({ stream }) => stream).length / all.length;
    expect(Math.abs(streams - 0.25)).toBeLessThan(0.03);
  });

  it('comes in bursts of a mean size, at the same rate', () => {
    const all = arrivals('rate=100/s,for=100s,arrivals=bursts:8');
    expect(Math.abs(all.length - 10_000)).toBeLessThan(1500);
    const moments = new Set(all.map(({ atMs }) => atMs)).size;
    expect(Math.abs(all.length / moments - 8)).toBeLessThan(1);
  });

  it('comes evenly where asked', () => {
    expect(arrivals('rate=4/s,for=1s,arrivals=constant').map(({ atMs }) => atMs)).toEqual([0, 250, 500, 750]);
  });

  it('is the same for the same seed, and another one for another', () => {
    expect(arrivals('rate=20/s,for=5s', 3)).toEqual(arrivals('rate=20/s,for=5s', 3));
    expect(arrivals('rate=20/s,for=5s', 3)).not.toEqual(arrivals('rate=20/s,for=5s', 4));
  });

  it('asks for no tokens, or for a number of them', () => {
    expect(arrivals('rate=9/s,max=none')[0]!.outputTokensMax).toBeUndefined();
    expect(arrivals('rate=9/s,max=77')[0]!.outputTokensMax).toBe(77);
  });

  it('asks for a few prompts again and again, each as long as before', () => {
    const all = arrivals('rate=50/s,for=10s,in=100-900,out=1-90,prompts=3');
    const lengthsOf = new Map(
      all.map(({ subject, promptTokens, outputTokens }) => [subject, `${promptTokens} ${outputTokens}`]),
    );
    expect([...lengthsOf.keys()].sort()).toEqual([0, 1, 2]);
    expect(
      all.every(
        ({ subject, promptTokens, outputTokens }) =>
          lengthsOf.get(subject) === `${promptTokens} ${outputTokens}`,
      ),
    ).toBe(true);
    expect(arrivals('rate=5/s')[0]).not.toHaveProperty('subject');
  });

  it.each([
    ['in=512', 'it needs a rate'],
    ['rate=0', 'expected a rate'],
    ['rate=5/s,rate=6/s', 'given twice'],
    ['rate=5/s,tenat=web', "'tenat' is none of rate, at, for"],
    ['rate=5/s,stream=2', 'expected a share'],
    ['rate=5/s,priority=urgent', 'expected one of critical'],
    ['rate=5/s,arrivals=bursts', 'expected poisson, constant or bursts:SIZE'],
    ['rate=5/s,for=0s', 'expected how long'],
    ['rate', "'rate' is none of"],
  ])('%s is refused: %s', (text, message) => expect(parseTraffic(text)).toContain(message));
});

describe('a trace', () => {
  const rows = [
    { atMs: 0, promptTokens: 5, outputTokens: 0 },
    { atMs: 3000, promptTokens: 6, outputTokens: 2, tenant: 'web', stream: true, route: 'code' },
    { atMs: 3000, promptTokens: 7, outputTokens: 2 },
  ];

  it('is played faster, and each row says what it says', () => {
    const all = [...trafficOfTrace(rows, { route: 'chat', speed: 2, spreadMs: 0, stream: 0, seed: 1 })];
    expect(all.map(({ atMs }) => atMs)).toEqual([0, 1500, 1500]);
    expect(all[0]).toMatchObject({ route: 'chat', outputTokens: 1, stream: false, tenant: undefined });
    expect(all[1]).toMatchObject({ route: 'code', tenant: 'web', stream: true });
  });

  it('is spread within its grid, in order', () => {
    const all = [...trafficOfTrace(rows, { route: 'chat', speed: 1, spreadMs: 3000, stream: 0, seed: 1 })];
    const times = all.map(({ atMs }) => atMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(times[0]).toBeLessThan(3000);
    expect(times[1]).toBeGreaterThan(3000);
    expect(times[1]).not.toBe(times[2]);
  });
});

it('loads come together in order', () => {
  const all = [
    ...merged([arrivals('rate=30/s,for=2s', 1).values(), arrivals('rate=10/s,at=1s,for=2s', 2).values()]),
  ];
  const times = all.map(({ atMs }) => atMs);
  expect(all.length).toBeGreaterThan(60);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
});
