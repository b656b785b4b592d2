import { Registry } from 'prom-client';
import { settingsSchema } from '../../src/config/schema/index.ts';
import type { Evidence, Fact, LedgerEvent, RequestRecord } from '../../src/events/contracts.ts';
import { assembleGateway, type GatewayParts } from '../../src/gateway/assemble.ts';
import type { BufferBudget } from '../../src/gateway/buffer-budget.ts';
import type {
  Caller,
  FactSink,
  Flight,
  HeaderList,
  Transport,
  TransportError,
  UpstreamRequest,
  UpstreamSink,
} from '../../src/gateway/contracts.ts';
import { soleLeases } from '../../src/gateway/leases/sole.ts';
import type { Path } from '../../src/gateway/path.ts';
import type { EvidenceGatherer } from '../../src/gateway/release/evidence.ts';
import type { World } from '../../src/gateway/state/world.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { VirtualTime } from '../../src/kernel/virtual-time.ts';
import type { Observation, Snapshot } from '../../src/links/messages.ts';

/** A gateway worker without processes, sockets or a real clock: the path itself, whole, in virtual time. */

export class VirtualCaller implements Caller {
  readonly method: string;
  readonly target: string;
  readonly body: Buffer;
  readonly headers: Record<string, string>;
  onGone: (() => void) | undefined;
  onDrain: (() => void) | undefined;
  status: number | undefined;
  sent: HeaderList = [];
  text = '';
  ended = false;
  destroyed = false;
  readonly #closers: (() => void)[] = [];
  /** Answers `false` to writes, as a full socket does. */
  full = false;

  constructor(method: string, target: string, body: unknown, headers: Record<string, string> = {}) {
    this.method = method;
    this.target = target;
    this.body = Buffer.isBuffer(body)
      ? body
      : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    this.headers = headers;
  }

  header(name: string): string | undefined {
    return this.headers[name];
  }

  headerCount(name: string): number {
    return this.headers[name] === undefined ? 0 : 1;
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    if (this.status !== undefined) throw new Error('answered twice');
    this.status = status;
    this.sent = headers;
    this.text = body.toString();
    this.ended = true;
    this.#close();
  }

  open(status: number, headers: HeaderList): void {
    if (this.status !== undefined) throw new Error('answered twice');
    this.status = status;
    this.sent = headers;
  }

  write(piece: Buffer | string): boolean {
    if (this.ended) throw new Error('written after the end');
    this.text += piece.toString();
    return !this.full;
  }

  end(): void {
    this.ended = true;
    this.#close();
  }

  destroy(): void {
    this.destroyed = true;
    this.ended = true;
    this.#close();
  }

  whenClosed(run: () => void): void {
    this.#closers.push(run);
  }

  #close(): void {
    for (const run of this.#closers.splice(0)) run();
  }

  answerHeader(name: string): string | undefined {
    const at = this.sent.findIndex((each, i) => i % 2 === 0 && each === name);
    return at < 0 ? undefined : this.sent[at + 1];
  }

  leave(): void {
    this.onGone?.();
    this.#close();
  }
}

/** What a scripted engine does with one request. */
export interface Served {
  request: UpstreamRequest;
  sink: UpstreamSink;
  time: VirtualTime;
  /** The gateway broke it off. */
  aborted: boolean;
  paused: boolean;
}
export type Engine = (served: Served) => void;

const JSON_HEAD = { 'content-type': 'application/json' };
const SSE_HEAD = { 'content-type': 'text/event-stream' };

export function chatAnswer(text: string, afterMs = 10): Engine {
  return (served) => {
    served.time.set(afterMs, () => {
      if (served.aborted) return;
      served.sink.onHead(200, JSON_HEAD);
      served.sink.onData(
        Buffer.from(
          JSON.stringify({
            choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
            usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
          }),
        ),
      );
      served.sink.onEnd();
    });
  };
}

export function chatStream(words: string[], gapMs = 5): Engine {
  return ({ sink, time, ...served }) => {
    void served;
    const state = sinkState(sink);
    const chunk = (delta: object, finish: string | null = null) =>
      Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
    const pieces = [
      chunk({ role: 'assistant', content: '' }),
      ...words.map((word) => chunk({ content: word })),
      chunk({}, 'stop'),
      Buffer.from('data: [DONE]\n\n'),
    ];
    time.set(gapMs, () => !state.aborted() && sink.onHead(200, SSE_HEAD));
    for (const [at, piece] of pieces.entries()) {
      time.set(gapMs * (at + 1), () => !state.aborted() && sink.onData(piece));
    }
    time.set(gapMs * pieces.length, () => !state.aborted() && sink.onEnd());
  };
}

const served = new WeakMap<UpstreamSink, Served>();
function sinkState(sink: UpstreamSink): { aborted(): boolean } {
  return { aborted: () => served.get(sink)?.aborted ?? false };
}

export function failing(error: Partial<TransportError> = {}, afterMs = 1): Engine {
  return ({ sink, time }) => {
    const state = sinkState(sink);
    time.set(afterMs, () => {
      if (!state.aborted())
        sink.onError({ kind: 'refused', message: 'refused', unsent: true, stale: false, ...error });
    });
  };
}

