import type { Framed } from './batching/contracts.ts';
import type { OipModelCall, OpenaiCall } from './call.ts';
import { CarrierCaller, openCarrier } from './carrier.ts';
import type { HeaderList } from './contracts.ts';
import type { Cost } from './cost.ts';
import type { Exchange } from './exchange.ts';
import type { Path } from './path.ts';

/** The longest answer to a shared request that is taken apart. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
/** The header that says where the JSON of a body ends, if raw tensors follow. */
export const JSON_BYTES = 'inference-header-content-length';

/** A shared request whose answer is needed whole, to be taken apart. */
export abstract class WholeCarrier extends CarrierCaller {
  protected readonly path: Path;
  protected readonly first: Exchange;
  protected readonly jsonBytes: number | undefined;
  #pieces: Buffer[] = [];
  #headers: HeaderList = [];
  #held = 0;
  #ended = false;

  /** `first`: the member that it is like in all that members agree in. */
  constructor(path: Path, first: Exchange, target: string, { body, jsonBytes }: Framed) {
    super(target, body);
    this.path = path;
    this.first = first;
    this.jsonBytes = jsonBytes;
  }

  /** A full answer. */
  protected abstract answered(headers: HeaderList, body: Buffer): void;
  /** The engine says that the request is wrong. */
  protected abstract refused(status: number, headers: HeaderList, body: Buffer): void;
  /** No engine has answered; the carrier's failure says why. */
  protected abstract failed(): void;
  /** The answer is longer than anybody holds. */
  protected abstract tooLong(): void;

  /** Makes its request, with the highest priority and the latest deadline of its members. */
  protected openFor(
    members: Iterable<{ x: Exchange }>,
    call: OpenaiCall | OipModelCall,
    cost: Cost,
  ): Exchange {
    const carrier = openCarrier(this.path, this, this.first, call, cost);
    carrier.session = undefined;
    for (const { x } of members) {
      if (x.rank < carrier.rank) carrier.priority = x.priority;
      carrier.deadlineAt = Math.max(carrier.deadlineAt, x.deadlineAt);
    }
    return carrier;
  }

  header(name: string): string | undefined {
    const raw = this.jsonBytes;
    if (name === 'content-type') return raw === undefined ? 'application/json' : 'application/octet-stream';
    if (name === JSON_BYTES && raw !== undefined) return String(raw);
    return name === 'openai-beta' ? this.first.caller.header(name) : undefined;
  }

  respond(status: number, headers: HeaderList, body: Buffer | string): void {
    const { outcome } = this.carrier!;
    this.#end(() => {
      const bytes = Buffer.from(body as string);
      if (status === 200 && (outcome === 'ok' || outcome === 'degraded')) this.answered(headers, bytes);
      else if (outcome === 'invalid') this.refused(status, headers, bytes);
      else this.failed();
    });
  }

  open(_status: number, headers: HeaderList): void {
    this.#headers = headers;
  }

  write(piece: Buffer | string): boolean {
    if (this.#ended) return true;
    const bytes = Buffer.from(piece as string);
    this.#pieces.push(bytes);
    if (!this.hold(bytes.length)) {
      this.#end(() => this.tooLong());
      this.path.gone(this.carrier!);
    }
    return true;
  }

  end(): void {
    const failed = this.carrier!.outcome === 'failed';
    const body = Buffer.concat(this.#pieces);
    this.#end(() => (failed ? this.failed() : this.answered(this.#headers, body)));
  }

  destroy(): void {
    this.#end(() => this.failed());
  }

  /** Nobody wants the answer any more. */
  protected leave(): void {
    if (this.#ended) return;
    this.#end(() => {});
    if (this.carrier) this.path.gone(this.carrier);
  }

  /** Takes room for bytes that are held until it is over; false where there is none. */
  protected hold(bytes: number): boolean {
    if (this.#held + bytes > ANSWER_BYTES_MAX || !this.path.deps.buffers.take(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  /** It holds nothing any more when its members are told: what they keep of the answer they hold themselves. */
  #end(tell: () => void): void {
    if (this.#ended) return;
    this.#ended = true;
    this.path.deps.buffers.give(this.#held);
    this.#held = 0;
    this.#pieces = [];
    this.close();
    tell();
  }
}
