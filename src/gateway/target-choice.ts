import type { TargetInput } from '../policies/target-by-weight/index.ts';
import type { Exchange } from './exchange.ts';
import type { SessionPlaces } from './state/session-places.ts';
import type { Target } from './state/world.ts';

/** What the choice among targets is taken on: for a session with what answered it last, and which target came later. */
export function targetInput(
  x: Exchange,
  targets: readonly Target[],
  places: SessionPlaces | undefined,
): TargetInput {
  const { session } = x;
  if (session === undefined)
    return { session, targets: targets.map(({ name, weight }) => ({ name, weight })) };
  const remembered = x.placeKey === undefined ? undefined : places?.of(x.placeKey);
  const last = x.last?.backend ?? remembered?.backend;
  return {
    session,
    targets: targets.map(({ name, weight, since, backend }) => ({
      name,
      weight,
      since: since ?? 0,
      model: backend.model,
    })),
    ...(last === undefined
      ? {}
      : { last, stoodIn: remembered?.backend === last ? remembered.stoodIn : false }),
  };
}
