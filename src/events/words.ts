import { ERRORS, type ErrorCode } from '../kernel/errors.ts';
import { formatDuration, formatSize } from '../kernel/units.ts';
import { IN_SHORT, REASONS } from './reasons.ts';

/**
 * Puts a reason into words. Figures stand in braces in its sentence; a part in brackets is left out where one of its
 * figures is missing. A code that has no sentence is told as it is, with all its figures.
 */
export function inWords(code: string, figures: Readonly<Record<string, unknown>>): string {
  const sentence = sentenceOf(code);
  if (sentence === undefined) return bare(code, figures);
  const told = (name: string) => (isThere(figures[name]) ? shown(name, figures[name]) : undefined);
  return sentence
    .replace(/\[([^\]]*)\]/g, (_, part: string) =>
      namesIn(part).every((name) => told(name) !== undefined) ? part : '',
    )
    .replace(/\{(\w+)\}/g, (_, name: string) => told(name) ?? '?');
}

/** A request may also end for the reason of an error that callers are told. */
function sentenceOf(code: string): string | undefined {
  if (Object.hasOwn(REASONS, code)) return REASONS[code as keyof typeof REASONS];
  return Object.hasOwn(ERRORS, code) ? ERRORS[code as ErrorCode].meaning : undefined;
}

/** The figures that a sentence, or a part of one, speaks of. */
export function namesIn(sentence: string): string[] {
  return [...sentence.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!);
}

function bare(code: string, figures: Readonly<Record<string, unknown>>): string {
  const all = Object.entries(figures).map(([name, value]) => `${name} ${shown(name, value)}`);
  return all.length === 0 ? code : `${code} (${all.join(', ')})`;
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0);
}

/** The end of a figure's name tells its unit. */
function shown(name: string, value: unknown): string {
  if (typeof value === 'number') {
    if (/(^ms|Ms)$/.test(name)) return value < 10 ? `${Number(value.toFixed(1))}ms` : formatDuration(value);
    if (/(^bytes|Bytes)$/.test(name)) return formatSize(value);
    return String(value);
  }
  if (typeof value === 'string' && (name === 'for' || name === 'rule')) return inShort(value);
  if (typeof value === 'string' && name === 'reason') {
    const [outcome, cause] = value.split(':');
    if (cause !== undefined && Object.hasOwn(IN_SHORT, cause)) return `${outcome}, as ${inShort(cause)},`;
  }
  if (Array.isArray(value)) return value.map((item) => shown('', item)).join(', ');
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

const inShort = (code: string): string => (Object.hasOwn(IN_SHORT, code) ? IN_SHORT[code]! : code);
