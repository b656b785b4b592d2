import { isObject, type Json } from '../../../protocols/json-object.ts';
import { readJson } from './answers.ts';
import type { Choice, Difference, ReadPair } from './contracts.ts';

/** Levels of JSON that are looked into; what is nested deeper is not compared. */
const DEPTH_MAX = 256;

class TooDeep extends Error {}

/**
 * The share of values that differ between two answers in JSON, tool calls by name and arguments among them: 0 where all are
 * equal, 1 where none is. The order of members means nothing, that of lists does. Values that one side lacks differ. Words
 * around tool calls are not compared. Undefined where the caller's answer is no JSON, or nested too deep.
 */
export function structured({ caller, copy }: ReadPair<'texts'>): Difference {
  const count = { same: 0, all: 0 };
  try {
    for (let at = 0; at < Math.max(caller.choices.length, copy.choices.length); at++) {
      const theirs = statedIn(caller.choices[at]);
      const own = statedIn(copy.choices[at]);
      if (at < caller.choices.length && theirs === undefined) return undefined;
      weigh(theirs, theirs && own ? only(own, Object.keys(theirs)) : own, count, 0);
    }
  } catch (error) {
    if (error instanceof TooDeep) return undefined;
    throw error;
  }
  return count.all === 0 ? undefined : 1 - count.same / count.all;
}

/** What an answer says in JSON: its text, what it calls, or both; undefined where it does neither. */
function statedIn(choice: Choice | undefined): Json | undefined {
  if (!choice) return undefined;
  const { text, toolCalls } = choice;
  const nothing = Symbol('no JSON');
  const fenced = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text);
  const content = readJson(fenced?.[1] ?? text, nothing);
  const value = {
    ...(content !== nothing && { content }),
    ...(toolCalls.length > 0 && { calls: toolCalls.map(({ name, given }) => ({ name, given })) }),
  };
  return Object.keys(value).length === 0 ? undefined : value;
}

/** What the caller's answer has in JSON has to be there; words that the copy's has beside it do not count, other calls do. */
function only(own: Json, keys: readonly string[]): Json {
  return Object.fromEntries(Object.entries(own).filter(([key]) => key === 'calls' || keys.includes(key)));
}

/** Counts the values of both sides, and those that are equal. */
function weigh(a: unknown, b: unknown, count: { same: number; all: number }, depth: number): void {
  if (depth > DEPTH_MAX) throw new TooDeep();
  if (Array.isArray(a) && Array.isArray(b) && a.length + b.length > 0) {
    for (let at = 0; at < Math.max(a.length, b.length); at++) weigh(a[at], b[at], count, depth + 1);
  } else if (isObject(a) && isObject(b) && Object.keys(a).length + Object.keys(b).length > 0) {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
      weigh(memberOf(a, key), memberOf(b, key), count, depth + 1);
  } else if (isInner(a) || isInner(b)) {
    count.all += Math.max(leaves(a, depth), leaves(b, depth));
    if (isEmpty(a) && isEmpty(b) && Array.isArray(a) === Array.isArray(b)) count.same++;
  } else {
    count.all++;
    if (Object.is(a, b) || a === b) count.same++;
  }
}

function memberOf(value: Json, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function isInner(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isEmpty(value: unknown): boolean {
  return isInner(value) && Object.keys(value).length === 0;
}

/** Values in it; an empty list or object is one. */
function leaves(value: unknown, depth: number): number {
  if (depth > DEPTH_MAX) throw new TooDeep();
  if (!isInner(value) || isEmpty(value)) return 1;
  return Object.values(value).reduce((sum: number, each) => sum + leaves(each, depth + 1), 0);
}
