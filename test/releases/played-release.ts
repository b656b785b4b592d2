import { mix32 } from '../../src/kernel/hash.ts';
import type { ReleasePlan } from '../../src/releases/canary/contracts.ts';
import { CanaryMachine } from '../../src/releases/canary/machine.ts';
import { type Action, type ArmEvidence, type Evidence, MARKS } from '../../src/releases/contracts.ts';

export const HOUR_MS = 3_600_000;
const PLAN: ReleasePlan = {
  id: 'rel_1',
  route: 'chat',
  canary: 'next',
  gates: [],
  plan: [5, 25, 50, 100],
  step: { sessionsMin: 100, timeMinMs: 600_000 },
  deadlineMs: 24 * HOUR_MS,
  watchMs: HOUR_MS,
  alpha: 0.05,
  ratioMax: 2,
  errorRateMax: 0.01,
  qualityMargin: 0.05,
  metrics: ['errors'],
};

export function arm(requests = 0, failed = 0, times: ArmEvidence['times'] = {}): ArmEvidence {
  return { requests, failed, tokensIn: 0, tokensOut: 0, cost: 0, times, costs: [] };
}

/** A release that time and evidence are given to by the minute; what it wants is carried out at once. */
export class Played {
  machine: CanaryMachine;
  nowMs = 1_780_000_000_000;
  readonly actions: Action[] = [];
  #sessions = 0;
  #events = 0;

  constructor(plan: Partial<ReleasePlan> = {}) {
    this.machine = CanaryMachine.begin({ ...PLAN, ...plan }, this.nowMs);
  }

  get share(): number {
    return this.machine.report(this.nowMs).share;
  }

  get last(): string | undefined {
    return this.actions.at(-1)?.reason.code;
  }

  /** So many sessions of one request in the minute, every so many of which are marked; `told` spoils what is told. */
  minute(
    sessions: number,
    every: { canary?: number; stable?: number } = {},
    told: Partial<Evidence> = {},
  ): this {
    const share = this.share;
    const evidence = this.empty();
    const counts = { canary: arm(), baseline: arm(), stable: arm() };
    for (let i = 0; i < sessions; i++) {
      const place = (this.#sessions * 0.618034) % 1;
      const hash = mix32(this.#sessions++);
      const own = place < share ? 'canary' : place >= 1 - Math.min(share, 1 - share) ? 'baseline' : 'stable';
      const count = counts[own];
      const period = own === 'canary' ? every.canary : every.stable;
      const failed = period !== undefined && count.requests % period === period - 1;
      count.requests++;
      if (failed) count.failed++;
      const marks = failed ? MARKS.failed : 0;
      const code = { canary: 0, baseline: 1, stable: 2 }[own] as 0 | 1 | 2;
      if (code !== 2) evidence.firsts.push([hash, code, marks]);
      if (marks) evidence.marks.push([hash, code, marks]);
    }
    return this.tell({ ...evidence, arms: counts, ...told }).pass(60_000);
  }

  empty(): Evidence {
    const arms = { canary: arm(), baseline: arm(), stable: arm() };
    const of = { release: 'rel_1', route: 'chat', worker: 0, snapshot: 1, share: this.share };
    const times = { fromMs: this.nowMs, toMs: this.nowMs + 60_000 };
    const all = { firstsBelow: 2 ** 32, marksBelow: 2 ** 32, pairs: [], skipped: {} };
    return { ...of, ...times, arms, firsts: [], marks: [], ...all };
  }

  tell(evidence: Evidence): this {
    this.machine.evidence({ event: `evt_${++this.#events}`, evidence });
    return this;
  }

  pass(ms: number): this {
    this.nowMs += ms;
    for (let action = this.act(); action; action = this.act());
    return this;
  }

  act(): boolean {
    const actions = this.machine.advance(this.nowMs);
    for (const action of actions) {
      this.actions.push(action);
      this.machine.done(action, this.nowMs);
    }
    return actions.some(({ do: what }) => what !== 'hold');
  }

  until(of: () => void, minutes = 24 * 60): this {
    for (let i = 0; i < minutes && !this.machine.report(this.nowMs).ended; i++) of();
    return this;
  }

  get said(): string[] {
    return this.actions.map((action) => action.reason.code);
  }
}
