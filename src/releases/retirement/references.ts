import { NAMES } from '../../config/checks.ts';
import { writePath } from '../../config/places.ts';
import type { Settings } from '../../config/schema/index.ts';
import { select } from '../../config/shape.ts';
import type { Reference, Subject } from './contracts.ts';

/** Every place of the configuration that names a backend or a route. */
export function referencesTo(settings: Settings, { kind, name }: Subject): Reference[] {
  if (kind === 'version') return [];
  const section = kind === 'backend' ? 'backends' : 'routes';
  return NAMES.filter(({ sections }) => sections.includes(section)).flatMap(({ pattern }) =>
    select(settings, pattern.split('.'))
      .filter(({ value }) => value === name)
      .map(({ path }) => judged(settings, pattern, path, name)),
  );
}

function judged(
  settings: Settings,
  pattern: string,
  path: readonly (string | number)[],
  name: string,
): Reference {
  const written = writePath(path);
  if (pattern === 'tenants.*.routes.*')
    return { path: written, blocks: false, why: 'the tenant may call it; nobody answers it any more' };
  if (pattern !== 'routes.*.targets.*.backend')
    return { path: written, blocks: true, why: 'take it out of the file first' };
  const { targets } = settings.routes[String(path[1])]!;
  const own = targets[Number(path[3])]!;
  if (own.weight === 0) return { path: written, blocks: false, why: 'it has no weight there' };
  const others = targets.some(({ backend, weight }) => backend !== name && weight > 0);
  return others
    ? { path: written, blocks: false, why: 'the other targets take over its share' }
    : { path: written, blocks: true, why: 'nothing else would answer: retire the route, or add a target' };
}

/** The targets of each route that sends to the backend, as they are now. */
export function targetsWith(settings: Settings, backend: string): Record<string, Target[]> {
  return Object.fromEntries(
    Object.entries(settings.routes)
      .filter(([, { targets }]) => targets.some((each) => each.backend === backend && each.weight > 0))
      .map(([route, { targets }]) => [route, targets.map((each) => ({ ...each }))]),
  );
}

interface Target {
  backend: string;
  weight: number;
}

/** The part of a configuration by which nobody is sent there any more. */
export function drained(settings: Settings, { kind, name }: Subject): object | undefined {
  if (kind === 'version') return undefined;
  if (kind === 'route') return { routes: { [name]: { retired: true } } };
  return withWeights(name, Object.entries(targetsWith(settings, name)), () => 0);
}

/** The part by which it has its weights of before again; what others have changed of the targets since stays. */
export function restored(
  { routes }: Settings,
  { kind, name }: Subject,
  drains: Record<string, Target[]>,
): object | undefined {
  if (kind === 'route') return routes[name] ? { routes: { [name]: { retired: false } } } : undefined;
  const weightIn = (route: string) => drains[route]!.find(({ backend }) => backend === name)!.weight;
  const without = Object.keys(drains).flatMap((route): [string, Target[]][] => {
    const targets = routes[route]?.targets ?? [];
    return targets.some(({ backend, weight }) => backend === name && weight === 0) ? [[route, targets]] : [];
  });
  return withWeights(name, without, weightIn);
}

/** The part of a configuration that gives a backend another weight in each of the routes, and leaves the others theirs. */
function withWeights(
  name: string,
  routes: [route: string, targets: Target[]][],
  weightIn: (route: string) => number,
): object | undefined {
  if (routes.length === 0) return undefined;
  const parts = routes.map(([route, targets]) => [
    route,
    {
      targets: targets.map((each) =>
        each.backend === name ? { ...each, weight: weightIn(route) } : { ...each },
      ),
    },
  ]);
  return { routes: Object.fromEntries(parts) };
}

/** Whether nobody is sent there, as the configuration stands. */
export function isDrained(settings: Settings, { kind, name }: Subject): boolean {
  if (kind === 'version') return true;
  if (kind === 'route') return settings.routes[name]?.retired ?? true;
  return Object.keys(targetsWith(settings, name)).length === 0;
}
