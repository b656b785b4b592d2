import type {
  Flight,
  Transport,
  TransportError,
  UpstreamRequest,
  UpstreamSink,
} from '../gateway/contracts.ts';
import type { Clock } from '../kernel/clock.ts';
import { type Random, seededRandom } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import type { GaugeReading } from '../links/messages.ts';
import { Accelerator, type JobSink, type RunningJob } from './accelerator/accelerator.ts';
import type { AcceleratorProfile } from './accelerator/step.ts';
import { type Order, readChatOrder, readEmbeddingsOrder } from './bodies.ts';

/** What ails an endpoint. `slow` is a factor of every step's time. */
export type Ailment =
  | { kind: 'refusing' }
  | { kind: 'answers'; status: number; retryAfterSeconds?: number }
  /** Takes requests and never says a word. */
  | { kind: 'silent' }
  | { kind: 'slow'; times: number };

/** Silence after which a stream that goes on is heard of again, milliseconds: shorter than any sensible `timeouts.idle`. */
const SIGN_OF_LIFE_MS = 2000;
/** The head of each is made once: nothing changes them. */
const JSON_HEAD = { 'content-type': 'application/json' };
const STREAM_HEAD = { 'content-type': 'text/event-stream' };
const FIRST = Buffer.from(
  'data: {"id":"sim","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"the"},"finish_reason":null}]}\n\n',
);
const MORE = Buffer.from(
  'data: {"id":"sim","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" and"},"finish_reason":null}]}\n\n',
);

/**
 * One address in virtual time: a simulated accelerator behind the transport's contract. A stream is told by its first
 * token, a sign of life now and then, and its end; the times are those of the accelerator, token by token.
 */
export class SimulatedEngine implements Transport {
  /** Requests that came here, whatever became of them; those whose connection was refused are not among them. */
  requests = 0;
  ailment: Ailment | undefined;
  readonly #profile: AcceleratorProfile;
  readonly #time: Clock & Timers;
  readonly #random: Random;
  readonly #flights = new Set<SimulatedFlight>();
  #accelerator: Accelerator;
  #signsOfLife = false;

  constructor(profile: AcceleratorProfile, time: Clock & Timers, random: Random) {
    this.#profile = profile;
    this.#time = time;
    this.#random = seededRandom(random.next() * 2 ** 32);
    this.#accelerator = this.#start(profile.coldStart);
  }

  get accelerator(): Accelerator {
    return this.#accelerator;
  }

  /** Requests that are here now. */
  get inflight(): number {
    return this.#flights.size;
  }

  /** Falls ill, or gets well with `undefined`. */
  ails(ailment: Ailment | undefined): void {
    this.ailment = ailment;
    this.#accelerator.pace = ailment?.kind === 'slow' ? ailment.times : 1;
  }

