import { CarrierCaller, openCarrier, sharedHeaders, tell, widen } from '../carrier.ts';
import type { HeaderList } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import { countRung } from '../ladder.ts';
import type { Path } from '../path.ts';
import { isShed } from '../record/settle.ts';
import { armKey } from '../release/arms.ts';
import { Company } from '../release/company.ts';

/** So many bytes of an answer are kept for members that come later, or read more slowly than others. */
const REPLAY_BYTES_MAX = 1024 * 1024;
/** Members of one flight; the next begins another. */
const MEMBERS_MAX = 10_000;

type Start = (carrier: Exchange) => void;

/** Requests in the air that others may join, by what they ask and how they want it framed. */
export class Flights {
  readonly #open = new Map<string, Flight>();
  readonly #company = new Company();

  /** The request gets the answer of one that is in the air, or `start` sends one that others may join. */
  join(path: Path, x: Exchange, start: Start): void {
    const { hash, framing } = x.key!;
    const key = `${hash}|${framing}|${armKey(x)}`;
    this.#company.meets(hash, x);
    const known = this.#open.get(key);
    if (known?.takes) {
      path.deps.metrics.joined.of(x.route!.name, 'single-flight').add();
      known.join(x);
      return;
    }
    const flight = new Flight(path, x, () => {
      if (this.#open.get(key) === flight) this.#open.delete(key);
    });
    this.#open.set(key, flight);
    flight.join(x);
    start(flight.carrier!);
  }
}

interface Member {
  x: Exchange;
  joinedAt: number;
  /** Pieces it has been given, and their bytes. */
  at: number;
  bytes: number;
  /** Its socket takes no more for now. */
  full: boolean;
}

/**
 * One request upstream for many callers who ask the same. What comes for it goes to all of them, byte for byte; who comes
 * later gets first what has come already. It goes on as long as one of them stays.
 */
class Flight extends CarrierCaller {
  readonly #path: Path;
  readonly #first: Exchange;
  readonly #onOver: () => void;
  #members: Member[] = [];
  #headers: HeaderList | undefined;
  #pieces: (Buffer | string)[] = [];
  /** Pieces given to everybody and dropped; bytes that have come, and those of them that room was taken for. */
  #dropped = 0;
  #bytes = 0;
  #accounted = 0;
  #joinable = true;
  #paused = false;
  #ended = false;
  #told = false;

  constructor(path: Path, first: Exchange, onOver: () => void) {
    super(first.caller.target, first.caller.body);
    this.#path = path;
    this.#first = first;
    this.#onOver = onOver;
    openCarrier(path, this, first, first.call!, first.cost);
    this.carrier!.key = first.key;
  }

  header(name: string): string | undefined {
    return this.#first.caller.header(name);
  }

  get takes(): boolean {
    return this.#joinable && !this.#ended && this.#members.length < MEMBERS_MAX;
  }

