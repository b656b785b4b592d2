import type { Change, Finding } from './contracts.ts';

/** A change that was told, and what has come of it. */
export interface Incident {
  /** The event that told of it. */
  event: string;
  openedAtMs: number;
  first: Finding;
  /** Rows of the feature when it was told. */
  rowsThen: number;
  /** It was found again since. */
  again: boolean;
  /** Other things that were found while it is open. */
  also: { feature: string; change: Change; direction: string }[];
  confirmedAtMs?: number;
}

export interface IncidentRules {
  /** Milliseconds after an incident that has passed in which nothing is told. */
  cooldownMs: number;
  /** Rows since the change was found after which it counts as one that stays, if it was found again by then. */
  freshRows: number;
}

interface State {
  open?: Incident;
  endedAtMs?: number;
  held: number;
}

/** Other findings that an incident names. */
const ALSO_MAX = 20;
/** A change is given so many times the rows that it took to be found, to be found again. */
const PATIENCE = 3;

/**
 * At most one incident of a route and backend is open. It is found again within enough fresh rows, and is confirmed; or it
 * is not, has passed, and nothing is told for a while.
 */
export class Incidents {
  readonly #rules: IncidentRules;
  #state: State = { held: 0 };

  constructor(rules: IncidentRules) {
    this.#rules = rules;
  }

  get open(): Incident | undefined {
    return this.#state.open;
  }

  /** Findings that were not told as it was too soon after the one before. */
  get held(): number {
    return this.#state.held;
  }

  /** Takes a finding: true where it opens an incident, for which `opened` is then to be called. */
  found(finding: Finding, wallMs: number): boolean {
    const { open, endedAtMs } = this.#state;
    if (open) {
      const { feature, change, direction } = finding;
      const isSame = open.first.feature === feature && open.first.change === change;
      if (isSame) open.again = true;
      else if (
        open.also.length < ALSO_MAX &&
        !open.also.some((each) => each.feature === feature && each.change === change)
      )
        open.also.push({ feature, change, direction });
      return false;
    }
    if (endedAtMs === undefined || wallMs - endedAtMs >= this.#rules.cooldownMs) return true;
    this.#state.held++;
    return false;
  }

  opened(event: string, first: Finding, rowsThen: number, wallMs: number): void {
    this.#state.open = { event, openedAtMs: wallMs, first, rowsThen, again: false, also: [] };
  }

  /** To be called with how many rows its feature has now: what has come of the open incident with them. */
  aged(rows: number, wallMs: number): 'confirmed' | 'passed' | undefined {
    const { open } = this.#state;
    if (!open || open.confirmedAtMs !== undefined) return undefined;
    const fresh = rows - open.rowsThen;
    if (fresh < this.#rules.freshRows) return undefined;
    if (open.again) {
      open.confirmedAtMs = wallMs;
      return 'confirmed';
    }
    return fresh >= PATIENCE * open.first.since ? 'passed' : undefined;
  }

  /** The incident is over. */
  end(wallMs: number): void {
    delete this.#state.open;
    this.#state.endedAtMs = wallMs;
  }

  toJSON(): State {
    return this.#state;
  }

  restore(state: State): void {
    this.#state = state;
  }
}
