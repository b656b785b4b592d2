import { scanMembers } from '../../protocols/json-members.ts';
import { readUsage } from '../../protocols/openai/events.ts';
import type { UpstreamHeaders } from '../contracts.ts';
import type { AttemptFailure } from '../dispatch/outcome.ts';
import { fromBrokenAnswer } from '../dispatch/outcome.ts';
import type { Relay, RelayHost } from './contracts.ts';

/** Up to this size an answer is held until it is whole, so that another endpoint can still give it. */
const HELD_BYTES_MAX = 1024 * 1024;
/** Of a longer answer so much of the end is kept, where the usage stands. */
const TAIL_BYTES = 4096;

const USAGE = ['usage'];

/** An answer that is one document, passed on byte for byte. */
export class WholeRelay implements Relay {
  readonly #host: RelayHost;
  readonly #headers: UpstreamHeaders;
  readonly #backend: string;
  readonly #counted: boolean;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #committed = false;
  #tail: Buffer = Buffer.alloc(0);

  /** `counted`: the answer is OpenAI's JSON, whose usage is read. */
  constructor(host: RelayHost, headers: UpstreamHeaders, backend: string, counted: boolean) {
    this.#host = host;
    this.#headers = headers;
    this.#backend = backend;
    this.#counted = counted && headers['content-encoding'] === undefined;
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

  judge(): undefined {}

  onEnd(): void {
    if (this.#committed) {
      this.#count(this.#tail, true);
      this.#host.done();
      return;
    }
    const body = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#count(body, false);
    this.#host.respond(this.#headers, body);
  }

  onBroken(failure: AttemptFailure): void {
    if (this.#committed) this.#host.broken(failure, false);
    else if (failure.stale || failure.unsent) this.#host.failed(failure);
    else if (failure.code === 'connection-lost' && this.#bytes > 0) {
      this.#host.failed(
        fromBrokenAnswer(
          'cut-answer',
          `The backend '${this.#backend}' broke off in the middle of its answer.`,
        ),
      );
    } else this.#host.failed(failure);
  }

  #pass(piece: Buffer): void {
    if (this.#counted) this.#tail = Buffer.concat([this.#tail, piece]).subarray(-TAIL_BYTES);
    this.#host.write(piece);
  }

  #count(body: Buffer, tailOnly: boolean): void {
    if (!this.#counted) return;
    const usage = tailOnly ? usageAtEnd(body) : usageOf(body);
    if (usage) this.#host.count(usage.tokensIn, usage.tokensOut);
  }
}

function usageOf(body: Buffer): ReturnType<typeof readUsage> {
  const scanned = scanMembers(body, 0, body.length, USAGE);
  if (typeof scanned === 'string') return undefined;
  const member = scanned.members.at(-1);
  return member && readUsage(parse(body.toString('utf8', member.start, member.end)));
}

/** The usage of a document of which only the end was kept: engines write it last. */
function usageAtEnd(tail: Buffer): ReturnType<typeof readUsage> {
  const match = /"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})/.exec(tail.toString('latin1'));
  return match ? readUsage(parse(match[1]!)) : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // the answer passes on as it is; it is only not counted
  }
}
