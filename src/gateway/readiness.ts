import type { PipelineSettings } from '../config/schema/index.ts';
import { standingBy } from './release/route-release.ts';
import type { World } from './state/world.ts';

/** Whether a route or a pipeline can be answered now; undefined where there is none of that name any more. */
export function isReady(world: World, name: string, now: number): boolean | undefined {
  const route = world.routes.get(name) ?? world.pipelines.get(name);
  if (!route || route.settings.retired) return undefined;
  if (!route.pipeline) return routeReady(world, name, now);
  return Object.values(route.pipeline.stages).every((stage) => stageReady(world, stage, now));
}

/** Whether an endpoint or a rung can answer the route; a host that is idle can, as it is woken by the request. */
function routeReady(world: World, name: string, now: number): boolean {
  const route = world.routes.get(name);
  if (!route || route.settings.retired) return false;
  const { targets, ladder } = route.settings;
  const reached = (name: string) =>
    world.backends.get(name)?.endpoints.some((each) => each.waitMs(now) === 0) ?? false;
  const usable = (name: string) => world.backends.get(name)?.host?.state === 'idle' || reached(name);
  return (
    targets.some(({ backend, weight }) => weight > 0 && usable(backend)) ||
    standingBy(route.release, route.settings).some(reached) ||
    ladder.some((rung) => 'answer' in rung || ('backend' in rung && usable(rung.backend)))
  );
}

/** A stage asks nobody, or its route can be answered, or it has a way out. */
function stageReady(
  world: World,
  { route, onFailure }: PipelineSettings['stages'][string],
  now: number,
): boolean {
  if (route === undefined || routeReady(world, route, now)) return true;
  if (typeof onFailure === 'object' && 'route' in onFailure) return routeReady(world, onFailure.route, now);
  return onFailure !== 'fail';
}
