import type { Readable } from 'node:stream';
import type { CompareSettings } from '../config/schema/index.ts';
import type { Fact } from '../events/contracts.ts';
import type { Failure } from '../kernel/errors.ts';
import type { Priority } from '../kernel/priorities.ts';
import type { OpenaiRequest } from '../protocols/openai/request.ts';
import type { Exchange } from './exchange.ts';
import type { Path } from './path.ts';
import type { Endpoint } from './state/endpoint.ts';
import type { Backend, Route } from './state/world.ts';

export { type Call, isCompressed, isGet, type OipModelCall, type OpenaiCall } from './call.ts';
export { headerOf, isStream, sharedHeaders, without } from './carrier.ts';
export { breakOff } from './delivery.ts';
export type { Exchange } from './exchange.ts';
export { mayCall } from './identify.ts';
export { JSON_TYPE, type OwnAnswer, STREAM_TYPE } from './own-answers.ts';
export type { Path } from './path.ts';
export { sessionMove } from './record/session-moves.ts';
export type { Endpoint } from './state/endpoint.ts';
export type { Backend, Route } from './state/world.ts';

/** What the path needs from outside, so that one test (and the simulator) can run all of it in virtual time. */

/** name, value, name, value, ... Whoever is given one may add to it. */
export type HeaderList = string[];

/** Headers of an engine's answer, names in lower case. */
export type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The caller's side of one request. The listener makes one of a node:http exchange; tests make their own. */
export interface Caller {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  header(name: string): string | undefined;
  /** Values of a header that was sent more than once count; 0 when absent. */
  headerCount(name: string): number;
  readonly body: Buffer;
  /** A body that is not read whole, but as it comes: that of an upload, whose `body` is empty. */
  readonly incoming?: Readable | undefined;
  /** Of a request that the gateway makes itself: for whom, and under which terms. */
  readonly terms?: InnerTerms | undefined;
  /** A whole answer. */
  respond(status: number, headers: HeaderList, body: Buffer | string): void;
  /** The head of an answer whose body comes in pieces; sent together with the first piece. */
  open(status: number, headers: HeaderList): void;
  /** False when the caller's socket is full: write no more until `onDrain`. */
  write(piece: Buffer | string): boolean;
  end(): void;
  /** Breaks the connection off, so that an answer cut short is seen to be so. */
  destroy(): void;
  /** Runs when the exchange is over on the wire as well: answered and taken, or broken off. */
  whenClosed(run: () => void): void;
  /** The caller left before its answer was whole. */
  onGone: (() => void) | undefined;
  onDrain: (() => void) | undefined;
}

export interface UpstreamRequest {
  method: string;
  path: string;
  headers: string[];
  body: Buffer | string | undefined;
  /** Uses a connection that never carried a request before. */
  fresh: boolean;
}

export interface TransportError {
  kind: 'refused' | 'connect-timeout' | 'reset' | 'protocol' | 'tls' | 'closed';
  message: string;
  /** Nothing of the request reached the engine. */
  unsent: boolean;
  /** The connection had carried a request before, and was gone soon after this one had left: not one byte of an answer came. */
  stale: boolean;
}

/** One request on its way. */
export interface Flight {
  /** Breaks it off: the engine's socket is closed at once. No sink call follows. */
  abort(): void;
  pause(): void;
  resume(): void;
}

export interface UpstreamSink {
  /** The request has been written to a connection. */
  onSent(): void;
  onHead(status: number, headers: UpstreamHeaders): void;
  onData(piece: Buffer): void;
  onEnd(): void;
  onError(error: TransportError): void;
}

/** Connections to one endpoint. */
export interface Transport {
  send(request: UpstreamRequest, sink: UpstreamSink): Flight;
  close(): void;
}

