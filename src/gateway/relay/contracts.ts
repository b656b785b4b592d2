import type { UpstreamHeaders } from '../contracts.ts';
import type { AttemptFailure } from '../dispatch/outcome.ts';

/** Takes an engine's answer to the caller, piece by piece. */
export interface Relay {
  onData(piece: Buffer): void;
  /** The engine's side has ended: why that is no whole answer, or undefined when it is one. Then `onEnd` or `onBroken`. */
  judge(): AttemptFailure | undefined;
  onEnd(): void;
  /** The engine's side broke off, or ran out of time. */
  onBroken(failure: AttemptFailure): void;
  /** The caller has left: what it has had so far is counted. */
  onLeft?(): void;
}

/** What a relay may do with the request it belongs to. */
export interface RelayHost {
  /** The commit point: from now on the answer is this one. The head goes out with the first write. */
  commit(headers: UpstreamHeaders, contentType: string | undefined): void;
  /** More bytes of it are held; false when there is no room for them. */
  hold(bytes: number): boolean;
  write(piece: Buffer | string): void;
  /** A whole answer, not committed before. */
  respond(headers: UpstreamHeaders, body: Buffer): void;
  count(tokensIn: number | undefined, tokensOut: number | undefined): void;
  /** The answer is whole. */
  done(): void;
  /** No answer came of it; not committed. */
  failed(failure: AttemptFailure): void;
  /** Committed, and it cannot be made whole: the caller is told so. `told` when the engine's own event said it. */
  broken(failure: AttemptFailure, told: boolean): void;
}
