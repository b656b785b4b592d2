import type { Dialect } from '../../backends/contracts.ts';
import type { CompareSettings, RouteSettings } from '../../config/schema/index.ts';
import type { ReleaseArms } from '../../links/messages.ts';
import type { TargetAges } from './target-ages.ts';
import type { Backend, Route, Shadow, Target } from './world.ts';

/** Targets of a route that may be used, by what they speak. */
export function targetsOf(
  route: RouteSettings,
  backends: ReadonlyMap<string, Backend>,
  ages: TargetAges,
): Route['targets'] {
  if (route.retired) return { openai: [], oip: [] };
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

/** How answers to the copies of a release are compared where nobody says. */
const AS_THEY_ARE: CompareSettings = {
  by: 'exact',
  budget: 0,
  whitespace: 'ignored',
  tolerance: { relative: 0, absolute: 0 },
  margin: 0,
};

/** Where copies of its requests go: to its shadows, and to the backend that is released. */
export function shadowsOf(
  { shadow, release: defaults }: RouteSettings,
  backends: ReadonlyMap<string, Backend>,
  release?: ReleaseArms,
): Shadow[] | undefined {
  const shadows: Shadow[] = shadow
    .filter(({ percent }) => percent > 0)
    .map(({ backend, percent, compare }) => ({ backend: backends.get(backend)!, percent, compare }));
  const canary = release && backends.get(release.canary);
  if (canary && release.shadow && release.shadow.percent > 0) {
    const compare = release.shadow.compare ?? defaults?.compare ?? AS_THEY_ARE;
    shadows.push({ backend: canary, percent: release.shadow.percent, compare, release: release.id });
  }
  return shadows.length === 0 ? undefined : shadows;
}

/** Hosts of our own speak both protocols. */
export function speaks({ settings, dialect }: Backend, protocol: Dialect['protocol']): boolean {
  return settings.engine === 'local' || settings.engine === 'sim' || dialect.protocol === protocol;
}
