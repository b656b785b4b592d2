import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { TimerHandle, Timers } from '../../kernel/timers.ts';
import { oipPath } from '../../protocols/oip/paths.ts';
import { type OutputCap, rewriteOpenaiBody } from '../../protocols/openai/request.ts';
import type { Call } from '../call.ts';
import type { Flight, TransportError, UpstreamHeaders, UpstreamRequest, UpstreamSink } from '../contracts.ts';
import { serviceKind, serviceSize, weightOf } from '../cost.ts';
import type { Exchange } from '../exchange.ts';
import type { Relay, RelayHost } from '../relay/contracts.ts';
import { StreamRelay } from '../relay/stream.ts';
import { WholeRelay } from '../relay/whole.ts';
import type { Endpoint } from '../state/endpoint.ts';
import type { Backend } from '../state/world.ts';
import { ErrorAnswer } from './error-answer.ts';
import { fittedFor } from './fitting.ts';
import { isEncoded, upstreamHeaders } from './headers.ts';
import { type AttemptFailure, fromStatus, fromTimeout, fromTransport } from './outcome.ts';

/** How long the words of an engine's error answer may take to come. */
const ERROR_MS_MAX = 1_000;
/** How long an engine may take to close its side of an answer that is whole. */
const LINGER_MS = 1_000;

export interface AttemptOptions {
  x: Exchange;
  backend: Backend;
  endpoint: Endpoint;
  /** On a connection that never carried a request. */
  fresh: boolean;
  /** It decides whether a fenced endpoint is well again. */
  trial: boolean;
  host: AttemptHost;
  deps: { clock: Clock; timers: Timers; random: Random };
}

/** Whom an attempt tells how it goes, besides what its relay does. */
export interface AttemptHost extends RelayHost {
  /** The body of a stream has begun, and nothing is committed yet. */
  begun(): void;
  /** The endpoint's side is over, once: its place can be given back. */
  over(attempt: Attempt): void;
}

/** One try at one endpoint: the request goes out, the answer goes to a relay, time limits are kept. */
export class Attempt implements UpstreamSink {
  readonly backend: Backend;
  readonly endpoint: Endpoint;
  readonly trial: boolean;
  /** Which of its request's attempts it is, from 1. */
  readonly number: number;
  readonly startedAt: number;
  /** Tokens that it holds of the endpoint's place; and what was there when it was sent, itself included. */
  readonly tokens: number;
  readonly tokensInFlight: number;
  readonly inflight: number;
  /** Others waited for a place there when it was sent. */
  readonly contested: boolean;
  /** When the first content came. */
  firstContentAt: number | undefined;
  readonly #x: Exchange;
  readonly #host: AttemptHost;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #request: UpstreamRequest;
  #flight: Flight | undefined;
  #relay: Relay | undefined;
  #error: ErrorAnswer | undefined;
  /** When the last piece came; the start before that. */
  #lastAt: number;
  #bodyBegun = false;
  #paused = false;
  #lingers = false;
  #graceTimer: TimerHandle;
  over = false;

  constructor(options: AttemptOptions) {
    this.backend = options.backend;
    this.endpoint = options.endpoint;
    this.trial = options.trial;
    this.number = options.x.attempts;
    this.#x = options.x;
    this.#host = options.host;
    this.#clock = options.deps.clock;
    this.#timers = options.deps.timers;
    this.tokens = weightOf(options.x.cost);
    this.tokensInFlight = options.endpoint.tokensInFlight;
    this.inflight = options.endpoint.inflight;
    this.contested = options.backend.line.length > 0;
    this.startedAt = this.#lastAt = this.#clock.mono();
    this.#request = upstreamRequest(options);
  }

  start(): void {
    this.#flight = this.endpoint.transport.send(this.#request, this);
  }

