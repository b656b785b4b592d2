import {
  type Caller,
  type Exchange,
  type HeaderList,
  type InnerTerms,
  isStream,
  JSON_TYPE,
  STREAM_TYPE,
  without,
} from '../../gateway/contracts.ts';
import { ERRORS, type Failure } from '../../kernel/errors.ts';
import { isObject, type Json, parsedObject } from '../../protocols/json-object.ts';
import { answerStream } from '../../protocols/openai/answer-stream.ts';
import { openaiErrorBody } from '../../protocols/openai/errors.ts';
import { EventSplitter } from '../../protocols/openai/event-splitter.ts';
import { eventData } from '../../protocols/openai/events.ts';
import { incompleteFor, type ResponseEnd, responseObject, usageOf } from './object.ts';
import { Output } from './output.ts';
import type { Turn } from './turn.ts';

/** The longest answer in one document. */
const DOCUMENT_BYTES_MAX = 32 * 1024 * 1024;

/** An engine that has nothing to say yet keeps its stream alive: so does this one. */
const HEARTBEAT = ': alive\n\n';

/**
 * Stands between the path, which answers a chat, and the caller, who asked for a response. What is answered is kept before its
 * end is told.
 */
export class ResponseCaller implements Caller {
  readonly method = 'POST';
  readonly target: string;
  /** The chat that is asked of an engine. */
  readonly body: Buffer;
  onGone: (() => void) | undefined;
  onDrain: (() => void) | undefined;
  readonly #caller: Caller;
  readonly #x: Exchange;
  readonly #turn: Turn;
  readonly #output: Output;
  readonly #splitter = new EventSplitter();
  #headers: HeaderList = [];
  #opened: 'no' | 'stream' | 'document' = 'no';
  /** Of a document that comes in pieces. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Events that are not written yet; and the number of the next. */
  #events = '';
  #sequence = 0;
  #usage: Json | undefined;
  #finish: unknown;
  #failed = false;
  /** The turn is being kept: the end of the answer waits for it. */
  #keeping = false;
  #whenAnswered: (() => void) | undefined;

  constructor(x: Exchange, turn: Turn, body: Buffer) {
    this.#x = x;
    this.#caller = x.caller;
    this.#turn = turn;
    this.body = body;
    this.target = this.#caller.target;
    this.#output = new Output((type, members) => this.#emit(type, members));
    this.onGone = this.#caller.onGone;
    this.#caller.onGone = () => this.onGone?.();
    this.#caller.onDrain = () => this.onDrain?.();
  }

