import type { Target } from '../../config/redirect.ts';
import type { ReleaseDocument } from './contracts.ts';

/** Weights are told to a millionth of a percent. */
const rounded = (percent: number): number => Number(percent.toFixed(6));

/** What answers beside the canary: the targets that had traffic when the release began. */
export function stableTargets(captured: readonly Target[], canary: string): Target[] {
  return captured.filter(({ backend, weight }) => backend !== canary && weight > 0);
}

/** What a release may need at any moment: where it goes, what it is compared with, and its way back. */
export function neededBackends({ to, baseline, captured }: Readonly<ReleaseDocument>): string[] {
  return [to, baseline ?? [], ...stableTargets(captured, to).map(({ backend }) => backend)].flat();
}

/**
 * A route's targets with the canary at a share of 0 to 1. Weights are percentages; what answered before divides the rest as
 * it did. At 1 it stands by with a weight of 0, so that its way back is seen.
 */
export function dividedTargets(captured: readonly Target[], canary: string, share: number): Target[] {
  const stable = stableTargets(captured, canary);
  const sum = stable.reduce((total, { weight }) => total + weight, 0);
  const rest = stable.map(({ backend, weight }) => ({
    backend,
    weight: rounded((100 * (1 - share) * weight) / sum),
  }));
  const moved = { backend: canary, weight: rounded(100 * share) };
  return share === 1 ? [moved, ...rest] : [...rest, moved];
}
