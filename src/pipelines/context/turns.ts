import type { Message } from './transcript.ts';

/** Messages that are left out together or not at all, by their places in the transcript. */
export type Unit = readonly number[];

/** A transcript as the rule sees it. */
export interface Turns {
  /** Instructions: they are always kept. */
  system: Unit;
  /** What may be left out, in the order in which it is. */
  order: Unit[];
  /** Of `order`, the first so many are the middle: what lies between the kept beginning and the kept end. */
  middle: number;
  /** Turns there are. */
  count: number;
  /** The place in `order` of the unit that each message is of; undefined for what is never left out. */
  placeOf: readonly (number | undefined)[];
}

export interface Keep {
  /** Turns at the beginning that go last of all, and turns at the end that go after the middle. */
  first: number;
  last: number;
}

/**
 * Divides a transcript into turns: a message of the user (or several in a row) and all that follows up to the next one. A
 * turn is kept or left out whole. So are turns of which one has a tool call and the other its result, and so is a turn with
 * anything pinned, which is kept. Of the last turn, which is always kept, rounds of tool calls with their results
 * may go, the last of them not.
 *
 * What goes first: the middle turns, the oldest first; then the last ones but one, the oldest first; then those at the
 * beginning, the latest first; then rounds of the last turn, the oldest first.
 */
export function turnsOf(messages: readonly Message[], keep: Keep): Turns {
  const system: number[] = [];
  const blocks: number[][] = [];
  let before: string | undefined;
  for (const [at, { role }] of messages.entries()) {
    if (role === 'system' || role === 'developer') {
      system.push(at);
      continue;
    }
    if (blocks.length === 0 || (role === 'user' && before !== 'user')) blocks.push([]);
    blocks.at(-1)!.push(at);
    before = role;
  }
  const turns = joinPairs(messages, blocks);
  const last = turns.at(-1);
  const loose = (turn: Unit) => !turn.some((at) => messages[at]!.pinned);
  const firstEnd = Math.min(keep.first, Math.max(0, turns.length - 1));
  const lastStart = Math.max(firstEnd, turns.length - keep.last);
  const middle = turns.slice(firstEnd, lastStart).filter((turn) => turn !== last && loose(turn));
  const late = turns.slice(lastStart, -1).filter(loose);
  const early = turns.slice(0, firstEnd).filter(loose).reverse();
  const order = [...middle, ...late, ...early, ...(last ? roundsOf(messages, last) : [])];
  const placeOf: (number | undefined)[] = new Array(messages.length).fill(undefined);
  for (const [place, unit] of order.entries()) for (const at of unit) placeOf[at] = place;
  return { system, order, middle: middle.length, count: turns.length, placeOf };
}

/** Turns between which a tool call and its result lie become one. */
function joinPairs(messages: readonly Message[], blocks: number[][]): Unit[] {
  const blockOfCall = new Map<string, number>();
  const joined: number[][] = [];
  /** For each of `joined`, the index of its first block. */
  const begins: number[] = [];
  for (const [index, block] of blocks.entries()) {
    joined.push(block);
    begins.push(index);
    for (const at of block) {
      const { value } = messages[at]!;
      for (const id of callIds(value)) blockOfCall.set(id, index);
      const of = typeof value.tool_call_id === 'string' ? blockOfCall.get(value.tool_call_id) : undefined;
      while (of !== undefined && begins.at(-1)! > of) {
        const later = joined.pop()!;
        begins.pop();
        joined.push([...joined.pop()!, ...later]);
      }
    }
  }
  return joined;
}

/** Calls of tools with their results in the last turn, save the last of them: it is what has to be answered. */
function roundsOf(messages: readonly Message[], turn: Unit): Unit[] {
  const rounds: number[][] = [];
  for (const at of turn) {
    const { role, value } = messages[at]!;
    if (role === 'assistant' && (callIds(value).length > 0 || value.function_call != null)) rounds.push([at]);
    else if (role === 'tool' || role === 'function') rounds.at(-1)?.push(at);
    else if (rounds.length > 0) rounds.push([]); // what is said between rounds stays
  }
  const results = new Map<unknown, number>();
  for (const at of turn) {
    const { tool_call_id: id } = messages[at]!.value;
    results.set(id, (results.get(id) ?? 0) + 1);
  }
  const whole = rounds.filter((round) => round.length > 0 && isRound(messages, round, results));
  return whole.slice(0, -1).filter((round) => !round.some((at) => messages[at]!.pinned));
}

/** Every result in it is of a call in it, and every call has one there, and none elsewhere in the turn. */
function isRound(messages: readonly Message[], round: Unit, results: ReadonlyMap<unknown, number>): boolean {
  const { value } = messages[round[0]!]!;
  const calls = new Set<unknown>(callIds(value));
  if (calls.size === 0) return value.function_call != null && round.length === 2;
  const answered = new Set<unknown>();
  for (const at of round.slice(1)) {
    const { tool_call_id: id } = messages[at]!.value;
    if (!calls.has(id) || results.get(id) !== 1) return false;
    answered.add(id);
  }
  return answered.size === calls.size;
}

export function callIds({ tool_calls: calls }: Message['value']): string[] {
  if (!Array.isArray(calls)) return [];
  return calls.flatMap((call: unknown) => {
    const id = (call as { id?: unknown } | null)?.id;
    return typeof id === 'string' ? [id] : [];
  });
}
