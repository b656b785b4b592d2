import type { Settings } from '../../config/schema/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { TokenizerFiles, TokenizerPool } from './contracts.ts';
import type { Hand } from './crew.ts';
import { type ModelFiles, ModelTokenizers } from './model-tokenizers.ts';
import { Pool } from './pool.ts';
import { ThreadHand } from './thread-hand.ts';

export interface PreprocessingParts {
  clock: Clock;
  timers: Timers;
  files: ModelFiles;
  /** Told, in words, when a thread dies; it is started anew. */
  warn: (text: string) => void;
  /** Who works: a thread where absent. */
  hire?: () => Hand;
}

/** Texts become tokens here, apart from the requests: threads of their own, what waits for them, and the tokenizers. */
export class Preprocessing {
  readonly #pool: Pool;
  readonly #files: ModelTokenizers;

  constructor({ clock, timers, files, warn, hire }: PreprocessingParts) {
    const onDied = (why: string) =>
      warn(`a thread that made tokens of texts died, and is started anew: ${why}`);
    this.#files = new ModelTokenizers(files);
    this.#pool = new Pool({
      clock,
      timers,
      hire: hire ?? (() => new ThreadHand(timers, onDied)),
      settings: { threads: 1, queueMax: 1 },
    });
  }

  get pool(): TokenizerPool {
    return this.#pool;
  }

  get files(): TokenizerFiles {
    return this.#files;
  }

  /** Another configuration holds. */
  swap({ gateway, models }: Settings): void {
    this.#pool.settings = gateway.preprocessing;
    this.#files.models = models;
  }

  close(): void {
    this.#pool.close();
  }
}
