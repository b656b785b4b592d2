import type { LimitController, LimitSample } from '../../policies/limit-contract.ts';
import { type ControllerName, limitController } from '../../policies/limit-controllers.ts';
import { SizeFloors } from '../../policies/size-floors/index.ts';
import { SizeTimes } from '../../policies/size-times/index.ts';

/** Requests that an endpoint may have of which nothing is known yet, and one that has just come back. */
const REQUESTS_FIRST = 20;
const REQUESTS_BACK = 4;
/** Weight of a new request in the mean size, and of a new answer in the mean time. */
const UNIT_WEIGHT = 0.05;
const TOTAL_WEIGHT = 0.1;
/** Share of the limit in use from which it is taken to be binding. */
const BINDING = 0.92;
/** Where others wait already: then places that are kept for somebody else are all that is left. */
const BINDING_CONTESTED = 0.85;
/** Shares of the route's deadline: for the first token of a stream, the rest being for the queue; and for a whole answer. */
const STREAM_SHARE = 0.5;
const WHOLE_SHARE = 0.9;
/** Without a target of its own an answer may take this many times what its size takes at least, or so much longer. */
const FLOORS_MAX = 3;
const LONGER_MS = 100;
/** An answer is too late for want of room only where waiting is a good part of it. */
const WAITS_MIN = 1.5;
/** A stream is taken to be so many times as long as its first token takes, until one has come to its end. */
const STREAM_FIRSTS = 20;
/** Streams of late, milliseconds: while there are, whole answers are not what the limit follows. */
const STREAMS_MS = 10_000;
/** A gauge that says that there is no room for some: so many readings in a row, of at least this share of the running. */
const ROOMLESS_READINGS = 2;
const ROOMLESS_SHARE = 0.06;
/** Up to this share there is room for all. */
const FREE_SHARE = 0.03;
/** What the most that an engine was seen to run is multiplied by at each reading: its room may have become less. */
const RAN_FADES = 0.97;
/** For so long after an engine had no room it is not tried whether it has more than was thought. */
const HUMBLE_MS = 10_000;
/** Refusals of an engine come in flocks; one a while is counted. */
const DROP_EVERY_MS = 250;

/** What is known of an attempt once it is sent. */
export interface Sent {
  readonly startedAt: number;
  /** In flight when it was sent, itself included: reckoned tokens, and requests. */
  readonly tokensInFlight: number;
  readonly inflight: number;
  /** Others waited for a place when it was sent. */
  readonly contested: boolean;
}

