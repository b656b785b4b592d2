/**
 * Finds the top-level members of a JSON object in bytes, without building the object: numbers, key order, escapes and
 * unknown members then survive what Armature changes. Nested values are only skipped over, brackets counted, not
 * checked; the engine reads them. No recursion, so depth costs nothing.
 */

export interface Member {
  /** The key, escapes undone. */
  key: string;
  /** Where the value's bytes begin and end (exclusive). */
  start: number;
  end: number;
}

export interface Members {
  /** In the order of the bytes; of all members, or of the wanted ones. */
  members: Member[];
  /** Just past the opening brace. */
  inside: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;

/** A bound on top-level members, far beyond any real request. */
const MEMBERS_MAX = 10_000;
const SCALAR = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/**
 * The members of the object in `bytes[from, to)`, or what is wrong with it, in words. With `wanted`, only members of these
 * keys (plain ASCII) are given; the whole object is read all the same.
 */
export function scanMembers(
  bytes: Buffer,
  from = 0,
  to = bytes.length,
  wanted?: readonly string[],
): Members | string {
  let at = skipSpace(bytes, from, to);
  if (at >= to) return 'the body is empty';
  if (bytes[at] !== OPEN_BRACE) return 'the body is not a JSON object';
  const inside = at + 1;
  const members: Member[] = [];
  let count = 0;
  at = skipSpace(bytes, inside, to);
  if (bytes[at] === CLOSE_BRACE && at < to) return finish(bytes, at + 1, to, { members, inside });
  for (;;) {
    if (bytes[at] !== QUOTE || at >= to) return `expected a key at byte ${at}`;
    const keyStart = at;
    const keyEnd = stringEnd(bytes, at, to);
    if (keyEnd < 0) return 'a string does not end';
    const key = readKey(bytes, keyStart, keyEnd, wanted);
    if (key === undefined) return `the key at byte ${at} is not a JSON string`;
    at = skipSpace(bytes, keyEnd, to);
    if (bytes[at] !== COLON || at >= to) return `expected a colon at byte ${at}`;
    const start = skipSpace(bytes, at + 1, to);
    const end = valueEnd(bytes, start, to);
    if (end < 0) {
      const name = decodeString(bytes, keyStart, keyEnd)!;
      return `the value of ${JSON.stringify(name.slice(0, 80))} is not JSON, or does not end`;
    }
    if (++count > MEMBERS_MAX) return `more than ${MEMBERS_MAX} members`;
    if (key !== UNWANTED) members.push({ key, start, end });
    at = skipSpace(bytes, end, to);
    if (bytes[at] === CLOSE_BRACE && at < to) return finish(bytes, at + 1, to, { members, inside });
    if (bytes[at] !== COMMA || at >= to) return `expected a comma or a closing brace at byte ${at}`;
    at = skipSpace(bytes, at + 1, to);
  }
}

/** Where the bytes of a value begin and end (exclusive). */
export type Place = Pick<Member, 'start' | 'end'>;

/** The places of a list's elements in `bytes[from, to)`, which hold that list alone; undefined for what is no list. */
export function scanElements(bytes: Buffer, from = 0, to = bytes.length): Place[] | undefined {
  let at = skipSpace(bytes, from, to);
  if (at >= to || bytes[at] !== OPEN_BRACKET) return undefined;
  const places: Place[] = [];
  at = skipSpace(bytes, at + 1, to);
  if (at < to && bytes[at] === CLOSE_BRACKET) return skipSpace(bytes, at + 1, to) < to ? undefined : places;
  for (;;) {
    const end = valueEnd(bytes, at, to);
    if (end < 0) return undefined;
    places.push({ start: at, end });
    at = skipSpace(bytes, end, to);
    if (at < to && bytes[at] === CLOSE_BRACKET) return skipSpace(bytes, at + 1, to) < to ? undefined : places;
    if (at >= to || bytes[at] !== COMMA) return undefined;
    at = skipSpace(bytes, at + 1, to);
  }
}

/** The value at a member's place when it is a string; undefined when it is anything else. */
export function stringValue(bytes: Buffer, member: Member): string | undefined {
  return bytes[member.start] === QUOTE ? decodeString(bytes, member.start, member.end) : undefined;
}

/** The value's own bytes as text: for scalars. */
export function rawValue(bytes: Buffer, member: Member): string {
  return bytes.toString('latin1', member.start, member.end);
}

function finish(bytes: Buffer, at: number, to: number, found: Members): Members | string {
  at = skipSpace(bytes, at, to);
  return at < to ? `something follows the JSON object, at byte ${at}` : found;
}

function skipSpace(bytes: Buffer, at: number, to: number): number {
  while (at < to) {
    const byte = bytes[at]!;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    at++;
  }
  return at;
}

/** Just past the string that opens at `at`, or -1. */
function stringEnd(bytes: Buffer, at: number, to: number): number {
  let from = at + 1;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote < 0 || quote >= to) return -1;
    let slashes = 0;
    while (bytes[quote - 1 - slashes] === BACKSLASH && quote - 1 - slashes > at) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    from = quote + 1;
  }
}

/** Stands for a key that nobody asked for; no key of JSON can be it, since a NUL is written as an escape. */
const UNWANTED = '\u0000';

/** The key between the quotes, as one of the wanted words where there are any, so that nothing is decoded for the others. */
function readKey(
  bytes: Buffer,
  start: number,
  end: number,
  wanted: readonly string[] | undefined,
): string | undefined {
  if (wanted) {
    if (!hasEscape(bytes, start, end)) {
      for (const word of wanted) if (isWord(bytes, start + 1, end - 1, word)) return word;
      return UNWANTED;
    }
  }
  const key = decodeString(bytes, start, end);
  return !wanted || key === undefined || wanted.includes(key) ? key : UNWANTED;
}

function isWord(bytes: Buffer, start: number, end: number, word: string): boolean {
  if (end - start !== word.length) return false;
  for (let i = 0; i < word.length; i++) if (bytes[start + i] !== word.charCodeAt(i)) return false;
  return true;
}

/** Looks at these bytes alone: a search that ran on to the next backslash would cost each key the whole body. */
function hasEscape(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) return true;
  return false;
}

function decodeString(bytes: Buffer, start: number, end: number): string | undefined {
  if (!hasEscape(bytes, start, end)) return bytes.toString('utf8', start + 1, end - 1);
  try {
    return JSON.parse(bytes.toString('utf8', start, end)) as string;
  } catch {
    return undefined; // a broken escape
  }
}

/** Just past the value that begins at `at`, or -1. */
function valueEnd(bytes: Buffer, at: number, to: number): number {
  const first = bytes[at];
  if (at >= to) return -1;
  if (first === QUOTE) return stringEnd(bytes, at, to);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return nestedEnd(bytes, at, to);
  let end = at;
  while (end < to) {
    const byte = bytes[end]!;
    if (byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) break;
    end++;
  }
  return end - at <= 400 && SCALAR.test(bytes.toString('latin1', at, end)) ? end : -1;
}

function nestedEnd(bytes: Buffer, at: number, to: number): number {
  let depth = 0;
  while (at < to) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = stringEnd(bytes, at, to);
      if (at < 0) return -1;
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--;
      if (depth === 0) return at + 1;
    }
    at++;
  }
  return -1;
}
