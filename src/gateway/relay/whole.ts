import { type Member, rawValue, scanMembers } from '../../protocols/json-members.ts';
import { readUsage, type Usage } from '../../protocols/openai/events.ts';
import type { UpstreamHeaders } from '../contracts.ts';
import { isEncoded } from '../dispatch/headers.ts';
import { type AttemptFailure, fromBrokenAnswer, fromErrorText } from '../dispatch/outcome.ts';
import type { Relay, RelayHost } from './contracts.ts';

/** Up to this size an answer is held until it is whole, so that another endpoint can still give it. */
const HELD_BYTES_MAX = 1024 * 1024;
/** Of a longer answer so much of the end is kept, where the usage stands. */
const TAIL_BYTES = 4096;
const CLOSE_BRACE = 0x7d;

/** What is looked for in an answer; one that has an error and none of the others is no answer. */
const LOOKED_FOR = ['usage', 'error', 'choices', 'data', 'outputs'];

/** An answer that is one document, passed on byte for byte. */
export class WholeRelay implements Relay {
  readonly #host: RelayHost;
  readonly #headers: UpstreamHeaders;
  readonly #backend: string;
  /** It has to be a JSON object; anything else is no answer. */
  readonly #json: boolean;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #committed = false;
  #body: Buffer | undefined;
  #usage: Usage | undefined;
  #tail: Buffer = Buffer.alloc(0);

  constructor(host: RelayHost, headers: UpstreamHeaders, backend: string, json: boolean) {
    this.#host = host;
    this.#headers = headers;
    this.#backend = backend;
    this.#json = json && !isEncoded(headers);
  }

  onData(piece: Buffer): void {
    if (this.#committed) {
      this.#pass(piece);
      return;
    }
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes <= HELD_BYTES_MAX && this.#host.hold(piece.length)) return;
    this.#committed = true;
    this.#host.commit(this.#headers, undefined);
    for (const held of this.#pieces.splice(0)) this.#pass(held);
  }

  judge(): AttemptFailure | undefined {
    if (this.#committed) return this.#judgeEnd();
    this.#body = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    return this.#json ? this.#judgeBody(this.#body) : undefined;
  }

  onEnd(): void {
    if (this.#usage) this.#host.count(this.#usage.tokensIn, this.#usage.tokensOut);
    if (this.#committed) this.#host.done();
    else this.#host.respond(this.#headers, this.#body!);
  }

  onBroken(failure: AttemptFailure): void {
    if (this.#committed) this.#host.broken(failure, false);
    else this.#host.failed(failure);
  }

  #judgeBody(body: Buffer): AttemptFailure | undefined {
    const scanned = scanMembers(body, 0, body.length, LOOKED_FOR);
    if (typeof scanned === 'string') {
      return fromBrokenAnswer(
        'no-answer',
        `The backend '${this.#backend}' answered with something that is no answer.`,
      );
    }
    const { members } = scanned;
    const usage = members.findLast(({ key }) => key === 'usage');
    if (usage) this.#usage = usageAt(body, usage);
    const error = members.find(({ key }) => key === 'error');
    const answered = members.some(({ key }) => key === 'choices' || key === 'data' || key === 'outputs');
    if (!error || answered || rawValue(body, error) === 'null') return undefined;
    return fromErrorText(body.toString('utf8'), this.#backend);
  }

  /** Of a long document only the end is known: it must look like one, since a closed connection may have cut it. */
  #judgeEnd(): AttemptFailure | undefined {
    if (!this.#json) return undefined;
    const end = this.#tail.toString('latin1').trimEnd();
    if (end.charCodeAt(end.length - 1) !== CLOSE_BRACE) {
      return fromBrokenAnswer('cut-answer', `The backend '${this.#backend}' ended its answer too early.`);
    }
    this.#usage = usageAtEnd(end);
    return undefined;
  }

  #pass(piece: Buffer): void {
    if (this.#json) this.#tail = Buffer.concat([this.#tail, piece]).subarray(-TAIL_BYTES);
    this.#host.write(piece);
  }
}

function usageAt(body: Buffer, { start, end }: Member): Usage | undefined {
  return readUsage(parse(body.toString('utf8', start, end)));
}

/** The usage of a document of which only the end was kept: engines write it last. */
function usageAtEnd(tail: string): Usage | undefined {
  const match = /"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})/.exec(tail);
  return match ? readUsage(parse(match[1]!)) : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the answer passes on as it is; it is only not counted
  }
}
