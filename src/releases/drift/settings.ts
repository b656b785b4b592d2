import { DRIFT_FEATURES, type RouteSettings } from '../../config/schema/index.ts';
import type { MonitorSettings } from './backend-monitor.ts';
import type { FeatureType } from './contracts.ts';

export type DriftSettings = NonNullable<RouteSettings['drift']>;

/** What a route's settings say of the monitor of each of its backends. */
export function monitorSettings(drift: DriftSettings): MonitorSettings {
  const { reference, cycle, targetRunLength, movedMin, cooldown, freshRows, labels } = drift;
  return {
    features: drift.features.map((each) => {
      const name = typeof each === 'string' ? each : each.name;
      return {
        name,
        type: typeof each === 'string' ? typeOf(name) : each.type,
        rows: reference.size,
        targetRunLength,
        movedMin,
        ...(cycle !== undefined && { cycle: { lengthMs: cycle, count: reference.cycles } }),
      };
    }),
    quality: { labels, targetRunLength },
    incidents: { cooldownMs: cooldown, freshRows },
  };
}

/** As the configuration states it, or by what the feature is; never by what its values look like. */
function typeOf(name: string): FeatureType {
  if (Object.hasOwn(DRIFT_FEATURES, name)) return DRIFT_FEATURES[name as keyof typeof DRIFT_FEATURES];
  return name.startsWith('inputShape:') ? 'categorical' : 'numeric';
}
