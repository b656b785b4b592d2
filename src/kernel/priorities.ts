/** Priorities of requests, highest first. */
export const priorities = ['critical', 'interactive', 'standard', 'batch'] as const;
export type Priority = (typeof priorities)[number];
