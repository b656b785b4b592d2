/** Where values of the configuration stand in its files. */

/** Keys and list positions from the top of the configuration, such as `['routes', 'chat', 'targets', 0, 'weight']`. */
export type Path = readonly (string | number)[];

/** `routes.chat.targets[0].weight`; names that carry dots are not set apart, as people write them so. */
export function formatPath(path: Path): string {
  let text = '';
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else text += text === '' ? segment : `.${segment}`;
  }
  return text;
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** The same, but so that it can be read back: `routes["gpt-4.1"].deadline`. */
export function writePath(path: Path): string {
  let text = '';
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (!PLAIN.test(segment)) text += `[${JSON.stringify(segment)}]`;
    else text += text === '' ? segment : `.${segment}`;
  }
  return text;
}

/** Reads what `writePath` wrote; undefined for what is no path. */
export function readPath(text: string): Path | undefined {
  const path: (string | number)[] = [];
  const segment = /(?:^|\.)([A-Za-z_][A-Za-z0-9_-]*)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]/y;
  while (segment.lastIndex < text.length) {
    const match = segment.exec(text);
    if (!match) return undefined;
    if (match[1] !== undefined) path.push(match[1]);
    else if (match[2] !== undefined) path.push(Number(match[2]));
    else path.push(JSON.parse(match[3]!) as string);
  }
  return path;
}

/** Whether a path is at another or below it. */
export function isWithin(path: Path, outer: Path): boolean {
  return outer.length <= path.length && outer.every((segment, index) => segment === path[index]);
}

/** A stretch of one line. Lines and columns count from 1. */
export interface Span {
  file: string;
  line: number;
  column: number;
  /** Characters, to the end of the line at most. */
  length: number;
}

export interface Place {
  /** The key in a map; absent for list items and the top of a file. */
  key: Span | undefined;
  value: Span;
  /** The text as it stands in the file, where it holds references such as ${env:NAME}. */
  written: string | undefined;
  /** Who changed the value live, and when (ISO 8601); absent for what stands in a file. */
  live?: { actor: string; at: string };
}

/** What a key of the maps below is made of: no name can hold a line break. */
const joined = (path: Path): string => path.join('\n');

/** The place of every value that stands in a file. Defaults have none. */
export class Places {
  readonly #byPath = new Map<string, { path: Path; place: Place }>();

  /** The first place told stays: a key that is set twice is refused elsewhere. */
  add(path: Path, place: Place): void {
    const key = joined(path);
    if (!this.#byPath.has(key)) this.#byPath.set(key, { path, place });
  }

  addAll(others: Places): void {
    for (const { path, place } of others.entries()) this.add(path, place);
  }

  get(path: Path): Place | undefined {
    return this.#byPath.get(joined(path))?.place;
  }

  /** The place of a value, or of the nearest that holds it. */
  nearest(path: Path): Place | undefined {
    for (let length = path.length; length >= 0; length--) {
      const place = this.get(path.slice(0, length));
      if (place) return place;
    }
    return undefined;
  }

  entries(): IterableIterator<{ path: Path; place: Place }> {
    return this.#byPath.values();
  }
}
