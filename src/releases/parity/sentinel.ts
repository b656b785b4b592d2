import { createHash } from 'node:crypto';
import type { Random } from '../../kernel/random.ts';
import { RateWatch } from '../statistics/rate-watch.ts';
import type { GoldenAnswer } from './answers.ts';
import { decide } from './decisions.ts';
import type { GoldenPrompt } from './golden.ts';

export interface SentinelTerms {
  /** The rate of decisions that may be other than an endpoint once gave. */
  usual: number;
  /** The rate of decisions by which endpoints may differ from the reference. */
  apart: number;
  /** Prompts until a false alarm, on average at least, of each watch of each endpoint. */
  runLength: number;
}

/** What the watch over one endpoint is kept as. */
export interface EndpointState {
  /** What it decided when it was first asked, by prompt; null where it did not decide twice the same. */
  frozen: Record<string, string | null>;
  /** Prompts since then, those that were decided otherwise, and those on which it differed from the reference. */
  prompts: number;
  changed: number;
  compared: number;
  apart: number;
  own: number[];
  between: number[];
  /** It is known to be apart from the reference: told once. */
  isApart?: true;
}

export interface Noticed {
  what: 'changed' | 'apart';
  /** Prompts that it took since the watch began. */
  prompts: number;
  count: number;
  evidence: number;
}

/** How often an endpoint may fail on a prompt before it is left aside, so that the others are not kept waiting by it. */
const TRIES_MAX = 3;

/**
 * Watches what the endpoints of a route decide on golden prompts while they serve: each against its own first decisions, and
 * against the reference's on the same prompt at the same time. Pure; prompts are drawn at random, with repetition, so that a
 * rate under its bound stays under it whatever came before.
 */
export class Sentinel {
  readonly #prompts: readonly GoldenPrompt[];
  readonly #terms: SentinelTerms;
  readonly #endpoints: Map<string, EndpointState>;
  /** Of each endpoint, how often it failed on a prompt that it has not decided on. */
  readonly #failures = new Map<string, Map<string, number>>();

  constructor(
    prompts: readonly GoldenPrompt[],
    terms: SentinelTerms,
    state: Record<string, EndpointState> = {},
  ) {
    this.#prompts = prompts;
    this.#terms = terms;
    this.#endpoints = new Map(Object.entries(structuredClone(state)));
  }

  get state(): Record<string, EndpointState> {
    return Object.fromEntries(this.#endpoints);
  }

  /** Endpoints that are no more are forgotten. */
  keep(endpoints: readonly string[]): void {
    for (const endpoint of this.#endpoints.keys())
      if (!endpoints.includes(endpoint)) this.#endpoints.delete(endpoint);
    for (const endpoint of this.#failures.keys())
      if (!endpoints.includes(endpoint)) this.#failures.delete(endpoint);
  }

  /**
   * Its first decisions are what it is watched against: a prompt that it has not decided on; undefined where there is none, save
   * those that it fails on.
   */
  unfrozen(endpoint: string): GoldenPrompt | undefined {
    const frozen = this.#endpoints.get(endpoint)?.frozen ?? {};
    const failures = this.#failures.get(endpoint);
    return this.#prompts.find(({ id }) => !Object.hasOwn(frozen, id) && (failures?.get(id) ?? 0) < TRIES_MAX);
  }

  /** It did not answer a prompt that it has not decided on. One that it answers when it is drawn comes back. */
  failed(endpoint: string, prompt: GoldenPrompt): void {
    const failures = this.#failures.get(endpoint) ?? new Map<string, number>();
    failures.set(prompt.id, (failures.get(prompt.id) ?? 0) + 1);
    this.#failures.set(endpoint, failures);
  }

  /** A prompt that is put to every endpoint at one time. */
  draw(random: Random): GoldenPrompt {
    return this.#prompts[Math.floor(random.next() * this.#prompts.length)]!;
  }

  /** First decisions, two of one prompt, the second in company. */
  freeze(endpoint: string, prompt: GoldenPrompt, answers: readonly [GoldenAnswer, GoldenAnswer]): void {
    const [first, second] = answers.map((answer) => digest(decide(prompt.decision, answer).decision));
    this.#of(endpoint).frozen[prompt.id] = first === second ? first! : null;
  }

  /** One round: one prompt, and what the endpoints answered. Gives what is noticed now, by endpoint. */
  observe(
    prompt: GoldenPrompt,
    answers: ReadonlyMap<string, GoldenAnswer>,
    reference: string | undefined,
  ): Map<string, Noticed> {
    const decisions = new Map(
      [...answers].map(([endpoint, answer]) => [endpoint, digest(decide(prompt.decision, answer).decision)]),
    );
    const noticed = new Map<string, Noticed>();
    for (const [endpoint, decision] of decisions) {
      this.#failures.get(endpoint)?.delete(prompt.id);
      const asIt = reference === undefined || endpoint === reference ? undefined : decisions.get(reference);
      const found = this.#compared(endpoint, prompt.id, decision, asIt);
      if (found) noticed.set(endpoint, found);
    }
    return noticed;
  }

  /** What was noticed is how it is now: it is frozen anew. */
  renew(endpoint: string): void {
    this.#endpoints.delete(endpoint);
  }

  #compared(
    endpoint: string,
    prompt: string,
    decision: string,
    reference: string | undefined,
  ): Noticed | undefined {
    const { usual, apart, runLength } = this.#terms;
    const state = this.#of(endpoint);
    state.prompts++;
    const frozen = state.frozen[prompt];
    if (typeof frozen === 'string') {
      const changed = frozen !== decision;
      if (changed) state.changed++;
      const watch = new RateWatch(usual, runLength, state.own);
      const alarm = watch.observe(changed);
      state.own = [...watch.values];
      if (alarm)
        return { what: 'changed', prompts: state.prompts, count: state.changed, evidence: watch.evidence };
    }
    if (reference === undefined) return undefined;
    state.compared++;
    if (reference !== decision) state.apart++;
    const watch = new RateWatch(apart, runLength, state.between);
    const alarm = watch.observe(reference !== decision);
    state.between = [...watch.values];
    if (!alarm || state.isApart) return undefined;
    state.isApart = true;
    return { what: 'apart', prompts: state.compared, count: state.apart, evidence: watch.evidence };
  }

  #of(endpoint: string): EndpointState {
    let state = this.#endpoints.get(endpoint);
    if (!state) {
      state = { frozen: {}, prompts: 0, changed: 0, compared: 0, apart: 0, own: [], between: [] };
      this.#endpoints.set(endpoint, state);
    }
    return state;
  }
}

/** Decisions may be long texts: what is kept of one is short. */
function digest(decision: string): string {
  return createHash('sha256').update(decision).digest('base64url').slice(0, 16);
}
