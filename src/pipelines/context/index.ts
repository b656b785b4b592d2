import type {
  Backend,
  ContextFitter,
  Endpoint,
  Exchange,
  FittedBody,
  Path,
} from '../../gateway/contracts.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Failure } from '../../kernel/errors.ts';
import type { TokenizerFiles, TokenizerPool } from '../preprocessing/contracts.ts';
import { Fitting } from './fitting.ts';
import { Profiles } from './profile.ts';
import { Summaries } from './summaries.ts';

export interface ContextDeps {
  clock: Clock;
  /** Absent where nothing makes tokens: they are bounded by bytes then. */
  tokenizers?: { pool: TokenizerPool; files: TokenizerFiles } | undefined;
  /** Everything goes as it is. */
  off?: boolean | undefined;
}

/** Makes transcripts fit the window of the backend that they are sent to: by rule, and on counted tokens. */
export class Contexts implements ContextFitter {
  readonly pool: TokenizerPool | undefined;
  readonly off: boolean;
  readonly profiles: Profiles;
  readonly summaries = new Summaries();
  /** Windows that engines have told of themselves. */
  readonly toldWindows = new WeakMap<Backend['settings'], number>();

  constructor({ clock, tokenizers, off = false }: ContextDeps) {
    this.off = off;
    this.pool = tokenizers?.pool;
    this.profiles = new Profiles(tokenizers?.files, clock);
  }

  fit(
    path: Path,
    x: Exchange,
    backend: Backend,
    endpoint: Endpoint,
    done: (result: FittedBody | Failure) => void,
    yieldPlace: () => void,
  ): () => void {
    const fitting = new Fitting(this, { path, x, backend, endpoint, done, yieldPlace });
    fitting.start();
    return () => fitting.cancel();
  }
}
