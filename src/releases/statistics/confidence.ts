/** Of ρ: the constant for a chance of error of 0.025 for one distribution, that is, of 0.05 for two. */
export const RHO_C_HALF = 8.6226;
/** The same for 0.05. */
export const RHO_C = 8.122719;

/**
 * How far a distribution that was counted from `count` (1 or more) independent values may be from the true one, at any
 * place and at any time: a band that is left with a chance of at most the error that `c` stands for.
 * Formula: 0.85 √((ln(1 + ln t) + C) / t), Howard and Ramdas, arXiv 1906.09712, theorem 2.
 */
export function rho(count: number, c = RHO_C): number {
  return 0.85 * Math.sqrt((Math.log(1 + Math.log(count)) + c) / count);
}
