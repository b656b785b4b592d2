import type { Dialect } from '../../backends/contracts.ts';
import type { RouteSettings } from '../../config/schema/index.ts';
import type { ReleaseArms } from '../../links/messages.ts';
import type { TargetAges } from './target-ages.ts';
import type { Backend, Route, Shadow, Target } from './world.ts';

/** Targets of a route that may be used, by what they speak. */
export function targetsOf(
  route: RouteSettings,
  backends: ReadonlyMap<string, Backend>,
  ages: TargetAges,
): Route['targets'] {
  const speaking = (protocol: Dialect['protocol']): Target[] =>
    route.targets.flatMap(({ backend: name, weight }) => {
      const backend = backends.get(name)!;
      return weight > 0 && speaks(backend, protocol)
        ? [{ name, weight, since: ages.since(name), backend }]
        : [];
    });
  // Where texts become tensors, those who take tensors answer embeddings as well.
  return { openai: speaking(route.prepare?.to === 'tensors' ? 'oip' : 'openai'), oip: speaking('oip') };
}

/** Where copies of its requests go: to its shadows, and to the backend that is released. */
export function shadowsOf(
  { shadow }: RouteSettings,
  backends: ReadonlyMap<string, Backend>,
  release?: ReleaseArms,
): Shadow[] | undefined {
  const shadows: Shadow[] = shadow
    .filter(({ percent }) => percent > 0)
    .map(({ backend, percent, compare }) => ({ backend: backends.get(backend)!, percent, compare }));
  const canary = release && backends.get(release.canary);
  if (canary && release.shadow && release.shadow.percent > 0)
    shadows.push({ backend: canary, ...release.shadow, release: release.id });
  return shadows.length === 0 ? undefined : shadows;
}

/** Hosts of our own speak both protocols. */
export function speaks({ settings, dialect }: Backend, protocol: Dialect['protocol']): boolean {
  return settings.engine === 'local' || settings.engine === 'sim' || dialect.protocol === protocol;
}
