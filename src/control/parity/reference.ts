import type { RouteSettings } from '../../config/schema/index.ts';

/** The backend that the other targets of a route are held against: the one that is named, else the first that answers callers. */
export function referenceOf({ parity, targets }: Pick<RouteSettings, 'parity' | 'targets'>): string {
  return parity?.reference ?? (targets.find(({ weight }) => weight > 0) ?? targets[0]!).backend;
}
