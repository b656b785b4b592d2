import type { PipelineSettings } from '../config/schema/index.ts';
import type { World } from './state/world.ts';

/** Whether a route or a pipeline can be answered now; undefined where there is none of that name. */
export function isReady(world: World, name: string, now: number): boolean | undefined {
  const route = world.routes.get(name) ?? world.pipelines.get(name);
  if (!route) return undefined;
  if (!route.pipeline) return routeReady(world, name, now);
  return Object.values(route.pipeline.stages).every((stage) => stageReady(world, stage, now));
}

/** Whether an endpoint or a rung can answer the route; a host that is idle can, as it is woken by the request. */
function routeReady(world: World, name: string, now: number): boolean {
  const route = world.routes.get(name);
  if (!route) return false;
  const usable = (name: string) => {
    const backend = world.backends.get(name);
    if (!backend) return false;
    return backend.host?.state === 'idle' || backend.endpoints.some((each) => each.waitMs(now) === 0);
  };
  return (
    route.settings.targets.some(({ backend, weight }) => weight > 0 && usable(backend)) ||
    route.settings.ladder.some((rung) => 'answer' in rung || ('backend' in rung && usable(rung.backend)))
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