  /** Monotonic moment at which this attempt must be looked at again. */
  get dueAt(): number {
    const { firstByte, idle, total } = this.backend.settings.timeouts;
    const end = this.startedAt + total;
    if (!this.#x.call!.stream) return end;
    return Math.min(end, this.#bodyBegun ? this.#lastAt + idle : this.startedAt + firstByte);
  }

  /** Ends the attempt if one of its time limits has passed. */
  checkTime(now: number): void {
    if (this.over) return;
    const { firstByte, idle, total } = this.backend.settings.timeouts;
    const name = this.backend.name;
    if (now - this.startedAt >= total) this.#breakOff(fromTimeout('total', total, name));
    else if (!this.#x.call!.stream) return;
    else if (!this.#bodyBegun && now - this.startedAt >= firstByte)
      this.#breakOff(fromTimeout('firstByte', firstByte, name));
    else if (this.#paused)
      this.#lastAt = now; // it is the caller who does not read
    else if (this.#bodyBegun && now - this.#lastAt >= idle) this.#breakOff(fromTimeout('idle', idle, name));
  }

  /** The caller left, or the answer is not wanted any more: the engine's work is cancelled at once. */
  cancel(): void {
    if (this.over || this.#lingers) return;
    if (this.#x.over) this.#relay?.onLeft?.();
    this.#flight?.abort();
    this.#close('abandoned');
  }

  /**
   * The answer is whole, and the caller has it. The engine may close its side in peace, so that the connection can be used
   * again; one that does not within a while is broken off.
   */
  linger(): void {
    if (this.over) return;
    this.#lingers = true;
    this.#countTime(this.#clock.mono()); // of the request's time this is over: it is settled now
    this.#graceTimer = this.#timers.set(LINGER_MS, () => {
      this.#flight?.abort();
      this.#close('success');
    });
  }

  pause(): void {
    this.#paused = true;
    this.#flight?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#lastAt = this.#clock.mono();
    this.#flight?.resume();
  }

  onSent(): void {}

  onHead(status: number, headers: UpstreamHeaders): void {
    const { call } = this.#x;
    if (status < 200 || status > 299) {
      this.#error = new ErrorAnswer(status, headers);
      this.#graceTimer = this.#timers.set(ERROR_MS_MAX, () => this.#hangUp());
      return;
    }
    const streamed = call!.stream && isEventStream(headers) && !isEncoded(headers);
    if (streamed) {
      const request = call!.protocol === 'openai' ? call!.request : undefined;
      this.#relay = new StreamRelay(this.#host, headers, this.backend.name, {
        hideUsage: request?.usageAsked !== true,
        severalChoices: request?.severalChoices === true,
      });
    } else this.#relay = new WholeRelay(this.#host, headers, this.backend.name, isJson(call!, headers));
  }

  onData(piece: Buffer): void {
    this.#lastAt = this.#clock.mono();
    const first = !this.#bodyBegun;
    this.#bodyBegun = true;
    if (!this.#error) this.#relay!.onData(piece);
    else if (!this.#error.add(piece)) this.#hangUp();
    if (first && this.#x.call!.stream && !this.#x.committed) this.#host.begun(); // other limits rule from here on
  }

  onEnd(): void {
    if (this.#error) this.#refused(this.#error);
    else {
      const failure = this.#relay!.judge();
      this.#close(failure ? 'failure' : 'success');
      if (failure) this.#relay!.onBroken(failure);
      else this.#relay!.onEnd();
    }
  }

  onError(error: TransportError): void {
    if (this.over) return;
    if (this.#lingers) {
      this.#close('success');
      return;
    }
    const failure = fromTransport(error, this.backend.name);
    if (this.#error) {
      this.#refused(this.#error);
      return;
    }
    this.#close(failure.counts ? 'failure' : 'abandoned');
    if (this.#relay) this.#relay.onBroken(failure);
    else this.#host.failed(failure);
  }

  /** The relay found the answer to be none: nothing more is read of it. */
  giveUp(failure: AttemptFailure): void {
    if (this.over) return;
    this.#flight?.abort();
    this.#close(failure.counts ? 'failure' : 'abandoned');
  }

  /** Enough of an error answer has come: its status says what matters, and nobody waits for the rest. */
  #hangUp(): void {
    if (this.over) return;
    this.#flight?.abort();
    this.#refused(this.#error!);
  }

  #refused(error: ErrorAnswer): void {
    const wallMs = this.#clock.wall();
    const { headers, body } = error.read();
    const failure = fromStatus(error.status, headers, body, this.backend.name, this.backend.dialect, wallMs);
    if (failure.coolMs !== undefined) this.endpoint.cool(failure.coolMs, this.#clock.mono());
    this.#close(failure.counts ? 'failure' : failure.kept ? 'success' : 'abandoned');
    this.#host.failed(failure);
  }

  #breakOff(failure: AttemptFailure): void {
    this.#flight?.abort();
    this.#close('failure');
    if (this.#relay) this.#relay.onBroken(failure);
    else this.#host.failed(failure);
  }

  #countTime(now: number): void {
    this.#x.upstreamMs += now - this.startedAt;
  }

  #close(kind: 'success' | 'failure' | 'abandoned'): void {
    if (this.over) return;
    this.over = true;
    this.#timers.clear(this.#graceTimer);
    const now = this.#clock.mono();
    if (!this.#lingers) this.#countTime(now);
    this.endpoint.observe({ kind, trial: this.trial }, now);
    if (kind !== 'success' && this.firstContentAt === undefined) {
      const { call, cost, route } = this.#x;
      this.endpoint.cutOff(this, call!.stream, route!.settings.deadline, now);
      const { service } = this.backend.line;
      service.atLeast(serviceKind(call!), serviceSize(call!, cost), now - this.startedAt, now);
    }
    this.#host.over(this);
  }
}

/** Whether the answer has to be a JSON object: all are, save raw tensors and a readiness that has no body. */
function isJson(call: Call, headers: UpstreamHeaders): boolean {
  if (call.protocol === 'openai') return true;
  return call.kind !== 'model-ready' && headers['inference-header-content-length'] === undefined;
}

/** What the engine knows the longest answer by. */
function capOf(call: Call, { dialect }: Backend): OutputCap {
  return call.kind === 'chat' ? (dialect.chatCap ?? 'max_tokens') : 'max_tokens';
}

function isEventStream(headers: UpstreamHeaders): boolean {
  const type = headers['content-type'];
  return typeof type === 'string' && type.toLowerCase().startsWith('text/event-stream');
}

function upstreamRequest({ x, backend, endpoint, fresh, deps }: AttemptOptions): UpstreamRequest {
  const call = x.call!;
  const headers = upstreamHeaders(x, backend, deps.random);
  if (call.protocol === 'openai') {
    const fitted = fittedFor(x, backend);
    return {
      method: 'POST',
      path: endpoint.basePath + call.path,
      headers,
      body: rewriteOpenaiBody(fitted?.body ?? x.caller.body, fitted?.request ?? call.request, {
        model: backend.model,
        addUsage: call.kind !== 'embeddings' && backend.dialect.streamUsage,
        output:
          x.outputTokensMax === undefined
            ? undefined
            : { tokensMax: x.outputTokensMax, name: capOf(call, backend) },
      }),
      fresh,
    };
  }
  // A host of our own has both protocols below one address, OpenAI's with /v1.
  const base =
    backend.dialect.protocol === 'openai' ? endpoint.basePath.replace(/\/v1$/, '') : endpoint.basePath;
  return {
    method: call.kind === 'infer' ? 'POST' : 'GET',
    path: base + oipPath(call.kind, backend.model, call.version),
    headers,
    body: call.kind === 'infer' ? x.caller.body : undefined,
    fresh,
  };
}
