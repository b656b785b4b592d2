import { stripVTControlCharacters } from 'node:util';

/** Where a command writes: what was asked for on stdout, everything else on stderr. */
export interface Output {
  /** Whether a person reads stdout. */
  readonly tty: boolean;
  /** One line, or several, on stdout. */
  print(text: string): void;
  /** Exactly this on stdout. */
  write(text: string): void;
  /** One value on one line of stdout. */
  json(value: unknown): void;
  /** A remark on stderr. */
  note(text: string): void;
}

export const processOutput: Output = {
  tty: process.stdout.isTTY === true,
  print: (text) => void process.stdout.write(`${text}\n`),
  write: (text) => void process.stdout.write(text),
  json: (value) => void process.stdout.write(`${JSON.stringify(value)}\n`),
  note: (text) => void process.stderr.write(`${text}\n`),
};

/** `armature events | head` ends quietly when head has read enough. */
export function leaveWhenNobodyReads(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}

/** Lines of cells under a head, each column as wide as its widest cell. Numbers stand to the right. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => widthOf(row[column] ?? ''))),
  );
  const numeric = head.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'),
  );
  const line = (cells: readonly (string | number)[]): string =>
    widths
      .map((width, column) => {
        const cell = String(cells[column] ?? '');
        const room = ' '.repeat(width - widthOf(cell));
        return numeric[column] ? room + cell : cell + room;
      })
      .join('  ')
      .trimEnd();
  return [line(head), ...rows.map(line)].join('\n');
}

/** Colours take no room. */
function widthOf(cell: string | number): number {
  return stripVTControlCharacters(String(cell)).length;
}