export interface TransportSettings {
  connectMs: number;
  /** PEM texts; `unreadable` names a file of them that could not be read. */
  tls:
    | {
        ca: string | undefined;
        cert: string | undefined;
        key: string | undefined;
        serverName: string | undefined;
        unreadable?: string | undefined;
      }
    | undefined;
}

/** Opens connections to the origin of an endpoint, such as `http://10.0.0.5:8000`. */
export type OpenTransport = (origin: string, settings: TransportSettings) => Transport;

/**
 * Units of a limit that this worker may use now. With one worker that is the whole limit; with several they are leased
 * from control, so that all workers together never hold more than there are.
 */
export interface Leases {
  /** Says that the limit of `key` is `total` for all workers together. */
  declare(key: string, total: number): void;
  forget(key: string): void;
  /** Takes a unit; false when none is free here. `waiting` is how many wait for one, this one included; they are asked for. */
  take(key: string, waiting: number): boolean;
  /** Says how many wait for a unit where none was tried to be taken. */
  want(key: string, waiting: number): void;
  give(key: string): void;
  used(key: string): number;
  /** Units held here, used or not. */
  held(key: string): number;
  /** Called when units of `key` have come free that could not be taken before. */
  onFree: ((key: string) => void) | undefined;
}

/** Hears what a request's caller is given, without changing it: for what is kept of an answer, or shared with others. */
export interface AnswerListener {
  /** A whole document. */
  whole(status: number, headers: UpstreamHeaders, body: Buffer): void;
  /** A piece of a stream, or of a document too long to be held. */
  piece(bytes: Buffer | string): void;
  /** The answer that came in pieces is whole. */
  done(): void;
}

/** What one answered attempt took: what limits, predictions and choices learn from. */
export interface ServedSample {
  /** Set for a stream: from sending to its first content, milliseconds. */
  firstTokenMs: number | undefined;
  /** From sending to the end, milliseconds. */
  totalMs: number;
  /** As the engine counted them, or as they were reckoned where it did not. */
  tokensIn: number;
  tokensOut: number;
  /** What was asked: classes of requests are not compared with one another. */
  kind: 'chat' | 'completions' | 'embeddings' | 'tensors';
}

/** How a request ended, as far as its record is concerned. */
export interface EndedRequest {
  id: string;
  wallMs: number;
  route: string;
  tenant: string;
  /** Outcome, and the code of the error where there is one. */
  reason: string;
}

/** Where facts go; never waits, never fails. */
export interface FactSink {
  push(fact: Fact): void;
  /**
   * Whether a request that ended so gets a full record, within the rate of them. Where not, it has been counted into
   * the group of its second, and nothing more is to be done.
   */
  wantsRecord(ended: EndedRequest): boolean;
  /** Facts that wait to be stored. */
  readonly waiting: number;
}

/** What a request that the gateway makes itself goes by, for a tenant that is known already. */
export interface InnerTerms {
  tenant: string;
  /**
   * A `request` is charged, counted and recorded as if the tenant had sent it. A `stage` is charged its tokens alone, and told
   * in the record of the pipeline that it belongs to, whose id it goes by. `nothing`: Armature asks for its own ends, of
   * whatever route; nobody is charged, and it is neither counted as a request nor recorded.
   */
  charged: 'request' | 'stage' | 'nothing';
  priority: Priority;
  /** Monotonic: it is due by then, whatever its route's own deadline; undefined: that deadline holds. */
  deadlineAt: number | undefined;
  /** Whether a rung below a full answer may answer it. */
  ladder: boolean;
  /** Whether a chat is made to fit each backend that it is sent to; see docs/context.md. Default: as its route says. */
  fit?: boolean | undefined;
  /** What keeps it with others, the tenant's name in front; undefined where nothing does. */
  session: string | undefined;
  /** The ids of the request that it is made for; it has its own where there is none. */
  ids?: { id: string; requestId: string } | undefined;
  traceparent?: Exchange['traceparent'];
  /** Of a stage: where its route is looked for that the present snapshot does not have any more. */
  routes?: ReadonlyMap<string, Route> | undefined;
  /** Called once, when it is over, however it ended: its answer has been given by then. */
  onOver?: ((x: Exchange) => void) | undefined;
}

