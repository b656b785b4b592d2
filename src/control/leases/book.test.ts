import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LeaseBook, type LeaseMessage } from './book.ts';
import { fairShares } from './shares.ts';

const KEY = 'b|http://a';

function book(opened = true) {
  const sent: [string, LeaseMessage][] = [];
  const known = new Set<string>();
  const made = new LeaseBook((boot, message) => {
    // The first recall tells a worker that is new to a key whether it is pressed; these tests look at what follows.
    const first =
      message.type === 'lease-recall' && message.units === 0 && !message.pressed && !known.has(boot);
    if (message.type === 'lease-recall') known.add(boot);
    if (!first) sent.push([boot, message]);
  });
  if (opened) made.open();
  return { made, sent, take: () => sent.splice(0) };
}

const grant = (units: number): LeaseMessage => ({ type: 'lease-grant', key: KEY, units });
const recall = (units: number, pressed: boolean): LeaseMessage => ({
  type: 'lease-recall',
  key: KEY,
  units,
  pressed,
});

describe('the lease book', () => {
  test('gives one worker the whole limit as soon as it declares it', () => {
    const { made, sent } = book();
    made.ask('a', KEY, 0, 8);
    expect(sent).toEqual([['a', grant(8)]]);
  });

  test('calls idle units back at once when another worker asks, then spreads what nobody needs', () => {
    const { made, take } = book();
    made.ask('a', KEY, 0, 8);
    made.ask('b', KEY, 0, 8);
    take();
    made.ask('b', KEY, 2, 8);
    expect(take()).toEqual([['a', recall(2, true)]]);
    made.returned('a', KEY, 8, 0);
    expect(take()).toEqual([
      ['b', grant(2)],
      ['a', recall(0, false)],
      ['a', grant(3)],
      ['b', grant(3)],
    ]);
  });

  test('shares fairly where everybody wants more than there is', () => {
    const { made, take } = book();
    made.ask('a', KEY, 20, 9);
    expect(take()).toEqual([['a', grant(9)]]);
    made.ask('b', KEY, 20, 9);
    made.ask('c', KEY, 1, 9);
    expect(take()).toEqual([['a', recall(5, true)]]);
    for (let i = 0; i < 5; i++) made.returned('a', KEY, 1, 20);
    expect(made.holdings(KEY)).toEqual({ a: 4, b: 4, c: 1 });
  });

  test('lets a single unit go round among workers that all want it', () => {
    const { made, take } = book();
    made.ask('a', KEY, 5, 1);
    made.ask('b', KEY, 5, 1);
    expect(take()).toEqual([
      ['a', grant(1)],
      ['a', recall(1, true)],
    ]);
    made.returned('a', KEY, 1, 5);
    expect(take()).toEqual([
      ['b', grant(1)],
      ['a', recall(0, false)],
      ['b', recall(1, true)],
    ]);
  });

  test("takes a dead worker's units back", () => {
    const { made, take } = book();
    made.ask('a', KEY, 0, 8);
    made.ask('b', KEY, 0, 8);
    take();
    made.gone('a');
    expect(take()).toEqual([['b', grant(8)]]);
  });

  test('grants nothing before it has learned what living workers hold', () => {
    const { made, take } = book(false);
    made.learn('a', { [KEY]: 6 });
    made.ask('a', KEY, 6, 8);
    made.learn('b', {});
    made.ask('b', KEY, 5, 8);
    expect(take()).toEqual([]);
    made.open();
    expect(take()).toEqual([
      ['b', grant(2)],
      ['a', recall(2, true)],
    ]);
  });

  test('recalls until it is within a limit that shrinks, and the lowest that is declared counts', () => {
    const { made, take } = book();
    made.ask('a', KEY, 8, 8);
    take();
    made.ask('a', KEY, 5, 5);
    expect(take()).toEqual([['a', recall(3, false)]]);
    made.returned('a', KEY, 3, 5);
    made.ask('b', KEY, 0, 8);
    expect(made.holdings(KEY)).toEqual({ a: 5, b: 0 });
    made.ask('a', KEY, 5, 8);
    expect(made.holdings(KEY)).toEqual({ a: 6, b: 2 });
  });

  test('keeps counting what is still on its way to a worker that forgets the key', () => {
    const { made, take } = book();
    made.ask('a', KEY, 0, 4);
    take();
    made.forgot('a', KEY);
    made.ask('b', KEY, 4, 4);
    expect(made.holdings(KEY)).toEqual({ a: 4, b: 0 });
    made.returned('a', KEY, 4, 0);
    expect(made.holdings(KEY)).toEqual({ b: 4 });
  });
});

const claim = fc.record({ units: fc.nat(50), rank: fc.integer() });

test('fair shares never exceed a claim or the limit, and leave nothing over that is claimed', () => {
  fc.assert(
    fc.property(fc.nat(100), fc.array(claim, { maxLength: 8 }), (total, claims) => {
      const shares = fairShares(total, claims);
      const claimed = claims.reduce((a, { units }) => a + units, 0);
      const claiming = claims.filter(({ units }) => units > 0).length;
      expect(shares.reduce((a, b) => a + b, 0)).toBe(Math.min(total, claimed));
      shares.forEach((share, i) => {
        expect(share).toBeLessThanOrEqual(claims[i]!.units);
        // Whoever did not get all it claims has as much as anybody, save for the unit that cannot be split.
        if (share < claims[i]!.units) expect(share).toBeGreaterThanOrEqual(Math.max(...shares) - 1);
        // Nobody who claims goes without where there is a unit for each.
        if (total >= claiming && claims[i]!.units > 0) expect(share).toBeGreaterThan(0);
      });
    }),
  );
});
