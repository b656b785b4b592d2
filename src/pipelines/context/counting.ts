import type { Backend, Endpoint } from '../../gateway/contracts.ts';
import type { TokenizerPool } from '../preprocessing/contracts.ts';
import { askEngine, askWindow } from './engine-count.ts';
import type { Count } from './fit.ts';
import type { Profile } from './profile.ts';
import { boundOf, type Messages, promptOf, type Rest } from './prompt.ts';

export interface CounterOptions {
  profile: Profile;
  /** Absent where nothing makes tokens here. */
  pool: TokenizerPool | undefined;
  backend: Backend;
  endpoint: Endpoint;
  rest: Rest;
  rank: number;
  deadlineAt: number;
}

/** Counts the tokens of a chat's prompt in the best way there is for its backend: by its tokenizer, by asking it, or by bytes. */
export class Counter {
  readonly #options: CounterOptions;
  /** Why bytes counted. */
  why: string | undefined;
  #cancel: (() => void) | undefined;
  #asks = 0;
  #over = false;

  constructor(options: CounterOptions) {
    this.#options = options;
    this.why = options.profile.why;
  }

  /** What counts. */
  get by(): Profile['by'] {
    const { profile, pool } = this.#options;
    return this.why !== undefined || (profile.by === 'tokenizer' && !pool) ? 'bytes' : profile.by;
  }

  /** Calls back once, at once or later; never after `cancel`. */
  count(chats: readonly Messages[], done: (counts: Count[]) => void): void {
    const { profile, pool, rest } = this.#options;
    if (profile.by === 'tokenizer' && pool) this.#byTokenizer(pool, chats, done);
    else if (profile.by === 'engine') this.#byEngine(chats, [], done);
    else done(chats.map((messages) => boundOf(profile, messages, rest)));
  }

  /** The window that the engine tells of itself; undefined where it tells none. */
  window(messages: Messages, done: (window: number | undefined) => void): void {
    const { profile, backend, endpoint, rest } = this.#options;
    const told = (window: number | undefined) => {
      if (!this.#over) done(window);
    };
    if (profile.by !== 'engine') done(undefined);
    else if (backend.dialect.tokenizes === 'vllm') {
      this.#ask(() =>
        askEngine('vllm', { backend, endpoint }, messages, rest, (result) =>
          told(typeof result === 'string' ? undefined : result.window),
        ),
      );
    } else this.#ask(() => askWindow({ backend, endpoint }, told));
  }

  cancel(): void {
    this.#over = true;
    this.#cancel?.();
  }

  #byTokenizer(pool: TokenizerPool, chats: readonly Messages[], done: (counts: Count[]) => void): void {
    const { profile, rest, rank, deadlineAt } = this.#options;
    const prompts = chats.map((messages) => promptOf(profile, messages, rest));
    const texts = prompts.flatMap((prompt) => (prompt ? [prompt.text] : []));
    const ask = {
      tokenizer: profile.tokenizer!,
      texts,
      specials: false,
      want: 'counts',
      rank,
      deadlineAt,
    } as const;
    this.#ask(() =>
      pool.tokenize(ask, (result) => {
        const failed = 'failed' in result;
        this.why = failed ? result.message : undefined;
        let next = 0;
        const counts = prompts.map((prompt, at) =>
          prompt && !failed
            ? { tokens: result.counts[next++]! + prompt.beside, exact: prompt.exact }
            : boundOf(profile, chats[at]!, rest),
        );
        if (!this.#over) done(counts);
      }),
    );
  }

  /** One after another: an engine is not to be pressed by what is only counted. */
  #byEngine(chats: readonly Messages[], counts: Count[], done: (counts: Count[]) => void): void {
    const { profile, backend, endpoint, rest } = this.#options;
    const messages = chats[counts.length];
    if (!messages) {
      done(counts);
      return;
    }
    this.#ask(() =>
      askEngine(backend.dialect.tokenizes!, { backend, endpoint }, messages, rest, (result) => {
        if (this.#over) return;
        const told = typeof result !== 'string';
        this.why = told ? undefined : result;
        counts.push(told ? { tokens: result.tokens, exact: true } : boundOf(profile, messages, rest));
        this.#byEngine(chats, counts, done);
      }),
    );
  }

  /** What answers at once may have asked the next one by then: that one is to be given up. */
  #ask(start: () => () => void): void {
    const ask = ++this.#asks;
    const cancel = start();
    if (ask === this.#asks) this.#cancel = cancel;
  }
}
