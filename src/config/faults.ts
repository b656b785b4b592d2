/** What is wrong with a configuration, and how a person is told. */

export type FaultCode =
  | 'unreadable'
  | 'yaml'
  | 'duplicate-key'
  | 'include'
  | 'reference'
  | 'unknown-key'
  | 'missing-key'
  | 'bad-value'
  | 'bad-name'
  | 'unknown-name'
  | 'contradiction';

export interface Fault {
  code: FaultCode;
  file: string;
  /** Line and column count from 1; both are 0 where the value stands in no file, but in an overlay. */
  line: number;
  column: number;
  /** Such as `routes.chat.deadline`; empty for the file as a whole. */
  path: string;
  /** One sentence, complete without the other members. Never holds a secret's value. */
  message: string;
  expected?: string;
  /** What stands there, cut short; secrets are not shown. */
  found?: string;
  hint?: string;
  excerpt?: Excerpt;
}

/** The line that a fault is on, secrets blotted out. */
export interface Excerpt {
  text: string;
  /** Where the marks under the line begin, from 0, and how many they are. */
  mark: number;
  length: number;
}

/** Something that is no fault, but must not go unsaid. */
export interface Notice {
  code: 'no-effect-yet' | 'empty' | 'looks-wrong' | 'live-change' | 'not-looked-up';
  file: string;
  line: number;
  column: number;
  path: string;
  message: string;
}

/** From top to bottom, file by file in the order given. */
export function inOrder(faults: readonly Fault[], files: readonly string[]): Fault[] {
  return faults.toSorted(
    (a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line || a.column - b.column,
  );
}

/** A fault as people read it: place, path and cause; the line it is on; the hint. */
export function formatFault(fault: Fault): string {
  const lines = [`${formatPlace(fault)}: ${fault.path === '' ? '' : `${fault.path}: `}${fault.message}`];
  if (fault.excerpt) {
    const { text, mark, length } = fault.excerpt;
    lines.push(`    ${text}`, `    ${' '.repeat(mark)}${'^'.repeat(length)}`);
  }
  if (fault.hint) lines.push(`  hint: ${fault.hint}`);
  return lines.join('\n');
}

/** Faults that are written out for people; of more, the number is told. */
const WRITTEN_MAX = 100;

/** All faults, and how many there are in `what`. */
export function formatFaults(faults: readonly Fault[], what = 'the configuration'): string {
  const lines = faults.slice(0, WRITTEN_MAX).map(formatFault);
  if (faults.length > WRITTEN_MAX) lines.push(`... and ${faults.length - WRITTEN_MAX} more`);
  const count = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
  return [...lines, `${count} in ${what}`].join('\n');
}

/** Faults as the API and `armature check --json` give them: the same members always, null where there is nothing to say. */
export function faultsAsJson(faults: readonly Fault[]): Record<string, string | number | null>[] {
  return faults.map(({ file, line, column, path, code, message, expected, found, hint }) => ({
    file,
    line,
    column,
    path,
    code,
    message,
    expected: expected ?? null,
    found: found ?? null,
    hint: hint ?? null,
  }));
}

export function formatNotice(notice: Notice): string {
  return `${formatPlace(notice)}: ${notice.path === '' ? '' : `${notice.path}: `}${notice.message}`;
}

export function formatPlace({ file, line, column }: { file: string; line: number; column: number }): string {
  return line === 0 ? file : `${file}:${line}:${column}`;
}
