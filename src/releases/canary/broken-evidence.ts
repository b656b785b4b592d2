import { isMap } from '../../config/shape.ts';
import type { Evidence } from '../contracts.ts';

/** More size classes than this are no size classes. */
const CLASSES_MAX = 256;
const BUCKET_MAX = 10_000;

/**
 * Which member of evidence cannot be, or undefined where all can: a number that is none, is below zero, or is more than
 * what it is a part of. JSON turns NaN and infinity into null, which is no number either. It has been through files and
 * sockets, so that any member may be missing.
 */
export function brokenMember(evidence: Evidence): string | undefined {
  if (!(isAmount(evidence.share) && evidence.share <= 1)) return 'share';
  if (!isAmount(evidence.fromMs) || !isAmount(evidence.toMs)) return 'toMs';
  for (const arm of ['canary', 'baseline', 'stable'] as const) {
    const member = brokenArm(evidence.arms?.[arm]);
    if (member) return `arms.${arm}.${member}`;
  }
  if (!areSessions(evidence.firsts, 1)) return 'firsts';
  if (!areSessions(evidence.marks, 2)) return 'marks';
  if (!isAmount(evidence.firstsBelow) || !isAmount(evidence.marksBelow)) return 'firstsBelow';
  if (!isListOf(evidence.pairs, isPair)) return 'pairs';
  return isMap(evidence.skipped) && Object.values(evidence.skipped).every(isCount) ? undefined : 'skipped';
}

function brokenArm(arm: unknown): string | undefined {
  if (!isMap(arm)) return 'requests';
  const { requests, failed, tokensIn, tokensOut, cost, times, costs } = arm;
  if (!isCount(requests)) return 'requests';
  if (!isCount(failed) || failed > requests) return 'failed';
  if (!isCount(tokensIn)) return 'tokensIn';
  if (!isCount(tokensOut)) return 'tokensOut';
  if (!isAmount(cost)) return 'cost';
  if (!isMap(times) || Object.keys(times).length > CLASSES_MAX) return 'times';
  if (!Object.values(times).every((buckets) => isListOf(buckets, isBucket))) return 'times';
  return isListOf(costs, isBucket) ? undefined : 'costs';
}

function isBucket(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  const [bucket, count] = value;
  return Number.isInteger(bucket) && Math.abs(bucket) <= BUCKET_MAX && isCount(count);
}

function areSessions(told: unknown, armMax: number): boolean {
  return isListOf(told, (value) => {
    if (!Array.isArray(value)) return false;
    const [session, arm, marks] = value;
    return isHash(session) && isCount(arm) && arm <= armMax && isCount(marks) && marks <= 255;
  });
}

function isPair(value: unknown): boolean {
  if (!isMap(value)) return false;
  const { session, difference } = value;
  return isHash(session) && Number.isFinite(difference) && Math.abs(difference as number) <= 1;
}

function isListOf(value: unknown, is: (value: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(is);
}

function isAmount(value: unknown): value is number {
  return Number.isFinite(value) && (value as number) >= 0;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isHash(value: unknown): boolean {
  return isCount(value) && value < 2 ** 32;
}