export function status(
  code: number,
  body: unknown = { error: { message: `says ${code}` } },
  headers = {},
  afterMs = 1,
): Engine {
  return ({ sink, time }) => {
    const state = sinkState(sink);
    time.set(afterMs, () => {
      if (state.aborted()) return;
      sink.onHead(code, { ...JSON_HEAD, ...headers });
      sink.onData(Buffer.from(JSON.stringify(body)));
      if (!state.aborted()) sink.onEnd();
    });
  };
}

export const never: Engine = () => undefined;

class VirtualTransport implements Transport {
  readonly #serve: (served: Served) => void;
  readonly #time: VirtualTime;
  constructor(serve: (served: Served) => void, time: VirtualTime) {
    this.#serve = serve;
    this.#time = time;
  }
  send(request: UpstreamRequest, sink: UpstreamSink): Flight {
    const state: Served = { request, sink, time: this.#time, aborted: false, paused: false };
    served.set(sink, state);
    this.#serve(state);
    return {
      abort: () => {
        state.aborted = true;
      },
      pause: () => {
        state.paused = true;
      },
      resume: () => {
        state.paused = false;
      },
    };
  }
  close(): void {}
}

export class VirtualGateway {
  readonly time = new VirtualTime();
  readonly registry = new Registry();
  readonly facts: Fact[] = [];
  /** What was observed of routes that are watched for drift. */
  readonly observations: Observation[] = [];
  readonly leases = soleLeases();
  readonly buffers: BufferBudget;
  readonly world: World;
  readonly path: Path;
  readonly gatherer: EvidenceGatherer;
  /** By origin; may be changed at any time. */
  readonly engines = new Map<string, Engine>();
  readonly served: Served[] = [];
  #number = 0;

  /** `sinkOf`: where facts go instead of `facts`. `tokenizersOf`: what makes tokens. `statefulOf`: what keeps state. */
  constructor(
    config: unknown,
    seed = 1,
    sinkOf?: (time: VirtualTime) => FactSink,
    tokenizersOf?: (time: VirtualTime) => GatewayParts['tokenizers'],
    statefulOf?: (time: VirtualTime) => GatewayParts['stateful'],
  ) {
    const random = seededRandom(seed);
    const sink = sinkOf?.(this.time) ?? {
      push: (fact: Fact) => void this.facts.push(fact),
      wantsRecord: () => true,
      waiting: 0,
    };
    const { time, leases, registry } = this;
    const { world, path, buffers, evidence } = assembleGateway({
      clock: time,
      random,
      timers: time,
      leases,
      facts: sink,
      observations: { push: (observation) => void this.observations.push(observation) },
      openTransport: (origin) =>
        new VirtualTransport((state) => {
          this.served.push(state);
          state.sink.onSent();
          (this.engines.get(origin) ?? never)(state);
        }, time),
      registry,
      version: '0.0.0',
      tokenizers: tokenizersOf?.(time),
      stateful: statefulOf?.(time),
    });
    this.world = world;
    this.path = path;
    this.buffers = buffers;
    this.gatherer = evidence;
    this.load(config);
  }

  /** `hosted`: where hosts of ours serve, by backend. `releases`: those under way, by route. */
  load(config: unknown, hosted: Record<string, string[]> = {}, releases?: Snapshot['releases']): void {
    const settings = settingsSchema.parse(config);
    const endpoints = Object.fromEntries(
      Object.entries(settings.backends).map(([name, backend]) => [
        name,
        'endpoints' in backend ? backend.endpoints : (hosted[name] ?? []),
      ]),
    );
    const keys = Object.entries(settings.tenants ?? {}).flatMap(([tenant, { keys }]) =>
      keys.map(({ hash }) => ({ id: hash, tenant, hash })),
    );
    const number = ++this.#number;
    const snapshot: Snapshot = { number, event: `ev_${number}`, settings, keys, endpoints };
    this.world.swap(releases ? { ...snapshot, releases } : snapshot);
  }

  send(method: string, target: string, body: unknown, headers?: Record<string, string>): VirtualCaller {
    const caller = new VirtualCaller(method, target, body, headers);
    this.path.handle(caller);
    return caller;
  }

  chat(more: object = {}, headers?: Record<string, string>): VirtualCaller {
    const body = { model: 'chat', messages: [{ role: 'user', content: 'Hi' }], ...more };
    return this.send('POST', '/v1/chat/completions', body, headers);
  }

  get records(): RequestRecord[] {
    return this.facts.flatMap((fact) => (fact.kind === 'request' ? [fact.record] : []));
  }

  /** What was told beside requests; of one type, or all. */
  events(type?: string): LedgerEvent[] {
    return this.facts.flatMap((fact) =>
      fact.kind === 'event' && (type === undefined || fact.event.type === type) ? [fact.event] : [],
    );
  }

  /** What was told of routes under release. */
  get evidence(): Evidence[] {
    return this.facts.flatMap((fact) => (fact.kind === 'evidence' ? [fact.evidence] : []));
  }

  /** What is still taken, when nothing should be. */
  get taken(): { running: number; slots: number; waiting: number; bytes: number } {
    let waiting = 0;
    for (const route of this.world.routes.values()) waiting += route.waiting.count;
    for (const backend of this.world.backends.values()) waiting += backend.line.length;
    let slots = 0;
    for (const endpoint of this.world.endpoints.values()) slots += endpoint.inflight;
    return { running: this.path.running.size, slots, waiting, bytes: this.buffers.held };
  }
}

export const NOTHING = { running: 0, slots: 0, waiting: 0, bytes: 0 };
