import type { Arm } from '../../src/events/contracts.ts';
import type { Random } from '../../src/kernel/random.ts';
import { placeOf } from '../../src/policies/canary-arm/index.ts';

/** What callers send: sessions that come at random, of so many requests each, at one rate. */
export interface TrafficSettings {
  requestsPerSecond: number;
  requestsOfSession: number;
  /** Share of requests that fail at stable, 0 to 1. */
  failing: number;
}

/** How the canary differs from stable: 1 is not at all. */
export interface Difference {
  /** So many times as many sessions are in trouble. */
  sessionsFailing: number;
  /** So many times as often each of their requests fails. */
  requestsFailing: number;
  /** The slowest 5 % of its requests take so many times as long, and so does the p99. */
  slowest: number;
  /** What it costs. */
  cost: number;
}

export interface Session {
  name: string;
  /** In [0, 1): where it falls among the arms. */
  place: number;
  /** In [0, 1): it is in trouble where this is below the share of sessions that are. */
  luck: number;
  /** How slow its requests are, as a logarithm, drawn when that is first asked; and how long. */
  slowness: number;
  size: number;
  left: number;
}

export interface Answered {
  session: Session;
  arm: Arm;
  failed: boolean;
  size: string;
  tokensOut: number;
  cost: number;
}

/** Of sessions of one request every request has its own luck; of longer ones a tenth is in trouble, ten times as much each. */
const TROUBLED = 0.1;
const SESSION_SPREAD = 0.4;
const REQUEST_SPREAD = 0.5;
const SPREAD = Math.hypot(SESSION_SPREAD, REQUEST_SPREAD);
const Z95 = 1.6448536269514722;
const MEDIAN_MS = [400, 900];
const SIZES = ['chat-stream/64', 'chat-stream/256'];
/** Between two requests of a session, on average. */
export const GAP_MS = 20_000;

/** Draws sessions and what becomes of their requests. */
export class Traffic {
  readonly #settings: TrafficSettings;
  readonly #difference: Difference;
  readonly #release: string;
  readonly #random: Random;
  #sessions = 0;

  constructor(settings: TrafficSettings, difference: Difference, release: string, random: Random) {
    this.#settings = settings;
    this.#difference = difference;
    this.#release = release;
    this.#random = random;
  }

  get sessionsPerSecond(): number {
    return this.#settings.requestsPerSecond / this.#settings.requestsOfSession;
  }

  session(): Session {
    const name = `s${this.#sessions++}`;
    return {
      name,
      place: placeOf(this.#release, name),
      luck: this.#random.next(),
      slowness: Number.NaN,
      size: this.#random.next() < 0.6 ? 0 : 1,
      left: this.#settings.requestsOfSession,
    };
  }

  answer(session: Session, arm: Arm): Answered {
    const random = this.#random;
    const { requestsOfSession, failing } = this.#settings;
    const { sessionsFailing, requestsFailing, cost } = this.#difference;
    const canary = arm === 'canary';
    const troubled = requestsOfSession === 1 ? failing : TROUBLED;
    const inTrouble = session.luck < troubled * (canary ? sessionsFailing : 1);
    const chance = requestsOfSession === 1 ? 1 : (failing / TROUBLED) * (canary ? requestsFailing : 1);
    const failed = inTrouble && random.next() < chance;
    const tokensOut = 20 + Math.floor(random.next() * 100);
    return {
      session,
      arm,
      failed,
      size: SIZES[session.size]!,
      tokensOut,
      cost: tokensOut * (canary ? cost : 1),
    };
  }

  /** Milliseconds that it took. */
  took({ session, arm }: Answered): number {
    if (Number.isNaN(session.slowness)) session.slowness = SESSION_SPREAD * normal(this.#random);
    const slowness = session.slowness + REQUEST_SPREAD * normal(this.#random);
    const tail = arm === 'canary' && slowness > Z95 * SPREAD ? this.#difference.slowest : 1;
    return MEDIAN_MS[session.size]! * Math.exp(slowness) * tail;
  }
}

/** How many come where so many do on average, 500 at most. Formula: Knuth. */
export function poisson(mean: number, random: Random): number {
  const floor = Math.exp(-mean);
  let product = random.next();
  let count = 0;
  while (product > floor) {
    product *= random.next();
    count++;
  }
  return count;
}

/** Formula: Box and Muller, 1958. */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
