import type { RequestRecord } from '../events/contracts.ts';
import type { Priority } from '../kernel/priorities.ts';
import { Durations, type Spread as FullSpread } from '../telemetry/durations.ts';
import type { SimulatedCaller } from './caller.ts';
import type { Arrival } from './contracts.ts';

/** Percentiles of a duration, milliseconds. */
export type Spread = Omit<FullSpread, 'p999'>;

/** What became of the requests of one route, tenant and priority. */
export interface GroupReport {
  route: string;
  tenant: string;
  priority: Priority | 'default';
  offered: number;
  /** Answered in full, and within the deadline. */
  good: number;
  /** Answered in full. */
  ok: number;
  degraded: number;
  refused: number;
  failed: number;
  /** The caller left. */
  left: number;
  /** Answered by each rung. */
  rungs: Record<string, number>;
  /** Refused and failed: by `CODE (REASON)`, the reason being the last thing that was decided before. */
  reasons: Record<string, number>;
  promptTokens: number;
  outputTokens: number;
  /** Of answers, full or not; a whole one has its first token with its end. */
  firstToken: Spread | undefined;
  total: Spread | undefined;
  /** From coming to being told no. */
  refusal: Spread | undefined;
}

/** Groups at most; what comes beyond is counted in the last. */
const GROUPS_MAX = 1000;

class Group {
  readonly report: GroupReport;
  readonly #firstToken = new Durations();
  readonly #total = new Durations();
  readonly #refusal = new Durations();

  constructor({ route, tenant, priority }: Pick<Arrival, 'route' | 'tenant' | 'priority'>) {
    this.report = {
      route,
      tenant: tenant ?? '',
      priority: priority ?? 'default',
      offered: 0,
      good: 0,
      ok: 0,
      degraded: 0,
      refused: 0,
      failed: 0,
      left: 0,
      rungs: {},
      reasons: {},
      promptTokens: 0,
      outputTokens: 0,
      firstToken: undefined,
      total: undefined,
      refusal: undefined,
    };
  }

  add(
    caller: SimulatedCaller,
    deadlineMs: number,
  ): 'good' | 'late' | 'degraded' | 'refused' | 'failed' | 'left' {
    const { report } = this;
    const { arrival, startedAt, endedAt, status } = caller;
    if (caller.left) {
      report.left++;
      return 'left';
    }
    if (status !== 200 || caller.broken) {
      const refused = (status === 429 || status === 503) && !caller.broken;
      if (refused) {
        report.refused++;
        this.#refusal.add(endedAt - startedAt);
      } else report.failed++;
      return refused ? 'refused' : 'failed';
    }
    const firstAt = caller.firstAt ?? endedAt;
    this.#firstToken.add(firstAt - startedAt);
    this.#total.add(endedAt - startedAt);
    const { degraded } = caller;
    if (degraded !== undefined) {
      report.degraded++;
      bump(report.rungs, degraded);
      return 'degraded';
    }
    report.ok++;
    report.promptTokens += arrival.promptTokens;
    report.outputTokens += arrival.outputTokens;
    const inTime = (arrival.stream ? firstAt : endedAt) - startedAt <= deadlineMs;
    if (inTime) report.good++;
    return inTime ? 'good' : 'late';
  }

  finish(): GroupReport {
    return {
      ...this.report,
      firstToken: told(this.#firstToken),
      total: told(this.#total),
      refusal: told(this.#refusal),
    };
  }
}

/** Counts what happened since it was last asked: the series over time are made of it. */
export interface Tally {
  offered: number;
  good: number;
  late: number;
  degraded: number;
  refused: number;
  failed: number;
  left: number;
}

const NOTHING: Tally = { offered: 0, good: 0, late: 0, degraded: 0, refused: 0, failed: 0, left: 0 };

/** Counts what becomes of the requests of a simulation. */
export class Recorder {
  readonly #groups = new Map<string, Group>();
  readonly #all = new Group({ route: 'all', tenant: '', priority: undefined });
  readonly #deadlineMs: (route: string) => number;
  #last: { arrival: Arrival; group: Group } | undefined;
  #tally = { ...NOTHING };
  offered = 0;
  ended = 0;

  /** `deadlineMs`: that of a route, where a request asks for none of its own. */
  constructor(deadlineMs: (route: string) => number) {
    this.#deadlineMs = deadlineMs;
  }

  offer(arrival: Arrival): void {
    this.offered++;
    this.#tally.offered++;
    this.#all.report.offered++;
    this.#of(arrival).report.offered++;
  }

  answered(caller: SimulatedCaller): void {
    const { arrival } = caller;
    const routes = this.#deadlineMs(arrival.route);
    const deadlineMs = Math.min(routes, arrival.deadlineMs ?? routes);
    const what = this.#of(arrival).add(caller, deadlineMs);
    this.#all.add(caller, deadlineMs);
    this.ended++;
    this.#tally[what]++;
  }

  /** Why a request was refused or failed; its record comes after its answer. */
  explained(caller: SimulatedCaller | undefined, record: RequestRecord): void {
    if (
      !caller ||
      (record.outcome !== 'refused' && record.outcome !== 'failed' && record.outcome !== 'invalid')
    )
      return;
    let why = '';
    for (let i = record.steps.length - 1; i >= 0; i--) {
      const { what, code } = record.steps[i]!;
      if (what === 'answer' && code === record.code) continue;
      why = code;
      break;
    }
    const code = record.code ?? String(record.status);
    const reason = why === '' || why === 'admitted' ? code : `${code} (${why})`;
    bump(this.#all.report.reasons, reason);
    bump(this.#of(caller.arrival).report.reasons, reason);
  }

  /** What happened since it was last asked. */
  take(): Tally {
    const tally = this.#tally;
    this.#tally = { ...NOTHING };
    return tally;
  }

  all(): GroupReport {
    return this.#all.finish();
  }

  groups(): GroupReport[] {
    const all = [...this.#groups.values()].map((group) => group.finish());
    const key = ({ route, tenant, priority }: GroupReport) => `${route}\u0000${tenant}\u0000${priority}`;
    return all.sort((a, b) => (key(a) < key(b) ? -1 : 1));
  }

  #of(arrival: Arrival): Group {
    if (this.#last?.arrival === arrival) return this.#last.group;
    const key = `${arrival.route}\u0000${arrival.tenant ?? ''}\u0000${arrival.priority ?? ''}`;
    let group = this.#groups.get(key);
    if (!group) {
      group = this.#groups.size < GROUPS_MAX ? new Group(arrival) : [...this.#groups.values()].at(-1)!;
      this.#groups.set(key, group);
    }
    this.#last = { arrival, group };
    return group;
  }
}

/** As a report has it: to the microsecond, and no further than there are requests enough for. */
function told(durations: Durations): Spread | undefined {
  const spread = durations.spread();
  if (!spread) return undefined;
  const { p999: _p999, ...rest } = spread;
  return { ...rest, mean: Math.round(rest.mean * 1000) / 1000 };
}

function bump(counts: Record<string, number>, key: string): void {
  counts[key] = (counts[key] ?? 0) + 1;
}
