import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'vite';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Node {
  type: string;
  start: number;
  end: number;
}

export interface Source {
  /** Relative to the repository, with `/`. */
  path: string;
  text: string;
  /** Line of a position, 1 or more. */
  lineAt(position: number): number;
  /** What it imports, dynamic imports of literals included: a path in the repository, or a package's specifier. */
  imports: { line: number; target: string; types: boolean }[];
  comments: { line: number; text: string; start: number; end: number }[];
  /** Every node of its syntax tree. */
  nodes: Node[];
}

/** Files that git knows or would add, relative to the repository. */
export function files(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  return listed.split('\n').filter((path) => path !== '' && existsSync(join(root, path)));
}

/** The TypeScript and JavaScript of the repository, read once. */
export function sources(): Source[] {
  parsed ??= files()
    .filter((path) => /\.(ts|mts|mjs|js|tsx)$/.test(path))
    .map((path) => parse(path, readFileSync(join(root, path), 'utf8')));
  return parsed;
}
let parsed: Source[] | undefined;

export function parse(path: string, text: string): Source {
  const { program, module, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]!.message}`);
  const lineAt = lineFinder(text);

  const imports: Source['imports'] = [];
  const add = (start: number, specifier: string, types: boolean): void => {
    const target = specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier;
    imports.push({ line: lineAt(start), target, types });
  };
  for (const { start, moduleRequest, entries } of module.staticImports) {
    add(start, moduleRequest.value, entries.length > 0 && entries.every((entry) => entry.isType));
  }
  for (const { start, entries } of module.staticExports) {
    const from = entries.find((entry) => entry.moduleRequest)?.moduleRequest;
    if (from)
      add(
        start,
        from.value,
        entries.every((entry) => entry.isType),
      );
  }
  for (const { moduleRequest } of module.dynamicImports) {
    const literal = /^['"`](.*)['"`]$/.exec(text.slice(moduleRequest.start, moduleRequest.end));
    if (literal) add(moduleRequest.start, literal[1]!, false);
  }
  return {
    path,
    text,
    lineAt,
    imports,
    comments: comments.map(({ value, start, end }) => ({ line: lineAt(start), text: value, start, end })),
    nodes: [...walk(program)],
  };
}

function* walk(value: unknown): Generator<Node> {
  if (Array.isArray(value)) {
    for (const item of value) yield* walk(item);
  } else if (typeof value === 'object' && value !== null) {
    if ('type' in value && 'start' in value) yield value as Node;
    for (const child of Object.values(value)) yield* walk(child);
  }
}

function lineFinder(text: string): (position: number) => number {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (position) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= position) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
}
