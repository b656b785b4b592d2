import { Gauge, type Registry } from 'prom-client';
import type { ReleaseService } from './service.ts';

/** Releases under way, one of a route at most; without any the gauges have no series. */
export function addReleaseMetrics(registry: Registry, service: ReleaseService): void {
  const gauge = (name: string, help: string, labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] });
  const shares = gauge('armature_release_share', 'Share of the sessions that a canary answers, 0 to 1.', [
    'route',
  ]);
  const phases = gauge('armature_release_phase', '1 for the phase that the release of a route is in.', [
    'route',
    'phase',
  ]);
  for (const run of service.running) {
    const { route } = run.kept.body;
    shares.set({ route }, run.share);
    phases.set({ route, phase: run.phase }, 1);
  }
}
