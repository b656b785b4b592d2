import { RecentValues } from '../../kernel/recent-values.ts';
import type { Call } from '../call.ts';

/** Answers that are remembered of each kind at each backend. */
const ANSWERS = 128;
/** With fewer nothing is said. */
const ANSWERS_MIN = 20;

/** Answers whose times are compared: streams by their first content, others by the whole answer. */
type Kind = 'first' | 'whole' | 'short';

/** Times of one route's lately answered attempts, by backend: what may be expected of the next. Milliseconds. */
export class UsualTimes {
  readonly #kinds: Record<Kind, Map<string, RecentValues>> = {
    first: new Map(),
    whole: new Map(),
    short: new Map(),
  };

  /** An attempt had its first content, where it is a stream, or was whole, where it is not. */
  observe(call: Call, backend: string, ms: number): void {
    const times = this.#kinds[kindOf(call)];
    let recent = times.get(backend);
    if (!recent) {
      recent = new RecentValues(ANSWERS);
      times.set(backend, recent);
    }
    recent.add(ms);
  }

  /** The time within which a share `q` of such answers came; undefined while too few are known. */
  quantile(call: Call, backend: string, q: number): number | undefined {
    return this.#kinds[kindOf(call)].get(backend)?.quantile(q, ANSWERS_MIN);
  }

  /** Lets go of backends that are no more. */
  forget(isKnown: (backend: string) => boolean): void {
    for (const times of Object.values(this.#kinds))
      for (const backend of times.keys()) if (!isKnown(backend)) times.delete(backend);
  }
}

function kindOf(call: Call): Kind {
  if (call.stream) return 'first';
  return call.kind === 'chat' || call.kind === 'completions' ? 'whole' : 'short';
}
