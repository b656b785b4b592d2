/** What one worker claims of a limit. */
export interface Claim {
  units: number;
  /** Where there are fewer units than workers, those of higher rank get one. */
  rank: number;
}

/**
 * Splits `total` whole units among claims: nobody gets more than it claims, and nobody could get more without somebody
 * who has no more than it getting less (max-min fairness, Bertsekas and Gallager, Data Networks, 6.5.2).
 */
export function fairShares(total: number, claims: readonly Claim[]): number[] {
  const shares = new Array<number>(claims.length).fill(0);
  const claiming = claims.map((_, index) => index).filter((index) => claims[index]!.units > 0);
  let left = Math.max(0, total);
  if (left < claiming.length) {
    claiming.sort((a, b) => claims[b]!.rank - claims[a]!.rank);
    for (const index of claiming.slice(0, left)) shares[index] = 1;
    return shares;
  }
  claiming.sort((a, b) => claims[a]!.units - claims[b]!.units);
  claiming.forEach((index, done) => {
    const share = Math.min(claims[index]!.units, Math.floor(left / (claiming.length - done)));
    shares[index] = share;
    left -= share;
  });
  return shares;
}