  /** Runs when the caller has the whole answer: at once, save where it waits to be kept. */
  whenAnswered(run: () => void): void {
    if (this.#keeping) this.#whenAnswered = run;
    else run();
  }

  get terms(): InnerTerms | undefined {
    return this.#caller.terms;
  }

  /** The session of a turn goes before what its body says, and after what its caller says. */
  header(name: string): string | undefined {
    const own = this.#caller.header(name);
    return name === 'x-armature-session' ? own || this.#turn.sessionKey : own;
  }

  headerCount(name: string): number {
    return this.#caller.headerCount(name);
  }

  whenClosed(run: () => void): void {
    this.#caller.whenClosed(run);
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    if (status !== 200) {
      this.#caller.respond(status, headers, body);
      return;
    }
    if (isStream(headers)) {
      this.open(status, headers);
      this.write(body);
      this.end();
      return;
    }
    this.#headers = headers;
    this.#document(body);
  }

  open(status: number, headers: HeaderList): void {
    this.#headers = headers;
    if (!isStream(headers)) {
      this.#opened = 'document';
      return;
    }
    this.#opened = 'stream';
    this.#caller.open(status, headers);
    this.#tell('response.created', { status: 'in_progress', output: [] });
    this.#tell('response.in_progress', { status: 'in_progress', output: [] });
  }

  write(piece: Buffer | string): boolean {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    if (this.#opened === 'document') {
      this.#bytes += bytes.length;
      if (this.#bytes <= DOCUMENT_BYTES_MAX) this.#pieces.push(bytes);
      return true;
    }
    for (const event of this.#splitter.push(bytes)) {
      const data = eventData(event);
      if (data === undefined) this.#events += HEARTBEAT;
      else this.#read(data);
    }
    return this.#flush();
  }

  end(): void {
    if (this.#opened === 'document') {
      if (this.#bytes <= DOCUMENT_BYTES_MAX) this.#document(Buffer.concat(this.#pieces));
      else this.#refuse(noAnswer('is too long to be kept'));
      return;
    }
    const { failure } = this.#x;
    if (this.#failed || this.#x.outcome === 'failed') this.#fail(failure ?? noAnswer('failed in the middle'));
    else this.#complete();
  }

  destroy(): void {
    if (this.#opened === 'document') this.#refuse(this.#x.failure ?? noAnswer('was cut short'));
    else this.#caller.destroy();
  }

  /** A whole answer, in the form that the caller asked for. */
  #document(body: Buffer | string): void {
    const document = parsedObject(body);
    const choice = firstChoice(document);
    if (!document || !choice || !isObject(choice['message'])) {
      this.#refuse(noAnswer('is none of a chat'));
      return;
    }
    if (this.#turn.head.request.stream) {
      const stream = answerStream(document, 'chat', true);
      if (stream === undefined) {
        this.#refuse(noAnswer('is none of a chat'));
        return;
      }
      this.open(200, asStream(this.#headers));
      this.write(stream);
      this.end();
      return;
    }
    this.#output.take(choice['message'], choice['logprobs']);
    this.#finish = choice['finish_reason'];
    this.#usage = usageOf(document['usage']);
    const headers = asJson(this.#headers);
    this.#keep(this.#end(), (object, failure) => {
      if (failure) this.#refuse(failure);
      else this.#caller.respond(200, headers, JSON.stringify(object));
    });
  }

  /** One event of the chat's stream. */
  #read(data: string): void {
    if (data === '[DONE]') return;
    const chunk = parsedObject(data);
    if (!chunk) return;
    if (chunk['error'] || chunk['object'] === 'error') {
      this.#failed = true;
      return;
    }
    if (isObject(chunk['usage'])) this.#usage = usageOf(chunk['usage']);
    const choice = firstChoice(chunk);
    if (!choice) return;
    if (isObject(choice['delta'])) this.#output.take(choice['delta'], choice['logprobs']);
    if (choice['finish_reason']) this.#finish = choice['finish_reason'];
  }

  #complete(): void {
    const end = this.#end();
    this.#flush();
    this.#keep(end, (object, failure) => {
      if (failure) {
        const { code, message } = failure;
        this.#tell('response.failed', { ...end, status: 'failed', error: { code, message } });
      } else this.#emit(`response.${end.status}`, { response: object });
      this.#flush();
      this.#caller.end();
    });
  }

  #keep(end: ResponseEnd, done: (object: Json, failure: Failure | undefined) => void): void {
    this.#keeping = true;
    this.#turn.keep(end, (object, failure) => {
      this.#keeping = false;
      if (failure) this.#note(failure);
      done(object, failure);
      this.#whenAnswered?.();
    });
  }

  /** Ends what was made of the answer: the response as it will be told. */
  #end(): ResponseEnd {
    const reason = incompleteFor(this.#finish);
    const status = reason === undefined ? 'completed' : 'incomplete';
    this.#output.finish(status);
    return { status, reason, output: this.#output.items, usage: this.#usage };
  }

  /** A stream that has begun and cannot be made whole; it is told so, and kept so that it can be read as what it is. */
  #fail({ code, message }: Failure): void {
    this.#output.finish('incomplete');
    const end: ResponseEnd = {
      status: 'failed',
      output: this.#output.items,
      usage: this.#usage,
      error: { code, message },
    };
    this.#keep(end, () => {
      this.#tell('response.failed', end);
      this.#flush();
      this.#caller.end();
    });
  }

  /** Nothing of an answer has been told. */
  #refuse(failure: Failure): void {
    this.#note(failure);
    const { status } = ERRORS[failure.code];
    const headers = asJson(this.#headers);
    if (status === 503) headers.push('retry-after', String(failure.retryAfterSeconds ?? 1));
    this.#caller.respond(status, headers, openaiErrorBody(failure));
  }

  /** What the path took for an answer was none, or could not be kept. */
  #note(failure: Failure): void {
    const { status } = ERRORS[failure.code];
    this.#x.failure = failure;
    this.#x.status = status;
    this.#x.outcome = status === 503 ? 'refused' : status >= 500 ? 'failed' : 'invalid';
  }

  #tell(type: string, end: ResponseEnd): void {
    this.#emit(type, { response: responseObject(this.#turn.head, end) });
  }

  #emit(type: string, members: Json): void {
    if (this.#opened !== 'stream') return;
    const event = JSON.stringify({ type, sequence_number: this.#sequence++, ...members });
    this.#events += `event: ${type}\ndata: ${event}\n\n`;
  }

  #flush(): boolean {
    if (this.#events === '') return true;
    const events = this.#events;
    this.#events = '';
    return this.#caller.write(events);
  }
}

function firstChoice(document: Json | undefined): Json | undefined {
  const choices: unknown = document?.['choices'];
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) ? choice : undefined;
}

function noAnswer(why: string): Failure {
  return { code: 'backend_error', message: `The answer of the engine ${why}.`, phase: 'sent' };
}

function asJson(headers: HeaderList): HeaderList {
  return [...without(headers, 'content-type'), ...JSON_TYPE];
}

function asStream(headers: HeaderList): HeaderList {
  return [...without(headers, 'content-type', 'cache-control'), ...STREAM_TYPE];
}
