import { CarrierCaller } from '../carrier.ts';
import type { HeaderList } from '../contracts.ts';
import type { Path } from '../path.ts';

/** The longest answer to a shared request that is taken apart. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** A shared request whose answer is needed whole, to be taken apart. */
export abstract class WholeCarrier extends CarrierCaller {
  protected readonly path: Path;
  #pieces: Buffer[] = [];
  #headers: HeaderList = [];
  #held = 0;
  #ended = false;

  constructor(path: Path, target: string, body: Buffer) {
    super(target, body);
    this.path = path;
  }

  /** A full answer. */
  protected abstract answered(headers: HeaderList, body: Buffer): void;
  /** The engine says that the request is wrong. */
  protected abstract refused(status: number, headers: HeaderList, body: Buffer): void;
  /** No engine has answered; the carrier's failure says why. */
  protected abstract failed(): void;
  /** The answer is longer than anybody holds. */
  protected abstract tooLong(): void;

  get isOver(): boolean {
    return this.#ended;
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
  leave(): void {
    const { carrier } = this;
    this.#end(() => {});
    if (carrier) this.path.gone(carrier);
  }

  /** Takes room for bytes that are held until it is over; false where there is none. */
  protected hold(bytes: number): boolean {
    if (this.#held + bytes > ANSWER_BYTES_MAX || !this.path.deps.buffers.take(bytes)) return false;
    this.#held += bytes;
    return true;
  }

  #end(tell: () => void): void {
    if (this.#ended) return;
    this.#ended = true;
    tell();
    this.path.deps.buffers.give(this.#held);
    this.#held = 0;
    this.#pieces = [];
    this.close();
  }
}
