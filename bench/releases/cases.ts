import { type Evidence, MARKS } from '../../src/events/contracts.ts';
import type { ReleaseEnd, ReleaseSettings } from './simulated.ts';

const HOUR_MS = 3_600_000;
const ALIKE = { sessionsFailing: 1, requestsFailing: 1, slowest: 1, cost: 1 };

/** As `routes.R.release` has it where nothing else is said, watched for a shorter time. */
const PLAN: ReleaseSettings['plan'] = {
  gates: [],
  plan: [1, 5, 25, 50, 100],
  step: { sessionsMin: 100, timeMinMs: 600_000 },
  deadlineMs: 24 * HOUR_MS,
  watchMs: HOUR_MS / 6,
  alpha: 0.05,
  ratioMax: 2,
  errorRateMax: 0.01,
  qualityMargin: 0.05,
  metrics: ['errors', 'latency'],
};

export interface Case {
  says: string;
  /** For sessions of so many requests. */
  settings: (requestsOfSession: number) => Omit<ReleaseSettings, 'seed'>;
  /** What has to come of it. */
  wants: 'promoted' | 'aborted' | 'never-promoted';
}

function alike(requestsOfSession: number): Omit<ReleaseSettings, 'seed'> {
  const failing = requestsOfSession === 1 ? 0.01 : 0.02;
  return { traffic: { requestsPerSecond: 20, requestsOfSession, failing }, difference: ALIKE, plan: PLAN };
}

function different(difference: Partial<typeof ALIKE>): Case['settings'] {
  return (requestsOfSession) => ({ ...alike(requestsOfSession), difference: { ...ALIKE, ...difference } });
}

/** Weights that somebody else moves, up and down, every twenty minutes once the canary has begun. */
const weights: NonNullable<ReleaseSettings['weights']> = (atMs, share) => {
  if (share === 0 || share === 1) return share;
  return [share, 0.1, 0.3, 0.02, 0.5][Math.floor(atMs / (HOUR_MS / 3)) % 5]!;
};

/** A figure of a batch that is none, in one batch of two hundred. */
function notNumbers(evidence: Evidence, random: { next(): number }): Evidence {
  if (random.next() >= 0.005) return evidence;
  const { arms } = evidence;
  return { ...evidence, arms: { ...arms, canary: { ...arms.canary, failed: Number.NaN } } };
}

/** Nothing is ever told of the canary. */
function silent(evidence: Evidence): Evidence {
  const { canary, ...others } = evidence.arms;
  const nothing = {
    ...canary,
    requests: 0,
    failed: 0,
    tokensIn: 0,
    tokensOut: 0,
    cost: 0,
    times: {},
    costs: [],
  };
  return {
    ...evidence,
    arms: { canary: nothing, ...others },
    firsts: evidence.firsts.filter(([, arm]) => arm === 1),
    marks: evidence.marks.filter(([, arm]) => arm !== 0),
  };
}

/** Nothing is told of how long the canary took, nor that it was slow. */
function untimed(evidence: Evidence): Evidence {
  const { canary, ...others } = evidence.arms;
  const failedOnly = <Told extends [number, number, number]>([session, arm, marks]: Told) =>
    [session, arm, arm === 0 ? marks & MARKS.failed : marks] as Told;
  return {
    ...evidence,
    arms: { canary: { ...canary, times: {} }, ...others },
    firsts: evidence.firsts.map(failedOnly),
    marks: evidence.marks.map(failedOnly),
  };
}

export const CASES: Record<string, Case> = {
  equal: { says: 'no difference', settings: alike, wants: 'promoted' },
  'no-errors': {
    says: 'no difference, no errors anywhere',
    settings: (of) => ({ ...alike(of), traffic: { ...alike(of).traffic, failing: 0 } }),
    wants: 'promoted',
  },
  auto: {
    says: 'no difference, shares by information gained',
    settings: (of) => ({ ...alike(of), plan: { ...PLAN, plan: 'auto' } }),
    wants: 'promoted',
  },
  errors: {
    says: 'twice the errors: twice as many sessions in trouble',
    settings: different({ sessionsFailing: 2 }),
    wants: 'aborted',
  },
  deeper: {
    says: 'twice the errors: each request of a session in trouble fails twice as often',
    settings: (of) =>
      of === 1 ? different({ sessionsFailing: 2 })(of) : different({ requestsFailing: 2 })(of),
    wants: 'aborted',
  },
  slow: { says: 'p99 doubled', settings: different({ slowest: 2 }), wants: 'aborted' },
  dear: {
    says: 'twice the cost',
    settings: (of) => ({
      ...different({ cost: 2 })(of),
      plan: { ...PLAN, metrics: ['errors', 'latency', 'cost'] },
    }),
    wants: 'aborted',
  },
  'weights-equal': {
    says: 'no difference, weights changed mid-way',
    settings: (of) => ({ ...alike(of), weights }),
    wants: 'promoted',
  },
  'weights-errors': {
    says: 'twice the errors, weights changed mid-way',
    settings: (of) => ({ ...different({ sessionsFailing: 2 })(of), weights }),
    wants: 'aborted',
  },
  'weights-slow': {
    says: 'p99 doubled, weights changed mid-way',
    settings: (of) => ({ ...different({ slowest: 2 })(of), weights }),
    wants: 'aborted',
  },
  idle: {
    says: 'no traffic',
    settings: (of) => ({ ...alike(of), traffic: { ...alike(of).traffic, requestsPerSecond: 0 } }),
    wants: 'never-promoted',
  },
  silent: {
    says: 'nothing told of the canary',
    settings: (of) => ({ ...slowly(of), spoil: silent }),
    wants: 'never-promoted',
  },
  untimed: {
    says: 'no times told of the canary',
    settings: (of) => ({ ...slowly(of), spoil: untimed }),
    wants: 'never-promoted',
  },
  nan: {
    says: 'figures that are none',
    settings: (of) => ({ ...slowly(of), spoil: notNumbers }),
    wants: 'never-promoted',
  },
};

/** Releases that wait for their deadline take a whole day: less traffic. */
function slowly(of: number): Omit<ReleaseSettings, 'seed'> {
  return { ...alike(of), traffic: { ...alike(of).traffic, requestsPerSecond: 1 } };
}

/** An end for harm that was seen, rightly or not. */
export function isAbort({ how, reason }: ReleaseEnd): boolean {
  return how === 'rolled-back' && reason.code !== 'release-deadline-passed';
}
