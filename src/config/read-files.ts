import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { Fault, FaultCode } from './faults.ts';
import { type ConfigIo, readText } from './files.ts';
import { formatPath, type Path, type Places, type Span } from './places.ts';
import { UNRESOLVED } from './references.ts';
import { isMap } from './shape.ts';
import { Sources } from './sources.ts';
import { parseYaml } from './yaml-file.ts';

const FILE_BYTES_MAX = 4 * 1024 * 1024;
const FILES_MAX = 1000;

/** A configuration file that was read: its text, and the SHA-256 of its bytes, hexadecimal. */
export interface ReadFile {
  file: string;
  text: string;
  sha256: string;
}

export interface ReadFiles {
  /** All files merged, references resolved, nothing checked yet. */
  document: Record<string, unknown>;
  sources: Sources;
  files: ReadFile[];
  faults: Fault[];
  /** Some of the configuration could not be read: what is missed elsewhere may stand there. */
  incomplete: boolean;
}

/** Reads a configuration file and all that it includes. */
export function readFiles(main: string, io: ConfigIo): ReadFiles {
  const merge = new Merge(main, io);
  merge.include(main, [], undefined);
  return merge.result;
}

class Merge {
  readonly result: ReadFiles;
  readonly #io: ConfigIo;
  readonly #seen = new Set<string>();

  constructor(main: string, io: ConfigIo) {
    this.#io = io;
    this.result = { document: {}, sources: new Sources(main), files: [], faults: [], incomplete: false };
  }

  /** Reads one file and then what it includes. `chain` are the files that led here; `from` is where it is included. */
  include(file: string, chain: readonly string[], from: Span | undefined): void {
    const absolute = resolve(file);
    if (from && chain.includes(absolute)) {
      this.#fault('include', from, ['include'], `${file} includes itself, directly or through others`);
      return;
    }
    if (this.#seen.has(absolute)) return;
    this.#seen.add(absolute);
    if (this.#seen.size > FILES_MAX) {
      if (from && this.#seen.size === FILES_MAX + 1) {
        this.#fault('include', from, ['include'], `more than ${FILES_MAX} files are included`);
      }
      return;
    }
    const read = this.#read(file, from);
    if (!read) return;
    this.#merge(read.data, read.places);
    for (const [index, pattern] of this.#includes(read.data, read.places).entries()) {
      const span = read.places.get(['include', index])?.value;
      if (!span || typeof pattern !== 'string' || pattern === UNRESOLVED) continue;
      for (const match of this.#matches(pattern, dirname(file)))
        this.include(match, [...chain, absolute], span);
    }
  }

  /** The map that a file holds; undefined, with a fault, where it holds none. */
  #read(file: string, from: Span | undefined): { data: Record<string, unknown>; places: Places } | undefined {
    const { faults, files, sources } = this.result;
    const top = { file, line: 1, column: 1, length: 1 };
    const got = readText(this.#io, file, FILE_BYTES_MAX);
    if ('cause' in got) {
      this.#fault('unreadable', from ?? top, from ? ['include'] : [], `the file ${file} ${got.cause}`);
      return undefined;
    }
    files.push({ file, text: got.text, sha256: got.sha256 });
    const { data, places, lines, faults: found, broken } = parseYaml(file, got.text, this.#io);
    sources.addLines(file, lines);
    for (const { fault, span } of found) faults.push(sources.withExcerpt(fault, span));
    if (broken) {
      this.result.incomplete = true;
      return undefined;
    }
    if (isMap(data)) return { data, places };
    if (data === null) return { data: {}, places };
    const what = Array.isArray(data) ? 'a list' : 'a single value';
    this.#fault(
      'bad-value',
      top,
      [],
      `expected a map of settings, such as "routes:" and what is below it, found ${what}`,
    );
    return undefined;
  }

  /** Adds what a file says to what was read before. */
  #merge(data: Record<string, unknown>, places: Places): void {
    const { document, sources } = this.result;
    for (const [section, value] of Object.entries(data)) {
      if (section === 'include') continue;
      const there = document[section];
      if (!Object.hasOwn(document, section)) {
        document[section] = isMap(value) ? { ...value } : value;
      } else if (isMap(there) && isMap(value)) {
        for (const [name, item] of Object.entries(value)) {
          if (Object.hasOwn(there, name)) this.#twice([section, name], places);
          else there[name] = item;
        }
      } else {
        this.#twice([section], places);
      }
    }
    sources.places.addAll(places);
  }

  #twice(path: Path, places: Places): void {
    const first = this.result.sources.locate(path, 'key');
    const here = places.get(path)?.key ?? first;
    const message = `is set here and at ${first.file}:${first.line}:${first.column}; one file only may set it`;
    this.#fault('duplicate-key', here, path, message);
  }

  /** What a file includes. */
  #includes(data: Record<string, unknown>, places: Places): readonly unknown[] {
    const { include } = data;
    if (include === undefined) return [];
    if (Array.isArray(include) && include.every((item) => typeof item === 'string')) {
      this.result.document['include'] ??= include;
      return include;
    }
    const span = places.get(['include'])?.value;
    if (span)
      this.#fault('bad-value', span, ['include'], 'expected a list of files, such as [conf.d/*.yaml]');
    return [];
  }

  /** A plain name must be there; a pattern may match nothing. */
  #matches(pattern: string, folder: string): string[] {
    const matches = /[*?[\]{}]/.test(pattern) ? this.#io.glob(pattern, folder) : [pattern];
    return matches.map((match) => (isAbsolute(match) ? match : join(folder, match)));
  }

  #fault(code: FaultCode, span: Span, path: Path, message: string): void {
    const { file, line, column } = span;
    const fault = { code, file, line, column, path: formatPath(path), message };
    this.result.faults.push(this.result.sources.withExcerpt(fault, span));
    // Keys that are set twice are all there; of everything else something is missing.
    if (code !== 'duplicate-key') this.result.incomplete = true;
  }
}
