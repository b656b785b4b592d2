import type { EventDraft } from '../../events/event-maker.ts';
import type { Exchange, Path } from '../../gateway/contracts.ts';
import type { Answerer } from '../../store/sessions.ts';

/** The event that tells that a session's turn was answered by another backend than the one before; undefined where it was not. */
export function moveOf(
  path: Path,
  x: Exchange,
  session: string,
  last: Answerer | undefined,
): EventDraft | undefined {
  const { backend } = x;
  if (!last || !backend || last.backend === '') return undefined;
  if (last.backend === backend.name && last.model === backend.model) return undefined;
  return {
    type: 'session-moved',
    subject: `session:${session}`,
    causes: [x.id],
    data: {
      tenant: x.tenant,
      route: x.route!.name,
      from: last.backend,
      fromModel: last.model,
      to: backend.name,
      toModel: backend.model,
      reason: whyMoved(path, x, last),
    },
  };
}

function whyMoved(path: Path, x: Exchange, last: Answerer): string {
  const { name, settings } = x.route!;
  if (x.degraded !== undefined) return `rung:${x.degraded}`;
  if (last.backend === x.backend!.name) return 'model-changed';
  const target = settings.targets.find(({ backend }) => backend === last.backend);
  const before = path.deps.world.backends.get(last.backend);
  if (!target || !before)
    return [...path.deps.world.routes.values()].some(
      (route) =>
        route.name !== name && route.settings.targets.some(({ backend }) => backend === last.backend),
    )
      ? 'other-route'
      : 'target-removed';
  if (target.weight === 0) return 'weight-zero';
  const now = path.deps.clock.mono();
  if (before.endpoints.every((endpoint) => endpoint.waitMs(now) > 0)) return 'endpoints-unwell';
  if (x.tried.some((endpoint) => endpoint.backend === last.backend)) return 'attempt-failed';
  return settings.affinity === 'session' ? 'weights' : 'no-affinity';
}
