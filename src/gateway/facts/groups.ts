import type { Fact } from '../../events/contracts.ts';
import type { FactSink } from '../contracts.ts';

/** Kinds counted apart at one time; all that are beyond it share one count. */
export const GROUPS_MAX = 10_000;

export type EndedRequest = Parameters<FactSink['wantsRecord']>[0];
type Group = Extract<Fact, { kind: 'group' }>;

const REST = '(other)';

/** Requests that get no record of their own, counted by route, tenant, reason and the second in which they came. */
export class Groups {
  readonly #groups = new Map<string, Group>();
  #rest: Group | undefined;

  get size(): number {
    return this.#groups.size + (this.#rest ? 1 : 0);
  }

  /**
   * True when the request is the first of its kind and there is room to keep its record: it becomes the example, and is not
   * counted here. Without room the first one is counted too, and only its id is known.
   */
  add(ended: EndedRequest, room: boolean): boolean {
    const { id, route, tenant, reason } = ended;
    const second = Math.floor(ended.wallMs / 1000);
    const key = `${second}|${route}|${tenant}|${reason}`;
    const group = this.#groups.get(key);
    if (group) {
      group.count++;
      return false;
    }
    if (this.#groups.size >= GROUPS_MAX) {
      this.#rest ??= {
        kind: 'group',
        second,
        route: REST,
        tenant: REST,
        reason: REST,
        count: 0,
        example: id,
      };
      this.#rest.count++;
      return false;
    }
    this.#groups.set(key, { kind: 'group', second, route, tenant, reason, count: room ? 0 : 1, example: id });
    return room;
  }

  /** Hands out the counts and begins anew. Counts of one kind and second that are handed out apart add up. */
  take(): Group[] {
    const taken = [...this.#groups.values()].filter((group) => group.count > 0);
    if (this.#rest) taken.push(this.#rest);
    this.#groups.clear();
    this.#rest = undefined;
    return taken;
  }
}
