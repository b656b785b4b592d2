/** What one worker claims of a limit, and whether it holds any of it now. */
export interface Claim {
  units: number;
  holdsNone: boolean;
}

/**
 * Splits `total` whole units among claims: nobody gets more than it claims, and nobody could get more without somebody
 * who has no more than it getting less (max-min fairness, Bertsekas and Gallager, Data Networks, 6.5.2). Where there are
 * fewer units than claims, those that hold none now come first, so that units go round.
 */
export function fairShares(total: number, claims: readonly Claim[]): number[] {
  const order = claims.map((_, index) => index);
  order.sort(
    (a, b) =>
      claims[a]!.units - claims[b]!.units || Number(claims[a]!.holdsNone) - Number(claims[b]!.holdsNone),
  );
  const shares = new Array<number>(claims.length).fill(0);
  let left = Math.max(0, total);
  order.forEach((index, done) => {
    const share = Math.min(claims[index]!.units, Math.floor(left / (order.length - done)));
    shares[index] = share;
    left -= share;
  });
  return shares;
}
