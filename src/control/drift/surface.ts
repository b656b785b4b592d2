import { Counter, Gauge, type Registry } from 'prom-client';
import type { DriftSurface, DriftView } from '../../api/contracts.ts';
import type { DriftService } from './service.ts';

/** What the management API shows and does of drift. */
export function driftSurface(service: DriftService): DriftSurface {
  return {
    drift: () => service.all.map(viewOf),
    watches: (route) => service.watches(route),
    refreeze: (route, backend, actor) => service.refreeze(route, backend, actor),
    labelDrift: (labels) => service.label(labels),
  };
}

function viewOf(watched: DriftService['all'][number]): DriftView {
  const { route, backend, model, rows, features, quality, incident, held, hook } = watched;
  return {
    name: `${route}|${backend}`,
    route,
    backend,
    model,
    rows,
    incident: incident
      ? {
          event: incident.event,
          at: new Date(incident.openedAtMs).toISOString(),
          state: incident.confirmedAtMs === undefined ? 'open' : 'confirmed',
          ...incident.first,
          also: incident.also,
          hook: hook ? withoutEvent(hook) : null,
        }
      : null,
    held,
    features: features.map(({ frozenAtMs, window, ...feature }) => ({
      ...feature,
      frozenAt: frozenAtMs === undefined ? null : new Date(frozenAtMs).toISOString(),
      window: window ?? null,
    })),
    quality: quality
      ? {
          ...quality,
          estimate: quality.estimate ?? null,
          accuracy: quality.accuracy ?? null,
          brier: quality.brier ?? null,
          calibrationError: quality.calibrationError ?? null,
          calibrationErrorUsual: quality.calibrationErrorUsual ?? null,
        }
      : null,
  };
}

function withoutEvent<Hook extends { event?: string }>({ event: _, ...hook }: Hook): Omit<Hook, 'event'> {
  return hook;
}

/** Adds what control counts of drift. */
export function addDriftMetrics(registry: Registry, service: DriftService): void {
  const registers = [registry];
  const { observed, lost } = service.counts;
  const rows = { name: 'armature_drift_observed_total', help: 'Answers that were looked at for drift.' };
  new Counter({ ...rows, registers }).inc(observed);
  const gone = {
    name: 'armature_drift_lost_total',
    help: 'Answers that were observed and did not come to be looked at for drift.',
  };
  new Counter({ ...gone, registers }).inc(lost);
  const incidents = new Gauge({
    name: 'armature_drift_incidents',
    help: '1 where a change was found and is not over.',
    labelNames: ['route', 'backend'],
    registers,
  });
  for (const { route, backend, incident } of service.open)
    incidents.set({ route, backend }, incident ? 1 : 0);
}
