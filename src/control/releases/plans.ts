import type { ReleaseSettings } from '../../config/schema/index.ts';
import type { ReleasePlan } from '../../releases/canary/contracts.ts';
import type { GateAsked } from '../../releases/contracts.ts';

/** What a release's machine goes by, out of its settings. */
export function planOf(
  { release, route, backend }: GateAsked,
  settings: ReleaseSettings,
  gates: string[],
): ReleasePlan {
  const { plan, shadow, pairsMin, step, deadline, phases, watch, alpha, ratioMax, errorRateMax, metrics } =
    settings;
  return {
    id: release,
    route,
    canary: backend,
    gates,
    ...(shadow > 0 && { shadow: { percent: shadow, pairsMin } }),
    plan,
    step: { sessionsMin: step.sessionsMin, timeMinMs: step.timeMin },
    deadlineMs: deadline,
    phaseMs: phases,
    watchMs: watch,
    alpha,
    ratioMax,
    errorRateMax,
    qualityMargin: settings.compare?.margin ?? QUALITY_MARGIN,
    metrics,
  };
}

/** How much worse answers may be on average, of -1 to 1, where nobody says how they are compared. */
const QUALITY_MARGIN = 0.05;
