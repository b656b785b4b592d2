import type { Bytes } from './file-bytes.ts';

/** What a pickle is made of: a program for a machine of a stack (Lib/pickletools.py of CPython). */

const NO_ARGUMENT = new Set(
  [
    ...'().012NQRabdelost]u}',
    '\x81',
    '\x85',
    '\x86',
    '\x87',
    '\x88',
    '\x89',
    '\x8f',
    '\x90',
    '\x91',
    '\x92',
    '\x93',
    '\x94',
    '\x97',
    '\x98',
  ].map((letter) => letter.charCodeAt(0)),
);
/** Arguments of a fixed number of bytes. */
const FIXED: Record<string, number> = {
  J: 4,
  K: 1,
  M: 2,
  G: 8,
  h: 1,
  q: 1,
  j: 4,
  r: 4,
  '\x80': 1,
  '\x82': 1,
  '\x83': 2,
  '\x84': 4,
  '\x95': 8,
};
/** Arguments that say their length in so many bytes. */
const COUNTED: Record<string, number> = {
  T: 4,
  U: 1,
  X: 4,
  '\x8c': 1,
  '\x8d': 8,
  B: 4,
  C: 1,
  '\x8e': 8,
  '\x96': 8,
  '\x8a': 1,
  '\x8b': 4,
};
/** Arguments that are lines. */
const LINES: Record<string, number> = { F: 1, I: 1, L: 1, S: 1, V: 1, P: 1, g: 1, p: 1, c: 2, i: 2 };

/** The longest line, and the most steps, of what is still looked at. */
const LINE_BYTES_MAX = 64 * 1024;
const STEPS_MAX = 10_000_000;

export interface Pickle {
  /** Names that are looked up while it is loaded, such as `os.system`. */
  globals: string[];
  /** Whether names are looked up that only loading it would tell. */
  hidden: boolean;
}

/** Whether a file begins as pickles of protocol 2 and above do; the ones before have no head. */
export function beginsAsPickle(file: Bytes): boolean {
  const [proto, version] = file.read(0, 2);
  return proto === 0x80 && version !== undefined && version >= 2 && version <= 5;
}

/** Walks the program to its end; undefined where it is none, or longer than anybody looks at. */
export function readPickle(file: Bytes): Pickle | undefined {
  const globals = new Set<string>();
  let hidden = false;
  let at = 0;
  for (let steps = 0; steps < STEPS_MAX; steps++) {
    const code = file.read(at++, 1)[0];
    if (code === undefined) return undefined;
    const letter = String.fromCharCode(code);
    if (letter === '.') return { globals: [...globals], hidden };
    // The name is on the stack, or in a table of the one who loads it.
    if (letter === '\x93' || letter === '\x82' || letter === '\x83' || letter === '\x84') hidden = true;
    if (NO_ARGUMENT.has(code)) continue;
    if (FIXED[letter] !== undefined) at += FIXED[letter];
    else if (COUNTED[letter] !== undefined) {
      const bytes = file.read(at, COUNTED[letter]);
      if (bytes.length < COUNTED[letter]) return undefined;
      at += COUNTED[letter] + lengthIn(bytes);
    } else if (LINES[letter] !== undefined) {
      const lines = linesAt(file, at, LINES[letter]);
      if (!lines) return undefined;
      at += lines.bytes;
      if (letter === 'c' || letter === 'i') globals.add(lines.texts.join('.'));
    } else return undefined;
  }
  return undefined;
}

function lengthIn(bytes: Buffer): number {
  return bytes.length === 8 ? Number(bytes.readBigUInt64LE()) : bytes.readUIntLE(0, bytes.length);
}

function linesAt(file: Bytes, at: number, count: number) {
  const texts: string[] = [];
  let bytes = 0;
  for (let left = count; left > 0; left--) {
    const line = file.read(at + bytes, LINE_BYTES_MAX);
    const end = line.indexOf(0x0a);
    if (end < 0) return undefined;
    texts.push(line.subarray(0, end).toString('latin1'));
    bytes += end + 1;
  }
  return { texts, bytes };
}