  /** Cuts every connection. */
  cut(): void {
    for (const flight of [...this.#flights])
      flight.fail({ kind: 'reset', message: 'the connection was reset' });
  }

  /** The process dies: connections break, nothing answers until it has started again after `downMs`. */
  restart(downMs: number): void {
    this.#accelerator.close();
    this.#accelerator = this.#start(downMs);
    this.ails({ kind: 'refusing' });
    this.cut();
    this.#time.set(downMs, () => this.ails(undefined));
  }

  /** What it tells of its load; undefined where it does not answer. */
  gauges(): GaugeReading | undefined {
    const { ailment } = this;
    if (ailment && ailment.kind !== 'slow') return undefined;
    const { waiting, running, kvTokens } = this.#accelerator.load();
    return { waiting, running, cacheUsed: kvTokens / this.#profile.kvTokensMax };
  }

  #start(coldStart: number): Accelerator {
    return new Accelerator({ ...this.#profile, coldStart }, this.#time, this.#time, this.#random);
  }

  send(request: UpstreamRequest, sink: UpstreamSink): Flight {
    const flight = new SimulatedFlight(sink, this.#flights, this.#time);
    const { ailment } = this;
    if (ailment?.kind !== 'refusing') {
      this.requests++;
      sink.onSent();
    }
    if (ailment?.kind === 'refusing') {
      flight.soon(() => flight.fail({ kind: 'refused', message: 'connection refused', unsent: true }));
    } else if (ailment?.kind === 'answers') {
      flight.soon(() => flight.refuse(ailment.status, 'it is not well', ailment.retryAfterSeconds));
    } else if (ailment?.kind !== 'silent') this.#serve(request, flight);
    return flight;
  }

  close(): void {}

  #serve(request: UpstreamRequest, flight: SimulatedFlight): void {
    const embeds = request.path.endsWith('/embeddings');
    const order = (embeds ? readEmbeddingsOrder : readChatOrder)(request.body as Buffer);
    flight.order = order;
    if (!order.jobs.every((job) => this.#accelerator.fits(job))) {
      flight.soon(() => flight.refuse(400, 'the request is longer than the context'));
      return;
    }
    flight.left = order.jobs.length;
    for (const job of order.jobs) {
      const running = this.#accelerator.submit(job, flight);
      if (!running) {
        flight.soon(() => flight.refuse(503, 'too many requests wait already', 1));
        return;
      }
      flight.jobs.push(running);
    }
    if (order.stream && !this.#signsOfLife) this.#giveSignsOfLife();
  }

  /** One timer for all streams, as long as there are any. */
  #giveSignsOfLife(): void {
    this.#signsOfLife = this.#flights.size > 0;
    if (!this.#signsOfLife) return;
    this.#time.set(SIGN_OF_LIFE_MS, () => {
      const before = this.#time.mono() - SIGN_OF_LIFE_MS;
      for (const flight of [...this.#flights]) flight.signOfLife(before);
      this.#giveSignsOfLife();
    });
  }
}

/** One request at a simulated engine. */
class SimulatedFlight implements Flight, JobSink {
  readonly firstOnly = true;
  readonly jobs: RunningJob[] = [];
  order: Order | undefined;
  /** Jobs that are not over. */
  left = 0;
  #firstAt: number | undefined;
  #over = false;
  readonly #sink: UpstreamSink;
  readonly #flights: Set<SimulatedFlight>;
  readonly #time: Clock & Timers;

  constructor(sink: UpstreamSink, flights: Set<SimulatedFlight>, time: Clock & Timers) {
    this.#sink = sink;
    this.#flights = flights;
    this.#time = time;
    flights.add(this);
  }

  onToken(): void {
    this.#firstAt = this.#time.mono();
    if (!this.order!.stream) return;
    this.#sink.onHead(200, STREAM_HEAD);
    if (!this.#over) this.#sink.onData(FIRST);
  }

  onEnd(): void {
    if (this.#over || --this.left > 0) return;
    const order = this.order!;
    this.#close();
    if (order.stream) {
      this.#sink.onData(lastWords(order));
      this.#sink.onEnd();
      return;
    }
    this.#sink.onHead(200, JSON_HEAD);
    this.#sink.onData(document(order));
    this.#sink.onEnd();
  }

  onFault(fault: 'error' | 'reset'): void {
    if (fault === 'error') this.refuse(500, 'the simulated accelerator failed, as its profile asks');
    else this.fail({ kind: 'reset', message: 'the connection was reset' });
  }

  /** Something that happens to it at once, but not within the call that sent it. */
  soon(run: () => void): void {
    this.#time.set(0, () => {
      if (!this.#over) run();
    });
  }

  fail(error: Pick<TransportError, 'kind' | 'message'> & { unsent?: boolean }): void {
    if (this.#over) return;
    this.abort();
    this.#sink.onError({ unsent: false, stale: false, ...error });
  }

  refuse(status: number, message: string, retryAfterSeconds?: number): void {
    if (this.#over) return;
    this.abort();
    const after = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
    this.#sink.onHead(status, { ...JSON_HEAD, ...after });
    this.#sink.onData(Buffer.from(JSON.stringify({ error: { message, type: 'api_error', code: null } })));
    this.#sink.onEnd();
  }

  signOfLife(before: number): void {
    if (!this.#over && this.#firstAt !== undefined && this.#firstAt <= before && this.order!.stream)
      this.#sink.onData(MORE);
  }

  abort(): void {
    if (this.#over) return;
    this.#close();
    for (const job of this.jobs) job.cancel();
  }

  pause(): void {}
  resume(): void {}

  #close(): void {
    this.#over = true;
    this.#flights.delete(this);
  }
}

function usageOf({ jobs }: Order): string {
  let promptTokens = 0;
  let outputTokens = 0;
  for (const job of jobs) {
    promptTokens += job.promptTokens;
    outputTokens += job.outputTokens;
  }
  const total = promptTokens + outputTokens;
  return `"usage":{"prompt_tokens":${promptTokens},"completion_tokens":${outputTokens},"total_tokens":${total}}`;
}

/** The finish, the usage where it was asked for, and the mark of the end. */
function lastWords(order: Order): Buffer {
  const usage = order.includeUsage
    ? `data: {"id":"sim","object":"chat.completion.chunk","choices":[],${usageOf(order)}}\n\n`
    : '';
  return Buffer.from(
    `data: {"id":"sim","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n${usage}data: [DONE]\n\n`,
    'latin1',
  );
}

function document(order: Order): Buffer {
  const { jobs } = order;
  if (jobs[0]!.outputTokens === 0) {
    const data = jobs.map((_, index) => `{"object":"embedding","index":${index},"embedding":[1]}`);
    return Buffer.from(`{"object":"list","data":[${data}],"model":"sim",${usageOf(order)}}`, 'latin1');
  }
  return Buffer.from(
    `{"id":"sim","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"the"},"finish_reason":"stop"}],${usageOf(order)}}`,
    'latin1',
  );
}
