import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Who last changed a line of a file, as git tells it. */
export interface Blame {
  /** The full hash. */
  commit: string;
  author: string;
  /** ISO 8601, UTC: when the author wrote it. */
  date: string;
}

const GIT_MS_MAX = 5000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** Files remembered; the least lately added is forgotten first. */
const FILES_MAX = 200;

/** Asks git who wrote the lines of configuration files. A content of a file that is committed is asked for once. */
export class Blamer {
  readonly #files = new Map<string, Promise<Lines>>();

  /**
   * Who last changed a line (from 1) of a file. Undefined for a line that is not committed, a file that git does not
   * know, a folder that is no work tree, and where git is not installed or takes longer than 5 s. Never rejects.
   */
  async blame(file: string, line: number): Promise<Blame | undefined> {
    const key = contentKey(file);
    if (key === undefined) return undefined;
    const lines = this.#files.get(key) ?? this.#ask(file, key);
    return (await lines).authors.get(line);
  }

  #ask(file: string, key: string): Promise<Lines> {
    const asked = blameLines(file).then((lines) => {
      // The same content may be committed later.
      if (!lines.committed) this.#files.delete(key);
      return lines;
    });
    this.#files.set(key, asked);
    if (this.#files.size > FILES_MAX) this.#files.delete(this.#files.keys().next().value!);
    return asked;
  }
}

/** What stands for a file's content: reading the whole of it for each of its lines would be waste. */
function contentKey(file: string): string | undefined {
  try {
    const { ino, size, mtimeMs } = statSync(file);
    return [file, ino, size, mtimeMs].join(' ');
  } catch {
    return undefined; // gone since it was loaded: nobody's line any more
  }
}

interface Lines {
  authors: ReadonlyMap<number, Blame>;
  /** Whether every line has one. */
  committed: boolean;
}

function blameLines(file: string): Promise<Lines> {
  const args = ['-C', dirname(file), '--no-optional-locks', 'blame', '--porcelain', '--', basename(file)];
  const options = { timeout: GIT_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX, windowsHide: true };
  return new Promise((resolve) => {
    execFile('git', args, options, (error, stdout) => {
      // Every failure means the same: git has nothing to say about this file.
      resolve(error ? { authors: new Map(), committed: false } : parsePorcelain(stdout));
    });
  });
}

const UNCOMMITTED = /^0+$/;

/** Reads `git blame --porcelain`: a head for each line, the details of a commit at its first. */
export function parsePorcelain(text: string): Lines {
  const authors = new Map<number, Blame>();
  let count = 0;
  const commits = new Map<string, { author: string; seconds: number }>();
  let commit = '';
  let line = 0;
  for (const row of text.split('\n')) {
    const head = /^([0-9a-f]{40,64}) \d+ (\d+)/.exec(row);
    if (head) {
      commit = head[1]!;
      line = Number(head[2]);
      if (!commits.has(commit)) commits.set(commit, { author: '', seconds: 0 });
    } else if (row.startsWith('author ')) {
      commits.get(commit)!.author = row.slice('author '.length);
    } else if (row.startsWith('author-time ')) {
      commits.get(commit)!.seconds = Number(row.slice('author-time '.length));
    } else if (row.startsWith('\t')) {
      count++;
      if (UNCOMMITTED.test(commit)) continue;
      const { author, seconds } = commits.get(commit)!;
      authors.set(line, { commit, author, date: new Date(seconds * 1000).toISOString() });
    }
  }
  return { authors, committed: authors.size === count };
}
