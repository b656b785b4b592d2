import type { Exchange } from './exchange.ts';
import type { SessionPlace } from './state/session-places.ts';
import type { World } from './state/world.ts';

/** Where its session was answered last: as it was kept with its turns, else as this worker remembers it. */
export function sessionPlace(world: World, x: Exchange): SessionPlace | undefined {
  const place = x.placeKey === undefined ? undefined : world.sessionPlaces.of(x.placeKey);
  const { last } = x;
  if (!last || place?.backend === last.backend) return place;
  const tier = world.backends.get(last.backend)?.settings.tier;
  return { backend: last.backend, model: last.model, stoodIn: false, home: tier, tier };
}
