import type { Excerpt, Fault, FaultCode } from './faults.ts';
import { isSecretKey, maskCredentials, shownKey } from './masking.ts';
import { formatPath, type Path, Places, type Span } from './places.ts';
import { isReference } from './references.ts';
import { isMap, lookUp, marked, type Schema } from './shape.ts';

/** A fault before it is known where it stands. */
export interface Draft {
  code: FaultCode;
  path: Path;
  /** Whether the key is wrong, or what stands under it. */
  at: 'key' | 'value';
  message: string;
  expected?: string | undefined;
  found?: string | undefined;
  hint?: string | undefined;
}

/** Characters of a line that are shown around a fault. */
const EXCERPT_MAX = 120;
const FOUND_MAX = 60;

/** Everything a configuration was read from, to say where a value stands and how it was written. */
export class Sources {
  readonly main: string;
  readonly places: Places;
  readonly #lines: Map<string, string[]>;

  constructor(main: string, places = new Places(), lines = new Map<string, string[]>()) {
    this.main = main;
    this.places = places;
    this.#lines = lines;
  }

  /** The same files, with values standing elsewhere. */
  withPlaces(places: Places): Sources {
    return new Sources(this.main, places, new Map(this.#lines));
  }

  addLines(file: string, lines: string[]): void {
    this.#lines.set(file, lines);
  }

  /** Where a value stands, or else the nearest that holds it. */
  locate(path: Path, at: 'key' | 'value'): Span {
    const exact = this.places.get(path);
    const place = exact ?? this.places.nearest(path);
    if (!place) return { file: this.main, line: 1, column: 1, length: 1 };
    // What is missing is told at the key of the map that misses it.
    return (at === 'key' || !exact ? place.key : undefined) ?? place.value;
  }

  fault({ code, path, at, message, expected, found, hint }: Draft): Fault {
    const { file, line, column, length } = this.locate(path, at);
    const named = path.map((key, index) =>
      typeof key === 'string' ? shownKey(key, path.slice(0, index)) : key,
    );
    const fault: Fault = { code, file, line, column, path: formatPath(named), message };
    if (expected !== undefined) fault.expected = expected;
    if (found !== undefined) fault.found = found;
    if (hint !== undefined) fault.hint = hint;
    return this.withExcerpt(fault, { file, line, column, length });
  }

  /** A fault with the line that it stands in, where that is known. */
  withExcerpt(fault: Fault, span: Span): Fault {
    const excerpt = this.#excerpt(span);
    return excerpt ? { ...fault, excerpt } : fault;
  }

  #excerpt({ file, line, column, length }: Span): Excerpt | undefined {
    const text = this.#lines.get(file)?.[line - 1];
    if (text === undefined || text.trim() === '') return undefined;
    const indent = text.length - text.trimStart().length;
    const from = Math.max(Math.min(indent, column - 1), column - 1 - EXCERPT_MAX / 2);
    const mark = column - 1 - from;
    const shown = text
      .slice(from, from + EXCERPT_MAX)
      .replaceAll('\t', ' ')
      .trimEnd()
      .padEnd(mark);
    return { text: shown, mark, length: Math.max(1, Math.min(length, shown.length - mark)) };
  }

  /** A value as a fault may show it. */
  shown(schema: Schema, document: unknown, path: Path): string {
    const { schema: own, value } = lookUp(schema, document, path);
    const secret = (own && marked(own, 'secret')) || path.some(isSecretKey);
    const written = this.places.get(path)?.written;
    if (written !== undefined && (!secret || isReference(written))) return quoted(maskCredentials(written));
    if (isMap(value)) return Object.keys(value).length === 0 ? 'an empty map' : 'a map';
    if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
    if (value === null || value === undefined) return 'nothing';
    if (secret) return value === '' ? 'an empty text' : 'a secret, not shown';
    return typeof value === 'string' ? quoted(maskCredentials(value)) : String(value);
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.length > FOUND_MAX ? `${text.slice(0, FOUND_MAX)}…` : text);
}