  join(x: Exchange): void {
    const carrier = this.carrier!;
    const path = this.#path;
    const member: Member = { x, joinedAt: path.deps.clock.mono(), at: 0, bytes: 0, full: false };
    const others = this.#members.length;
    this.#members.push(member);
    x.scope.add(() => this.#leave(member));
    if (others > 0) path.step(x, 'plan', 'single-flight', { others }, `routes.${x.route!.name}.singleFlight`);
    path.watchTime(x);
    if (this.#headers) this.#begin(member);
    widen(path, carrier, x);
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    this.#end();
    const shared = sharedHeaders(headers);
    for (const { x, joinedAt } of this.#members.splice(0)) {
      this.#tell(x, joinedAt);
      x.status = status;
      x.firstContentAt = this.carrier!.firstContentAt;
      const own = [...shared];
      this.#path.addHeaders(x, own);
      x.caller.respond(status, own, body);
      this.#path.finish(x);
    }
    this.#release();
  }

  open(_status: number, headers: HeaderList): void {
    this.#headers = sharedHeaders(headers);
    for (const member of this.#members) this.#begin(member);
  }

  write(piece: Buffer | string): boolean {
    const bytes = Buffer.byteLength(piece);
    this.#pieces.push(piece);
    this.#bytes += bytes;
    if (this.#joinable) {
      if (this.#bytes <= REPLAY_BYTES_MAX && this.#path.deps.buffers.take(bytes)) this.#accounted += bytes;
      else this.#close();
    }
    for (const member of [...this.#members]) if (!member.full) this.#feed(member);
    this.#drop();
    this.#paused = !this.#goesOn;
    return !this.#paused;
  }

  end(): void {
    this.#end();
    for (const member of this.#members.splice(0)) {
      // The rest at once, though its socket is full: it ends here, and the socket's own time limit watches over it.
      for (; member.at < this.#dropped + this.#pieces.length; member.at++)
        member.x.caller.write(this.#pieces[member.at - this.#dropped]!);
      this.#tell(member.x, member.joinedAt);
      member.x.caller.end();
      this.#path.finish(member.x);
    }
    this.#release();
  }

  destroy(): void {
    this.#end();
    for (const { x, joinedAt } of this.#members.splice(0)) {
      this.#tell(x, joinedAt);
      x.caller.destroy();
      this.#path.finish(x);
    }
    this.#release();
  }

  /** The answer has begun, and so this member's. */
  #begin(member: Member): void {
    const { x } = member;
    const carrier = this.carrier!;
    x.committed = true;
    x.streaming = carrier.streaming;
    x.status = carrier.status;
    x.degraded = carrier.degraded;
    x.firstContentAt = this.#path.deps.clock.mono();
    this.#path.step(x, 'answer', 'committed', {});
    const own = [...this.#headers!];
    this.#path.addHeaders(x, own);
    x.caller.onDrain = () => this.#feed(member);
    x.caller.open(x.status, own);
    if (x.streaming) this.#path.deps.timers.clear(x.timer);
    this.#feed(member);
  }

  /** Gives a member what has come and it has not had. */
  #feed(member: Member): void {
    member.full = false;
    while (!member.full && !member.x.over && member.at < this.#dropped + this.#pieces.length) {
      const piece = this.#pieces[member.at - this.#dropped]!;
      member.at++;
      member.bytes += Buffer.byteLength(piece);
      member.full = !member.x.caller.write(piece);
    }
    this.#resume();
  }

  /** Somebody can take more, and nobody is too far behind. */
  get #goesOn(): boolean {
    if (this.#members.every(({ full }) => full)) return false;
    return this.#members.every(({ bytes }) => this.#bytes - bytes <= REPLAY_BYTES_MAX);
  }

  #resume(): void {
    if (!this.#paused || this.#ended || !this.#goesOn) return;
    this.#paused = false;
    this.onDrain?.();
  }

  #leave(member: Member): void {
    const at = this.#members.indexOf(member);
    if (at < 0) return;
    this.#members.splice(at, 1);
    if (this.#members.length > 0) {
      this.#resume();
      return;
    }
    // Nobody waits for it any more.
    this.#end();
    this.#path.gone(this.carrier!);
    this.#release();
  }

  /** Nobody may join any more; what all members have had is not needed any more. */
  #close(): void {
    this.#joinable = false;
    this.#onOver();
  }

  #drop(): void {
    if (this.#joinable) return;
    const taken = Math.min(...this.#members.map(({ at }) => at)) - this.#dropped;
    if (taken <= 0 || taken === Number.POSITIVE_INFINITY) return;
    this.#pieces.splice(0, taken);
    this.#dropped += taken;
  }

  #end(): void {
    this.#ended = true;
    this.#close();
  }

  #tell(x: Exchange, joinedAt: number): void {
    const carrier = this.carrier!;
    tell(this.#path, carrier, x, joinedAt);
    // The engine's work is counted once, and charged to the first of them.
    x.tokensIn = this.#told ? 0 : carrier.tokensIn;
    x.tokensOut = this.#told ? 0 : carrier.tokensOut;
    if (this.#told) countRung(this.#path.deps.metrics, carrier);
    this.#told = true;
    if (x.isCarrier || !x.failure || x.outcome === 'ok' || x.outcome === 'degraded' || !isShed(x.failure))
      return;
    this.#path.deps.metrics.shed.of(x.route!.name, x.shedFor ?? x.failure.code).add();
  }

  #release(): void {
    this.#pieces = [];
    this.#path.deps.buffers.give(this.#accounted);
    this.#accounted = 0;
    this.close();
  }
}
