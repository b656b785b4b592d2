import { isMap } from './shape.ts';

/**
 * Whether two lists of targets, as they are written, send the same share of a route's traffic to the same backends, in
 * whichever order: weights count relative to one another, and a target of weight 0 is none.
 */
export function sameTargets(a: unknown, b: unknown): boolean {
  const [one, other] = [sharesOf(a), sharesOf(b)];
  if (!one || !other || one.size !== other.size) return false;
  return [...one].every(([backend, share]) => Math.abs((other.get(backend) ?? -1) - share) < 1e-9);
}

/** Shares that sum to 1, by backend; undefined for what is no list of targets. */
function sharesOf(targets: unknown): Map<string, number> | undefined {
  if (!Array.isArray(targets)) return undefined;
  const shares = new Map<string, number>();
  for (const target of targets) {
    if (!isMap(target) || typeof target['backend'] !== 'string') return undefined;
    const weight = target['weight'] ?? 1;
    if (typeof weight !== 'number') return undefined;
    if (weight > 0) shares.set(target['backend'], weight);
  }
  const sum = [...shares.values()].reduce((total, weight) => total + weight, 0);
  for (const [backend, weight] of shares) shares.set(backend, weight / sum);
  return shares;
}
