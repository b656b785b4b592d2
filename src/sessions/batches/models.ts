import { mayCall, type Path } from '../../gateway/contracts.ts';

type World = Path['deps']['world'];

/** Whether the tenant is still one; without tenants there is one for everybody. */
export function isTenant(world: World, tenant: string): boolean {
  return world.tenants === undefined || world.tenants.has(tenant);
}

/** Why a tenant cannot ask this model on OpenAI's API, in words; undefined where it can. */
export function whyNotModel(world: World, tenant: string, model: string): string | undefined {
  const shown = model.slice(0, 200);
  const route = world.routes.get(model) ?? world.pipelines.get(model);
  if (!route) return `The model '${shown}' does not exist: no route has that name.`;
  if (!mayCall(world, tenant, model)) return `This key may not call '${shown}'.`;
  if (!route.pipeline && route.targets.openai.length === 0)
    return `'${shown}' speaks the Open Inference Protocol, and cannot answer this call.`;
  return undefined;
}
