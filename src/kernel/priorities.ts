/** Priorities of requests, highest first. */
export const priorities = ['critical', 'interactive', 'standard', 'batch'] as const;
export type Priority = (typeof priorities)[number];

/** 0 is the highest. */
export function rankOf(priority: Priority): number {
  return priorities.indexOf(priority);
}
