import { type Arm, type ArmEvidence, type Evidence, MARKS } from '../../src/events/contracts.ts';
import { costBucket, timeBucket } from '../../src/kernel/buckets.ts';
import type { ReleaseArms } from '../../src/links/messages.ts';
import { sessionHash } from '../../src/policies/canary-arm/index.ts';
import type { Answered, Traffic } from './traffic.ts';

const FIRSTS_MAX = 250;
const MARKS_MAX = 500;
const ARM_CODES = { canary: 0, baseline: 1, stable: 2 } as const;

/** How long evidence is gathered before it is told; and where a request has failed, of whichever arm: the moment must know nothing of arms. */
const TELL_MS = 5000;
const TELL_FAILED_MS = 1000;

/** What a worker makes of its requests, at the times, in the form and within the bounds of the gateway's. */
export class Gatherer {
  readonly #release: string;
  readonly #worker: number;
  readonly #seen = new Set<number>();
  readonly #ready: Evidence[] = [];
  #snapshot = 0;
  #share = 0;
  #edges: ReleaseArms['edges'];
  #arms = emptyArms();
  #firsts: Evidence['firsts'] = [];
  #marks = new Map<number, [arm: 0 | 1 | 2, bits: number]>();
  #fromMs = 0;
  #dueMs = Number.POSITIVE_INFINITY;

  constructor(release: string, worker: number) {
    this.#release = release;
    this.#worker = worker;
  }

  /** The share and the edges from now on; a batch is of one snapshot. */
  onSnapshot(share: number, edges: ReleaseArms['edges'], nowMs: number): void {
    if (share === this.#share && edges === this.#edges) {
      if (this.#dueMs === Number.POSITIVE_INFINITY) this.#begin(nowMs);
      return;
    }
    if (this.#seenAny) this.#ready.push(this.#batch(nowMs));
    this.#snapshot++;
    this.#share = share;
    this.#edges = edges;
    this.#begin(nowMs);
  }

  add(answered: Answered, traffic: Traffic): void {
    const { session, arm, failed, size, tokensOut, cost } = answered;
    const tally = this.#arms[arm];
    tally.requests++;
    let bits = 0;
    if (failed) {
      tally.failed++;
      bits = MARKS.failed;
      this.#dueMs = Math.min(this.#dueMs, this.#fromMs + TELL_FAILED_MS);
    } else {
      tally.tokensOut += tokensOut;
      tally.cost += cost;
      const edges = this.#edges;
      // Once the edges are frozen nobody goes by the times of stable: they are not drawn, for a simulation that is soon over.
      if (arm === 'stable' && edges) return;
      const ms = traffic.took(answered);
      count((tally.times[size] ??= []), timeBucket(ms));
      count(tally.costs, costBucket(cost));
      const slow = edges?.times[size];
      if (slow && ms > slow.p95) bits |= MARKS.slowP95;
      if (slow && ms > slow.p99) bits |= MARKS.slowP99;
      if (edges?.cost !== undefined && cost > edges.cost) bits |= MARKS.dearP95;
    }
    const code = ARM_CODES[arm];
    const told = code === 2 ? bits & MARKS.failed : bits;
    if (code === 2 && told === 0) return;
    const hash = sessionHash(this.#release, session.name);
    if (code !== 2 && !this.#seen.has(hash)) {
      this.#seen.add(hash);
      this.#firsts.push([hash, code, bits]);
    }
    if (told === 0) return;
    const known = this.#marks.get(hash);
    if (known) known[1] |= told;
    else this.#marks.set(hash, [code, told]);
  }

  /** What is to be told by now. */
  due(nowMs: number): Evidence[] {
    if (nowMs >= this.#dueMs && this.#seenAny) this.#ready.push(this.#batch(nowMs));
    else if (nowMs >= this.#dueMs) this.#begin(nowMs);
    return this.#ready.splice(0);
  }

  get #seenAny(): boolean {
    const { canary, baseline, stable } = this.#arms;
    return canary.requests + baseline.requests + stable.requests > 0;
  }

  #begin(nowMs: number): void {
    this.#fromMs = nowMs;
    this.#dueMs = nowMs + TELL_MS;
  }

  #batch(toMs: number): Evidence {
    const marks = [...this.#marks].map(([hash, [arm, bits]]): Evidence['marks'][number] => [hash, arm, bits]);
    const firsts = lowest(this.#firsts, FIRSTS_MAX);
    const marked = lowest(marks, MARKS_MAX);
    const evidence: Evidence = {
      release: this.#release,
      route: 'chat',
      worker: this.#worker,
      snapshot: this.#snapshot,
      share: this.#share,
      fromMs: this.#fromMs,
      toMs,
      arms: this.#arms,
      firsts: firsts.kept,
      marks: marked.kept,
      firstsBelow: firsts.below,
      marksBelow: marked.below,
      pairs: [],
      skipped: {},
    };
    this.#arms = emptyArms();
    this.#firsts = [];
    this.#marks = new Map();
    this.#dueMs = Number.POSITIVE_INFINITY;
    return evidence;
  }
}

/** Those with the smallest hashes, and the threshold that they lie at or below. */
function lowest<Told extends readonly [session: number, ...unknown[]]>(all: Told[], max: number) {
  if (all.length <= max) return { kept: all, below: 2 ** 32 };
  const kept = all.sort((a, b) => a[0] - b[0]).slice(0, max);
  return { kept, below: kept.at(-1)![0] };
}

function count(buckets: [bucket: number, count: number][], bucket: number): void {
  const known = buckets.find(([own]) => own === bucket);
  if (known) known[1]++;
  else buckets.push([bucket, 1]);
}

function emptyArms(): Record<Arm, ArmEvidence> {
  const empty = () => ({ requests: 0, failed: 0, tokensIn: 0, tokensOut: 0, cost: 0, times: {}, costs: [] });
  return { canary: empty(), baseline: empty(), stable: empty() };
}
