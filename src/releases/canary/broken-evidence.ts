import type { ArmEvidence, Evidence } from '../contracts.ts';

/** More size classes than this are no size classes. */
const CLASSES_MAX = 256;
const BUCKET_MAX = 10_000;

/**
 * Which member of evidence cannot be, or undefined where all can: a number that is none, is below zero, or is more than
 * what it is a part of. JSON turns NaN and infinity into null, which is no number either.
 */
export function brokenMember(evidence: Evidence): string | undefined {
  if (!isShare(evidence.share)) return 'share';
  if (!isAmount(evidence.fromMs) || !isAmount(evidence.toMs)) return 'toMs';
  for (const arm of ['canary', 'baseline', 'stable'] as const) {
    const member = brokenArm(evidence.arms[arm]);
    if (member) return `arms.${arm}.${member}`;
  }
  if (
    !evidence.firsts.every(([session, arm, marks]) => isHash(session) && isOf(arm, 1) && isOf(marks, 255))
  ) {
    return 'firsts';
  }
  if (!evidence.marks.every(([session, arm, marks]) => isHash(session) && isOf(arm, 2) && isOf(marks, 255))) {
    return 'marks';
  }
  if (!isAmount(evidence.firstsBelow) || !isAmount(evidence.marksBelow)) return 'firstsBelow';
  const beyond = ({ difference }: { difference: number }) =>
    !Number.isFinite(difference) || Math.abs(difference) > 1;
  if (evidence.pairs.some((pair) => beyond(pair) || !isHash(pair.session))) return 'pairs';
  return Object.values(evidence.skipped).every(isCount) ? undefined : 'skipped';
}

function brokenArm(arm: ArmEvidence): string | undefined {
  for (const member of ['requests', 'failed', 'tokensIn', 'tokensOut'] as const) {
    if (!isCount(arm[member])) return member;
  }
  if (arm.failed > arm.requests) return 'failed';
  if (!isAmount(arm.cost)) return 'cost';
  const classes = Object.values(arm.times);
  if (classes.length > CLASSES_MAX || !classes.every((buckets) => buckets.every(isBucket))) return 'times';
  return arm.costs.every(isBucket) ? undefined : 'costs';
}

function isBucket([bucket, count]: [number, number]): boolean {
  return Number.isInteger(bucket) && Math.abs(bucket) <= BUCKET_MAX && isCount(count);
}

function isShare(value: number): boolean {
  return isAmount(value) && value <= 1;
}

function isAmount(value: number): boolean {
  return Number.isFinite(value) && value >= 0;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function isHash(value: number): boolean {
  return isCount(value) && value < 2 ** 32;
}

function isOf(value: number, most: number): boolean {
  return isCount(value) && value <= most;
}
