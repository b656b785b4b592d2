import type { Failure } from '../kernel/errors.ts';
import type { Exchange } from './exchange.ts';
import { forbidden } from './failures.ts';
import { mayCall } from './identify.ts';
import { unknownRoute } from './own-answers.ts';
import type { Route, World } from './state/world.ts';

/**
 * The route or the pipeline of that name; why not, where there is none that this tenant may call. A stage asks routes alone, and
 * ends by those that its pipeline was admitted on, where the present snapshot has them no more; so does what Armature asks for
 * its own ends.
 */
export function findRoute(x: Exchange, name: string, world: World): Route | Failure {
  const isStage = x.terms !== undefined && x.terms.charged !== 'request';
  const route = world.routes.get(name);
  if (isStage) return route ?? x.terms!.routes?.get(name) ?? unknownRoute(name, x.tenant, world);
  const found = route ?? world.pipelines.get(name);
  if (!found) return unknownRoute(name, x.tenant, world);
  return mayCall(world, x.tenant, name) ? found : forbidden(name);
}
