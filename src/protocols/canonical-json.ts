/**
 * Two texts of JSON have the same canonical form exactly when they say the same in the same values: the order of members
 * and white space do not count, nor does how a string is escaped. Numbers count as they are written (`1` is not `1.0`, and
 * integers beyond 2^53 stay apart), and a key that is given twice counts twice: what an engine makes of such a text is
 * its own, and merging two requests that it could tell apart would give one the answer to the other.
 */

export interface CanonicalMember {
  /** The key, escapes undone. */
  key: string;
  /** Its value's canonical text, which has no line breaks. */
  value: string;
}

/** Nested deeper than this, a text has no canonical form: it is read by recursion. */
const DEPTH_MAX = 128;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const SPACE = /[ \t\n\r]*/y;
/** What may not stand in a string as it is. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON's own rule names them
const CONTROL = /[\u0000-\u001f]/;

class Unreadable extends Error {}

/**
 * The members of a JSON object, sorted by key; members of one key stay in their order. Undefined for what is not an
 * object, is not JSON, or is nested too deeply.
 */
export function canonicalMembers(text: string): CanonicalMember[] | undefined {
  try {
    const reader = new Reader(text);
    return reader.document();
  } catch (error) {
    if (error instanceof Unreadable) return undefined;
    throw error;
  }
}

/** The canonical text of such members, of an object that is one of several. */
export function canonicalObject(members: readonly CanonicalMember[]): string {
  return `{${members.map(({ key, value }) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
}

class Reader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): CanonicalMember[] {
    this.#space();
    if (this.#text[this.#at] !== '{') throw new Unreadable();
    const members = this.#members();
    this.#space();
    if (this.#at < this.#text.length) throw new Unreadable();
    return members;
  }

  #value(): string {
    this.#space();
    const first = this.#text[this.#at];
    if (first === '"') return this.#string();
    if (first === '{') return canonicalObject(this.#members());
    if (first === '[') return this.#list();
    SCALAR.lastIndex = this.#at;
    const scalar = SCALAR.exec(this.#text)?.[0];
    if (scalar === undefined) throw new Unreadable();
    this.#at += scalar.length;
    return scalar;
  }

  #members(): CanonicalMember[] {
    const members: CanonicalMember[] = [];
    this.#deeper();
    if (!this.#ends('}')) {
      do {
        this.#space();
        if (this.#text[this.#at] !== '"') throw new Unreadable();
        const key = JSON.parse(this.#string()) as string;
        this.#space();
        if (this.#text[this.#at++] !== ':') throw new Unreadable();
        members.push({ key, value: this.#value() });
      } while (this.#goesOn('}'));
    }
    this.#depth--;
    return members.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  }

  #list(): string {
    const values: string[] = [];
    this.#deeper();
    if (!this.#ends(']')) {
      do values.push(this.#value());
      while (this.#goesOn(']'));
    }
    this.#depth--;
    return `[${values.join(',')}]`;
  }

  #string(): string {
    const start = this.#at;
    let quote = this.#text.indexOf('"', start + 1);
    while (quote >= 0 && this.#isEscaped(quote)) quote = this.#text.indexOf('"', quote + 1);
    if (quote < 0) throw new Unreadable();
    this.#at = quote + 1;
    const raw = this.#text.slice(start, this.#at);
    if (CONTROL.test(raw)) throw new Unreadable();
    if (!raw.includes('\\')) return raw;
    try {
      return JSON.stringify(JSON.parse(raw));
    } catch {
      throw new Unreadable(); // a broken escape
    }
  }

  #isEscaped(quote: number): boolean {
    let slashes = 0;
    while (this.#text[quote - 1 - slashes] === '\\') slashes++;
    return slashes % 2 === 1;
  }

  /** Past the opening bracket; true when the closing one follows at once. */
  #ends(close: string): boolean {
    this.#at++;
    this.#space();
    if (this.#text[this.#at] !== close) return false;
    this.#at++;
    return true;
  }

  /** Past a comma; false past the closing bracket. */
  #goesOn(close: string): boolean {
    this.#space();
    const found = this.#text[this.#at++];
    if (found !== ',' && found !== close) throw new Unreadable();
    return found === ',';
  }

  #deeper(): void {
    if (++this.#depth > DEPTH_MAX) throw new Unreadable();
  }

  #space(): void {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }
}