export interface InnerRequest {
  /** As a caller would send it, such as `/v1/chat/completions`. */
  target: string;
  body: Buffer;
  /** Names in lower case. */
  headers?: Readonly<Record<string, string>>;
  terms: InnerTerms;
}

/** Takes the answer to a request of the gateway's own: `whole`, or `open` and then pieces until `end` or `broken`. */
export interface InnerSink {
  whole(status: number, headers: HeaderList, body: Buffer): void;
  /** The commit point: a stream, or a document too long to be held, by its content-type. */
  open(status: number, headers: HeaderList): void;
  /** False: write no more until `resume` was called. */
  piece(bytes: Buffer | string): boolean;
  end(): void;
  /** The document will not be whole. A stream that fails says so in an event, and ends. */
  broken(): void;
}

/** A request of the gateway's own, on its way. */
export interface InnerAsk {
  /** Nobody wants the answer any more: everything done for it ends at once. */
  leave(): void;
  resume(): void;
}

/** What is sent to one backend instead of the caller's own body, made of the same transcript. */
export interface FittedBody {
  backend: string;
  /** The backend's settings that it was made for. */
  settings: Backend['settings'];
  body: Buffer;
  /** `body`, read. */
  request: OpenaiRequest;
  /** Tokens of the prompt, where they were counted exactly. */
  tokensIn: number | undefined;
}

/** Makes what is sent of a transcript fit the backend that it is sent to. */
export interface ContextFitter {
  /**
   * Calls back once, at once or later, with what is to be sent, or with why nothing can be. Not at all once the returned
   * function was called, which gives it up.
   */
  fit(
    path: Path,
    x: Exchange,
    backend: Backend,
    endpoint: Endpoint,
    done: (result: FittedBody | Failure) => void,
    /** Gives the place at the endpoint back, for work that takes places itself; it is planned anew when this is done. */
    yieldPlace: () => void,
  ): () => void;
}

/** Runs the stages of pipelines; one of them is asked like a route. */
export interface PipelineRunner {
  /** The request is admitted, its route is a pipeline's. Answers it, or refuses it. */
  run(path: Path, x: Exchange): void;
}

/** One of two answers to the same request, whole. */
export interface HeardAnswer {
  /** A document, or all of a stream's events. */
  body: Buffer;
  streamed: boolean;
  /** Bytes of JSON before raw tensors, where there are such. */
  jsonBytes: string | undefined;
}

/** What a copy was answered, and what the caller got. */
export interface AnswerPair {
  x: Exchange;
  settings: CompareSettings;
  caller: HeardAnswer;
  copy: HeardAnswer;
}

/** What came of a comparison; `difference` is how much worse the copy's answer is, from -1 to 1. */
export type Compared = { difference: number } | { skipped: string };

/** Holds the answers of copies against those of callers. */
export interface AnswerComparer {
  /**
   * Calls back once, at once or later; not at all once the returned function was called, which gives it up. Never throws,
   * whatever the answers are.
   */
  compare(path: Path, pair: AnswerPair, done: (compared: Compared) => void): () => void;
}

/** The endpoints whose meaning is stored state: responses, conversations, files, batches. */
export interface StatefulEndpoints {
  /** Called once, before any other: the path by which it asks for what it does by itself. */
  start(path: Path): void;
  /** A call of a tenant that is known. Answers it through the path, at once or later. */
  take(path: Path, x: Exchange): void;
  /** A drain begins: no work of its own is begun any more. */
  drain(): void;
  /** How many batches are not over, by status, as far as is known here. */
  readonly batches: Readonly<Record<string, number>>;
  /** Resolves when what it holds is stored. */
  close(): Promise<void>;
}
