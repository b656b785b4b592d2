import type { Decision, Policy } from '../contracts.ts';

/** How long a rung is held at least, from when it was last taken for want of room; milliseconds. */
const DWELL_MS_FIRST = 1_000;
/** Where it is taken again soon after it was left, so much longer each time, up to a bound. */
const DWELL_GROWTH = 2;
const DWELL_MS_MAX = 4_000;
const SOON_MS = 30_000;
/** Held for so long, full answers are tried where half of the places are free; twice as long each time that it was in vain. */
const TRY_MS_FIRST = 5_000;
const TRY_MS_MAX = 60_000;
/** Time over which the load is averaged, milliseconds: longer than the ups and downs of chance. */
const MEAN_MS = 3_000;
/** Weight of a new answer in the mean time that a full one holds its place. */
const FULL_WEIGHT = 0.05;
/** Of a load this many times the places no more is remembered, so that its end is seen as soon as that of a smaller one. */
const WORK_SHARE_MAX = 1.25;
/** The share of places up to which full answers for everybody are given again: after the dwell, and within it. */
const ROOM_SHARE = 0.8;
const CLEAR_SHARE = 0.5;

export const LADDER_HOLD = { name: 'ladder-hold', version: 1 } as const;

export interface HoldInput {
  /** 0 is the highest. */
  priority: number;
  /** Requests that wait for the places. */
  waiting: number;
  /** Places that are taken now, and that there are. */
  used: number;
  places: number;
}

/** What a decision reads: its input, and what the policy knows. */
export interface HoldRead extends HoldInput {
  /** The rung at which the priority is held; undefined for none. */
  rung: number | undefined;
  dwellLeftMs: number;
  /** Until full answers are tried, whatever they would take. */
  tryLeftMs: number;
  /** Places that the answers of late would have taken, had all been full ones. */
  inFull: number;
}

/** A request had to take the rung for want of room. */
export interface RungTaken {
  kind: 'taken';
  priority: number;
  /** Its place in the ladder. */
  rung: number;
}

/** An answer was whole. */
export interface AnswerServed {
  kind: 'served';
  /** How long it held its place, milliseconds. */
  ms: number;
  /** How many times as much a full one is reckoned to take; 1 for a full one. */
  growth: number;
}

interface Held {
  rung: number;
  until: number;
  dwellMs: number;
  tryAt: number;
  tryMs: number;
  /** -1 while it is held. */
  leftAt: number;
}

/**
 * Keeps the requests of a priority at a rung that makes them smaller, once one of them had to take it for want of room, until
 * there is room for all of them in full: so that the room that smaller answers make does not bring the full ones back.
 */
export class LadderHold implements Policy<HoldInput, number | undefined, RungTaken | AnswerServed> {
  readonly name = LADDER_HOLD.name;
  readonly version = LADDER_HOLD.version;
  readonly #held: (Held | undefined)[] = [];
  #count = 0;
  #fullMs: number | undefined;
  /** Time in places that answers took, or would have in full, fading. */
  #workMs = 0;
  #workAt = 0;

  /** Whether any priority is held at a rung. */
  get holds(): boolean {
    return this.#count > 0;
  }

  /** What a decision on this input reads now. */
  read(input: HoldInput, now: number): HoldRead {
    const held = this.#held[input.priority];
    const inFull = Math.min(this.#work(now) / MEAN_MS, WORK_SHARE_MAX * input.places);
    if (!held || held.leftAt >= 0) return { ...input, rung: undefined, dwellLeftMs: 0, tryLeftMs: 0, inFull };
    const dwellLeftMs = Math.max(0, held.until - now);
    return { ...input, rung: held.rung, dwellLeftMs, tryLeftMs: Math.max(0, held.tryAt - now), inFull };
  }

  /** The rung to go straight to; undefined for a full answer. */
  decide(input: HoldInput, now: number): Decision<number | undefined> {
    const read = this.read(input, now);
    const decision = judge(read);
    this.#workMs = read.inFull * MEAN_MS;
    this.#workAt = now;
    if (read.rung !== undefined && decision.choice === undefined) {
      this.#held[input.priority]!.leftAt = now;
      this.#count--;
    }
    return decision;
  }

  observe(event: RungTaken | AnswerServed, now: number): void {
    if (event.kind === 'taken') {
      this.#take(event, now);
      return;
    }
    const { ms, growth } = event;
    if (growth === 1) {
      this.#fullMs = this.#fullMs === undefined ? ms : this.#fullMs + FULL_WEIGHT * (ms - this.#fullMs);
    }
    this.#workMs = this.#work(now) + (growth === 1 ? ms : (this.#fullMs ?? ms * growth));
    this.#workAt = now;
  }

  #work(now: number): number {
    return this.#workMs * Math.exp((this.#workAt - now) / MEAN_MS);
  }

  #take({ priority, rung }: RungTaken, now: number): void {
    const held = this.#held[priority];
    if (held && held.leftAt < 0) {
      held.rung = Math.max(held.rung, rung);
      held.until = now + held.dwellMs;
      return;
    }
    const soon = held !== undefined && now - held.leftAt < SOON_MS;
    const dwellMs = soon ? Math.min(DWELL_MS_MAX, held.dwellMs * DWELL_GROWTH) : DWELL_MS_FIRST;
    const tryMs = soon ? Math.min(TRY_MS_MAX, held.tryMs * 2) : TRY_MS_FIRST;
    this.#held[priority] = { rung, until: now + dwellMs, dwellMs, tryAt: now + tryMs, tryMs, leftAt: -1 };
    this.#count++;
  }
}

/** Decides on what was read; a recorded decision is taken again by it. */
export function judge({
  rung,
  dwellLeftMs,
  tryLeftMs,
  inFull,
  ...input
}: HoldRead): Decision<number | undefined> {
  if (rung === undefined) return { choice: undefined, reason: { code: 'rung-not-held', figures: {} } };
  const { waiting, used, places } = input;
  const most = (dwellLeftMs > 0 ? CLEAR_SHARE : ROOM_SHARE) * places;
  const isCalm = waiting === 0 && places > 0;
  const fits = isCalm && inFull <= most && used <= most;
  const mayTry = isCalm && tryLeftMs === 0 && dwellLeftMs === 0 && used <= CLEAR_SHARE * places;
  const figures = {
    rung,
    waiting,
    used,
    places,
    inFull: Math.round(inFull * 100) / 100,
    dwellLeftMs: Math.round(dwellLeftMs),
  };
  if (fits) return { choice: undefined, reason: { code: 'rung-left', figures } };
  if (mayTry) return { choice: undefined, reason: { code: 'full-tried', figures } };
  return { choice: rung, reason: { code: 'rung-held', figures } };
}
