import { LRUCache } from 'lru-cache';
import type { TimerHandle } from '../../kernel/timers.ts';
import type { Exchange } from '../exchange.ts';
import type { Path } from '../path.ts';
import { armKey } from '../release/arms.ts';
import { Company } from '../release/company.ts';
import type { Part } from './contracts.ts';
import { embeddingsPart } from './embeddings.ts';
import { JoinedCall, type Member } from './joined-call.ts';
import { tensorsPart } from './tensors.ts';

/** Joined requests in a row that came to nothing, after which those like them go by themselves; and for how long. */
const VAIN_MAX = 3;
const APART_MS = 60_000;
/** Kinds of requests that this is remembered of. */
const APART_MAX = 1000;

/** Requests that wait, a few milliseconds, for others that can go upstream with them. */
export class Batches {
  readonly #groups = new Map<string, Group>();
  readonly #company = new Company();
  /** How often in a row joined requests of a key came to nothing, and when last. */
  readonly #vain = new LRUCache<string, { count: number; at: number }>({ max: APART_MAX });

  /** False when the request has to go by itself. */
  join(path: Path, x: Exchange): boolean {
    const { max, acrossTenants } = x.route!.answers!.batch!;
    const part = partOf(x);
    if (!part || part.count >= max) return false;
    const like = likeKey(x, part.key, acrossTenants);
    this.#company.meets(like, x);
    const key = `${armKey(x)}\n${like}`;
    if (this.#goesApart(key, path.deps.clock.mono())) return false;
    let group = this.#groups.get(key);
    if (group && group.count + part.count > max) {
      group.flush();
      group = undefined;
    }
    if (!group) {
      group = new Group(path, {
        onFlushed: () => this.#groups.delete(key),
        onJudged: (worked) => this.#judge(key, worked, path.deps.clock.mono()),
      });
      this.#groups.set(key, group);
    }
    group.add(x, part);
    if (group.count >= max) group.flush();
    return true;
  }

  #goesApart(key: string, now: number): boolean {
    const vain = this.#vain.get(key);
    if (!vain || vain.count < VAIN_MAX) return false;
    if (now - vain.at < APART_MS) return true;
    this.#vain.delete(key);
    return false;
  }

  #judge(key: string, worked: boolean, now: number): void {
    if (worked) this.#vain.delete(key);
    else this.#vain.set(key, { count: (this.#vain.get(key)?.count ?? 0) + 1, at: now });
  }
}

function partOf(x: Exchange): Part | undefined {
  const call = x.call!;
  if (call.protocol === 'openai') {
    return call.kind === 'embeddings' ? embeddingsPart(x.caller.body) : undefined;
  }
  if (call.kind !== 'infer' || call.request?.sequence) return undefined;
  return tensorsPart(x.caller.body, call.headerLength === undefined ? undefined : Number(call.headerLength));
}

/** What requests have to share, beside their arm, to go together: `key` is what their bodies have to. */
export function likeKey(x: Exchange, key: string, acrossTenants: boolean): string {
  const version = x.call!.protocol === 'oip' ? x.call!.version : undefined;
  const tenant = acrossTenants ? null : x.tenant;
  const beta = x.caller.header('openai-beta') ?? null;
  return `${JSON.stringify([tenant, x.route!.name, version ?? null, beta])}\n${key}`;
}

interface GroupHooks {
  onFlushed: () => void;
  /** Whether joining was of use, once it is known. */
  onJudged: (worked: boolean) => void;
}

class Group {
  readonly #path: Path;
  readonly #hooks: GroupHooks;
  #members: Member[] = [];
  #timer: TimerHandle;
  #dueAt = Number.POSITIVE_INFINITY;
  count = 0;

  constructor(path: Path, hooks: GroupHooks) {
    this.#path = path;
    this.#hooks = hooks;
  }

  add(x: Exchange, part: Part): void {
    const { clock, timers } = this.#path.deps;
    const now = clock.mono();
    const member: Member = { x, part, joinedAt: now };
    this.#members.push(member);
    this.count += part.count;
    x.scope.add(() => this.#leave(member));
    this.#path.watchTime(x);
    // Never for more than half of the time that any of them has.
    const dueAt = now + Math.min(x.route!.answers!.batch!.delay, (x.deadlineAt - now) / 2);
    if (dueAt >= this.#dueAt) return;
    this.#dueAt = dueAt;
    timers.clear(this.#timer);
    this.#timer = timers.set(dueAt - now, () => this.flush());
  }

  /** What has come together goes upstream. */
  flush(): void {
    const members = this.#members;
    this.#end();
    const now = this.#path.deps.clock.mono();
    for (const { x, joinedAt } of members) x.waitedMs += now - joinedAt;
    if (members.length === 1) this.#path.plan(members[0]!.x, false);
    else if (members.length > 1) new JoinedCall(this.#path, members, this.#hooks.onJudged).start();
  }

  #leave(member: Member): void {
    const at = this.#members.indexOf(member);
    if (at < 0) return;
    this.#members.splice(at, 1);
    this.count -= member.part.count;
    if (this.#members.length === 0) this.#end();
  }

  #end(): void {
    this.#members = [];
    this.#path.deps.timers.clear(this.#timer);
    this.#hooks.onFlushed();
  }
}
