import type { Decision, Policy } from '../contracts.ts';

/** Bounds of what a caller is told to wait before it comes again, milliseconds. */
const AGAIN_MS_MIN = 1_000;
const AGAIN_MS_MAX = 60_000;

export interface FitInput {
  /** Until the deadline; and how long the whole of it is. */
  leftMs: number;
  deadlineMs: number;
  waitMs: number;
  serviceMs: number;
}

export interface Fit {
  fits: boolean;
  /** Where not: in how long one like it would fit. */
  againMs: number;
}

/** Whether one that would have to wait can still be served within its deadline. */
export const deadlineFit: Policy<FitInput, Fit> = {
  name: 'deadline-fit',
  version: 1,
  decide({ leftMs, deadlineMs, waitMs, serviceMs }: FitInput): Decision<Fit> {
    const fits = waitMs + serviceMs <= leftMs;
    const figures = {
      leftMs: Math.round(leftMs),
      waitMs: Math.round(Math.min(waitMs, 86_400_000)),
      serviceMs: Math.round(serviceMs),
    };
    // Its own deadline is whole again when it comes back.
    const againMs = fits ? 0 : boundedAgain(waitMs + serviceMs - deadlineMs);
    return { choice: { fits, againMs }, reason: { code: fits ? 'fits' : 'would-miss-deadline', figures } };
  },
};

export function boundedAgain(ms: number): number {
  return Math.min(AGAIN_MS_MAX, Math.max(AGAIN_MS_MIN, ms));
}

/** Whole seconds, spread upwards by up to a half and one second, so that those refused together do not return together. */
export function retryAfterSeconds(againMs: number, draw: number): number {
  return Math.ceil((againMs / 1000) * (1 + draw / 2) + draw);
}

export { type Ahead, DrainRate } from './drain-rate.ts';
export { ServiceTimes } from './service-times.ts';