/** The adaptive limit of one endpoint for one worker: feeds a controller with answers made comparable. */
export class AdaptiveLimit {
  #controller: LimitController;
  /** What goes by first tokens, where that says nothing of whole answers; and what stands in for it then. */
  readonly #byFirst: LimitController | undefined;
  #byWhole: LimitController | undefined;
  readonly #firstTokenMs: number | undefined;
  readonly #own: boolean;
  readonly #first = new SizeFloors();
  readonly #whole = new SizeTimes();
  /** What whole answers take at least, in multiples of what is usual. */
  readonly #wholeFloor = new SizeFloors();
  /** Mean units of a request; 0 before the first. */
  #unit = 0;
  /** Mean time of a stream. */
  #totalMs: number | undefined;
  #firstSentAt = 0;
  #streamAt = Number.NEGATIVE_INFINITY;
  #requestsFirst = REQUESTS_FIRST;
  /** Nothing has come back since it started, good or bad. */
  #blind = true;
  #droppedAt = Number.NEGATIVE_INFINITY;
  #roomlessReadings = 0;
  /** The most that the engine was seen to run of late. */
  #ranMost = 0;
  /** Used again for each answer. */
  readonly #sample: LimitSample = {
    sentAt: 0,
    whole: false,
    ratio: 1,
    excess: 0,
    held: 1,
    share: 0,
    allowedPart: 0,
    inFlight: 0,
    unit: 1,
    saturated: false,
  };

  /** One more may be sent beyond the limit when nothing there waits for its first token. */
  eager: boolean;

  constructor(name: ControllerName, firstTokenMs: number | undefined) {
    this.#controller = limitController(name);
    if (name === 'target') this.#byFirst = this.#controller;
    this.#firstTokenMs = firstTokenMs;
    this.#own = name === 'knee' || name === 'target';
    this.eager = this.#own;
  }

  /** Whether one more may be sent: the last one may go beyond the limit, so that a large one finds its turn too. */
  hasRoom(tokens: number, requests: number): boolean {
    if (requests === 0 || tokens < this.#controller.limit) return true;
    return this.#controller.starting && requests < this.#requestsFirst;
  }

  /** It started, and nothing has come back yet that it could go by. */
  get isBlind(): boolean {
    return this.#blind && this.#controller.starting;
  }

  growBlindly(): void {
    this.#requestsFirst *= 2;
  }

  /** A request of so many tokens was let in. */
  took(tokens: number): void {
    this.#unit = this.#unit === 0 ? tokens : this.#unit + UNIT_WEIGHT * (tokens - this.#unit);
  }

  /** Tokens in flight. */
  get tokens(): number {
    return this.#controller.limit;
  }

  /** The limit in requests of usual size, not below 1. */
  get requests(): number {
    const { limit, starting } = this.#controller;
    const requests = this.#unit === 0 ? 0 : Math.ceil(limit / this.#unit - 1e-6);
    return Math.max(starting ? this.#requestsFirst : 1, requests);
  }

  /** Places of usual size that are free; 0 only where there is no room. */
  free(tokens: number, requests: number): number {
    if (!this.hasRoom(tokens, requests)) return 0;
    const { limit, starting } = this.#controller;
    const byTokens = this.#unit === 0 ? 1 : Math.ceil((limit - tokens) / this.#unit);
    return Math.max(1, byTokens, starting ? this.#requestsFirst - requests : 0);
  }

  /** The first content of a stream has come. `deadlineMs`: of its route. */
  firstToken(sent: Sent, tokensIn: number, deadlineMs: number, capped: boolean, now: number): void {
    const latency = now - sent.startedAt;
    const floor = this.#first.observe(latency, tokensIn, now);
    if (this.#firstSentAt === 0) this.#firstSentAt = sent.startedAt;
    this.#streamAt = now;
    if (this.#byFirst) this.#controller = this.#byFirst;
    if (!this.eager) this.eager = this.#own && now - this.#droppedAt > HUMBLE_MS;
    const held = Math.max(1e-3, this.#totalMs ?? Math.max(now - this.#firstSentAt, STREAM_FIRSTS * latency));
    const allowed = this.#firstTokenMs ?? Math.min(STREAM_SHARE * deadlineMs, this.#relative(floor));
    this.#sample.whole = false;
    this.#tell(sent, latency, floor, latency - floor, held, allowed, capped, now);
  }

  /** A stream came to its end. */
  streamed(totalMs: number): void {
    this.#totalMs = mean(this.#totalMs, totalMs);
  }

  /** A whole answer has come. Sizes in tokens; of tensors, bytes in and one out. */
  whole(sent: Sent, sizeIn: number, sizeOut: number, deadlineMs: number, capped: boolean, now: number): void {
    if (now - this.#streamAt < STREAMS_MS) return;
    if (this.#byFirst) this.#controller = this.#byWhole ??= limitController('knee');
    const latency = Math.max(now - sent.startedAt, 1e-3);
    const usual = this.#whole.observe(latency, sizeIn, sizeOut, sent.inflight);
    const longer = usual > 0 ? latency / usual : 1;
    const floor = (latency / longer) * this.#wholeFloor.observe(longer, 0, now);
    const allowed = Math.min(WHOLE_SHARE * deadlineMs, this.#relative(floor));
    this.#sample.whole = true;
    this.#tell(sent, latency, floor, longer, longer, allowed, capped, now);
  }

  /** It was broken off before it gave anything: it took at least so long. */
  cutOff(sent: Sent, deadlineMs: number, streamed: boolean, now: number): void {
    const latency = now - sent.startedAt;
    const allowed = streamed ? (this.#firstTokenMs ?? STREAM_SHARE * deadlineMs) : WHOLE_SHARE * deadlineMs;
    if (latency <= allowed) return;
    const held = streamed ? Math.max(latency, this.#totalMs ?? 0) : 1;
    this.#sample.whole = !streamed;
    // How much of it was waiting nobody knows: half is said.
    this.#tell(sent, latency, latency / 2, streamed ? latency : 1, held, allowed, false, now);
  }

  /** The engine had no room for one. */
  dropped(tokens: number, now: number): void {
    if (now - this.#droppedAt < DROP_EVERY_MS) return;
    this.#hadNoRoom(now);
    this.#controller.dropped(tokens, 0.1, now);
  }

  /**
   * A fresh reading of the engine's own gauges. Who has just come waits for the next step, and after a pause that is many;
   * for want of room wait only those who go beyond the most that it was seen to run.
   */
  gauged(waiting: number, running: number, tokens: number, now: number): void {
    if (this.#controller.name === 'target') return; // what may wait inside is said by the target
    this.#ranMost = Math.max(running, this.#ranMost * RAN_FADES);
    const roomless = Math.max(0, waiting + running - this.#ranMost);
    if (roomless <= Math.max(1, ROOMLESS_SHARE * running)) {
      if (this.#roomlessReadings >= ROOMLESS_READINGS) this.eager = this.#own;
      this.#roomlessReadings = 0;
      const binds = tokens >= BINDING * this.#controller.limit;
      const few = FREE_SHARE * running;
      if (binds && roomless <= few) {
        const idle = Math.max(0, 1 - waiting / Math.max(1, few));
        this.#controller.free?.(tokens, idle, now);
      }
      return;
    }
    this.#roomlessReadings++;
    if (this.#roomlessReadings < ROOMLESS_READINGS) return;
    this.#hadNoRoom(now);
    this.#controller.dropped(tokens, roomless / (waiting + running), now);
  }

  #hadNoRoom(now: number): void {
    this.#droppedAt = now;
    this.#blind = this.eager = false;
  }

  /** The endpoint is back: few at first, so that nobody's flock stamps it out again. */
  restart(): void {
    this.#requestsFirst = REQUESTS_BACK;
    this.#blind = true;
    this.#ranMost = 0;
    this.#controller.restart(REQUESTS_BACK * Math.max(1, this.#unit));
  }

  #relative(floor: number): number {
    if (this.#controller.name === 'knee') return Number.POSITIVE_INFINITY;
    return Math.max(FLOORS_MAX * floor, floor + LONGER_MS);
  }

  #tell(
    sent: Sent,
    latency: number,
    floor: number,
    excess: number,
    held: number,
    allowed: number,
    capped: boolean,
    now: number,
  ): void {
    this.#blind = false;
    const sample = this.#sample;
    const { tokensInFlight, inflight, contested } = sent;
    const late = latency > allowed && latency > WAITS_MIN * floor;
    sample.sentAt = sent.startedAt;
    sample.ratio = latency / Math.max(floor, 1e-3);
    sample.excess = excess;
    sample.held = held;
    sample.share = late ? latency / allowed : Math.min(1, latency / allowed);
    sample.allowedPart = allowed / Math.max(latency, this.#totalMs ?? latency);
    sample.inFlight = tokensInFlight;
    sample.unit = Math.max(1, this.#unit);
    const binding = contested ? BINDING_CONTESTED : BINDING;
    sample.saturated = capped || !this.hasRoom(tokensInFlight / binding, inflight / binding);
    this.#controller.observe(sample, now);
  }
}

function mean(before: number | undefined, value: number): number {
  return before === undefined ? value : before + TOTAL_WEIGHT * (value - before);
}
