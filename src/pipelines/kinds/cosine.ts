/** From -1 to 1; 0 where one of them is no direction. Both have the same length. */
export function cosine(a: readonly number[], b: readonly number[]): number {
  let product = 0;
  let squareA = 0;
  let squareB = 0;
  for (let i = 0; i < a.length; i++) {
    product += a[i]! * b[i]!;
    squareA += a[i]! * a[i]!;
    squareB += b[i]! * b[i]!;
  }
  const lengths = Math.sqrt(squareA) * Math.sqrt(squareB);
  if (!(lengths > 0 && lengths < Number.POSITIVE_INFINITY)) return 0;
  return Math.max(-1, Math.min(1, product / lengths)); // rounding may go a little beyond
}
