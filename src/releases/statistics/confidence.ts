/** The constant of ρ for a chance of error of 0.05. */
const C = 8.122719;

/**
 * How far a distribution that was counted from `count` (1 or more) independent values may be from the true one, as a share
 * of all values, at any place and at any time: a band that is left with a chance of at most 0.05.
 * Formula: 0.85 √((ln(1 + ln t) + C) / t), Howard and Ramdas, arXiv 1906.09712, theorem 2.
 */
export function rho(count: number): number {
  return 0.85 * Math.sqrt((Math.log(1 + Math.log(count)) + C) / count);
}
