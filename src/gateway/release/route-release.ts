import type { RouteSettings } from '../../config/schema/index.ts';
import type { ReleaseArms, Snapshot } from '../../links/messages.ts';
import type { Backend } from '../state/world.ts';

/** The release of a route as one snapshot has it: an object of its own for each, so that evidence is told by snapshots. */
export interface RouteRelease {
  arms: ReleaseArms;
  route: string;
  snapshot: number;
  /** Whether each backend that may answer has a price: costs are compared by it only then. */
  priced: boolean;
}

export function releaseOf(
  { releases, number, settings }: Snapshot,
  route: string,
  backends: ReadonlyMap<string, Backend>,
): RouteRelease | undefined {
  const arms = releases?.[route];
  if (!arms) return undefined;
  const { canary, baseline } = arms;
  const named = settings.routes[route]!.targets.map(({ backend }) => backend).concat(canary, baseline ?? []);
  const priced = named.every((name) => backends.get(name)?.settings.price !== undefined);
  return { arms, route, snapshot: number, priced };
}

/** Backends that the canary has replaced: they have no weight any more, and stand in for it while they may be gone back to. */
export function standingBy(release: RouteRelease | undefined, { targets }: RouteSettings): string[] {
  if (release?.arms.share !== 1) return [];
  return targets.flatMap(({ backend, weight }) => (weight === 0 ? backend : []));
}

/** The canary that has been taken back by this snapshot, if one was: it has less of the sessions than the release gave it. */
export function takenBack(
  before: RouteRelease | undefined,
  now: RouteRelease | undefined,
  targets: readonly { backend: string; weight: number }[],
): string | undefined {
  if (!before || before.arms.share === 0) return undefined;
  if (now?.arms.id === before.arms.id && now.arms.share > 0) return undefined;
  const { canary, share } = before.arms;
  const total = targets.reduce((sum, { weight }) => sum + weight, 0);
  const weight = targets.find(({ backend }) => backend === canary)?.weight ?? 0;
  return weight / total < share - 1e-9 ? canary : undefined;
}
