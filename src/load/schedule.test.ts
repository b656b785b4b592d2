import { describe, expect, it } from 'vitest';
import { seededRandom } from '../kernel/random.ts';
import { type Distribution, parseDistribution } from './distribution.ts';
import { constant, drawn, fromTrace, type Intended, type Lengths, poisson, replayed } from './schedule.ts';
import { parseTrace, type TraceRow } from './trace.ts';

const take = (count: number, schedule: Generator<Intended>): Intended[] =>
  Array.from({ length: count }, () => schedule.next().value as Intended);
const fixed: Lengths = () => ({ promptTokens: 1, outputTokens: 2 });

function distribution(text: string): Distribution {
  const read = parseDistribution(text);
  if (typeof read === 'string') throw new Error(read);
  return read;
}

function draws(text: string, count: number): number[] {
  const random = seededRandom(1);
  const from = distribution(text);
  return Array.from({ length: count }, () => from.draw(random)).sort((a, b) => a - b);
}

const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('a schedule', () => {
  it('is exact for a seed', () => {
    const lengths = () => drawn(distribution('10-20'), distribution('lognormal:100/200'), seededRandom(7));
    const first = take(100, poisson(50, lengths(), seededRandom(3)));
    expect(take(100, poisson(50, lengths(), seededRandom(3)))).toEqual(first);
    expect(first.slice(0, 3).map((one) => Math.round(one.atMs * 1000) / 1000)).toEqual([
      25.476, 26.264, 38.447,
    ]);
    expect(take(100, poisson(50, lengths(), seededRandom(4)))).not.toEqual(first);
  });

  it('comes at the asked rate with the spread of a Poisson process', () => {
    const times = take(20_000, poisson(200, fixed, seededRandom(1))).map((one) => one.atMs);
    const gaps = times.map((at, index) => at - (times[index - 1] ?? 0));
    const mean = meanOf(gaps);
    expect(mean).toBeCloseTo(5, 0);
    // The standard deviation of exponential gaps is their mean.
    expect(Math.sqrt(meanOf(gaps.map((gap) => (gap - mean) ** 2))) / mean).toBeCloseTo(1, 1);
  });

  it('comes evenly when asked to, without drifting', () => {
    const times = take(100_001, constant(300, fixed)).map((one) => one.atMs);
    expect(times.slice(0, 4)).toEqual([0, 1000 / 300, 2000 / 300, 10]);
    expect(times.at(-1)).toBe((100_000 * 1000) / 300);
  });

  it('replays a trace once, as fast as asked, and lends its lengths over and over', () => {
    const rows: TraceRow[] = [
      { atMs: 0, promptTokens: 5, outputTokens: 0 },
      { atMs: 100, promptTokens: 6, outputTokens: 7 },
    ];
    expect([...replayed(rows, 2)]).toEqual([
      { atMs: 0, promptTokens: 5, outputTokens: 1 },
      { atMs: 50, promptTokens: 6, outputTokens: 7 },
    ]);
    const lengths = fromTrace(rows);
    expect([lengths(), lengths(), lengths()].map((one) => one.promptTokens)).toEqual([5, 6, 5]);
  });
});

describe('a distribution', () => {
  it('gives one length, or lengths evenly between two', () => {
    expect(new Set(draws('128', 10))).toEqual(new Set([128]));
    const even = draws('3-7', 10_000);
    expect([even[0], even.at(-1)]).toEqual([3, 7]);
    expect(even.filter((length) => length === 3).length / 10_000).toBeCloseTo(0.2, 1);
  });

  it('gives lognormal lengths with the mean and the 95th percentile asked for', () => {
    const drawnLengths = draws('lognormal:1000/3000', 200_000);
    expect(meanOf(drawnLengths) / 1000).toBeCloseTo(1, 1);
    expect(drawnLengths[190_000]! / 3000).toBeCloseTo(1, 1);
  });

  it.each([
    '',
    '0',
    '-5',
    '7-3',
    '1.5',
    'lognormal:100',
    'lognormal:100/50',
    'lognormal:100/400',
    '99999999999',
  ])('refuses %j', (text) => expect(parseDistribution(text)).toBeTypeOf('string'));
});

describe('a trace', () => {
  it('is read with its columns in any order, CRLF, and stamps finer than a millisecond', () => {
    const text =
      'ContextTokens,TIMESTAMP,GeneratedTokens\r\n10,2023-11-16 18:17:04.0319600,3\r\n20,2023-11-16 18:17:03.9799600,4';
    expect(parseTrace(text)).toEqual([
      { atMs: 0, promptTokens: 20, outputTokens: 4 },
      { atMs: expect.closeTo(52, 6), promptTokens: 10, outputTokens: 3 },
    ]);
    expect(parseTrace('TIMESTAMP,ContextTokens,GeneratedTokens\n1.5,1,2\n2.75,3,4\n')).toMatchObject([
      { atMs: 0 },
      { atMs: 1250 },
    ]);
  });

  it.each([
    ['a missing column', 'TIMESTAMP,ContextTokens\n1,2\n', /must name the columns/],
    ['a bad row', 'TIMESTAMP,ContextTokens,GeneratedTokens\n1,2,3\nx,2,3\n', /line 3/],
    ['a row cut short', 'TIMESTAMP,ContextTokens,GeneratedTokens\n1,2\n', /line 2/],
    ['no rows', 'TIMESTAMP,ContextTokens,GeneratedTokens\n', /no rows/],
  ])('is refused for %s', (_, text, message) => expect(parseTrace(text)).toMatch(message));
});
