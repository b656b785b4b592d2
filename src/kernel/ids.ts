import type { Random } from './random.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'; // Crockford's base 32, lower case

function base32(value: number, digits: number): string {
  let text = '';
  for (let i = 0; i < digits; i++) {
    text = ALPHABET[value % 32] + text;
    value = Math.floor(value / 32);
  }
  return text;
}

/**
 * Makes ids that sort by time: `PREFIX_` + 9 digits of milliseconds + 4 of the maker (drawn once) + 4 of a counter.
 * The time in an id is what lets `why` find the second of a request that has no record of its own.
 */
export function idMaker(prefix: string, random: Random): (wallMs: number) => string {
  const maker = base32(Math.floor(random.next() * 32 ** 4), 4);
  let count = Math.floor(random.next() * 32 ** 4);
  let stampMs = -1;
  let stamp = '';
  return (wallMs) => {
    const ms = Math.floor(wallMs);
    if (ms !== stampMs) {
      stampMs = ms;
      stamp = `${prefix}_${base32(ms, 9)}${maker}`;
    }
    count = (count + 1) % 32 ** 4;
    return stamp + base32(count, 4);
  };
}

/** The milliseconds since the epoch at which an id was made, or undefined for what is no id of ours. */
export function idTime(id: string): number | undefined {
  const match = /^[a-z]+_([0-9a-z]{9})[0-9a-z]{8}$/.exec(id);
  if (!match) return undefined;
  let ms = 0;
  for (const digit of match[1]!) {
    const value = ALPHABET.indexOf(digit);
    if (value < 0) return undefined;
    ms = ms * 32 + value;
  }
  return ms;
}
