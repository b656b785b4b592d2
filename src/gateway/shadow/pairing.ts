import type { CompareSettings } from '../../config/schema/index.ts';
import type { AnswerPair } from '../contracts.ts';
import type { Exchange } from '../exchange.ts';
import type { Shadow } from '../state/world.ts';
import type { SkipCause } from './contracts.ts';
import { Heard } from './heard.ts';
import type { ShadowBudget } from './shadow-budget.ts';

/** A copy whose answer is compared. */
export type ComparedShadow = Shadow & { compare: CompareSettings };

export interface PairingDeps {
  budget: ShadowBudget;
  /** Both answers are there. `release` is to be called when they are needed no more. */
  compare(pair: ReadyPair): void;
  skipped(x: Exchange, shadow: ComparedShadow, cause: SkipCause): void;
}

export interface ReadyPair {
  x: Exchange;
  shadow: ComparedShadow;
  answers(): Pick<AnswerPair, 'caller' | 'copy'> | undefined;
  release(): void;
}

/** The answer that a caller gets, which those to copies are compared with: heard once, however many copies there are. */
export class CallerSide {
  readonly x: Exchange;
  readonly heard: Heard;
  readonly #pairs: Pair[] = [];
  #users = 0;
  /** Why there is nothing to compare with; undefined while that is not known, and where there is. */
  cause: SkipCause | undefined;
  over = false;

  constructor(x: Exchange, budget: ShadowBudget) {
    this.x = x;
    this.heard = new Heard(x, budget, x.listener);
    x.listener = this.heard;
    x.scope.add(() => this.#ended());
  }

  add(pair: Pair): void {
    this.#pairs.push(pair);
    this.#users++;
  }

  leave(): void {
    if (--this.#users === 0) this.heard.release();
  }

  #ended(): void {
    this.over = true;
    this.cause = causeOf(this.x) ?? (this.heard.isWhole ? undefined : (this.heard.cause ?? 'caller-failed'));
    for (const pair of this.#pairs) pair.progress();
  }
}

/** What the request ended in, where that is not a full answer of an engine. */
function causeOf({ outcome, degraded, outputTokensMax }: Exchange): SkipCause | undefined {
  if (outcome === 'aborted') return 'caller-left';
  if (outcome === 'degraded' || degraded !== undefined || outputTokensMax !== undefined) return 'degraded';
  return outcome === 'ok' ? undefined : 'caller-failed';
}

/** The answer to one copy, and the caller's: compared when both are there, or skipped as soon as one will never be. */
export class Pair {
  readonly #deps: PairingDeps;
  readonly #caller: CallerSide;
  readonly #shadow: ComparedShadow;
  #heard: Heard | undefined;
  #answered = false;
  #over = false;

  constructor(caller: CallerSide, shadow: ComparedShadow, deps: PairingDeps) {
    this.#caller = caller;
    this.#shadow = shadow;
    this.#deps = deps;
    caller.add(this);
  }

  /** The copy is on its way: what hears its answer. */
  listen(copy: Exchange): Heard {
    this.#heard = new Heard(copy, this.#deps.budget);
    if (this.#over) this.#heard.release(); // the caller's side was over before the copy's began
    return this.#heard;
  }

  /** The copy has ended; one that was never sent as well. */
  copyEnded(outcome: 'ok' | SkipCause): void {
    this.#answered = outcome === 'ok' && this.#heard?.isWhole === true;
    if (this.#answered) this.progress();
    else this.#skip(outcome === 'ok' ? (this.#heard?.cause ?? 'failed') : outcome);
  }

  progress(): void {
    const caller = this.#caller;
    if (this.#over || !caller.over) return;
    const same = caller.x.backend?.name === this.#shadow.backend.name;
    const cause = caller.cause ?? (same ? 'same-backend' : undefined);
    if (cause !== undefined) this.#skip(cause);
    else if (this.#answered) {
      this.#over = true;
      this.#deps.compare({
        x: caller.x,
        shadow: this.#shadow,
        answers: () => {
          const [theirs, own] = [caller.heard.answer, this.#heard!.answer];
          return theirs && own && { caller: theirs, copy: own };
        },
        release: () => this.#release(),
      });
    }
  }

  #skip(cause: SkipCause): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#deps.skipped(this.#caller.x, this.#shadow, cause);
  }

  #release(): void {
    this.#heard?.release();
    this.#caller.leave();
  }
}
