import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { workerMetrics } from '../../src/telemetry/metrics.ts';
import { root } from './sources.ts';

/** Control's own; see src/control/surface.ts. */
const OF_CONTROL = [
  'armature_ledger_lost_total',
  'armature_ledger_waiting',
  'armature_engine_waiting backend endpoint',
  'armature_engine_running backend endpoint',
  'armature_engine_gauges_stale backend endpoint',
  'armature_release_share route',
  'armature_release_phase route phase',
  'armature_sentinel_prompts_total route backend outcome',
  'armature_drift_observed_total',
  'armature_drift_lost_total',
  'armature_drift_incidents route backend',
];

it('docs/watching.md names every metric, its labels, and no other', async () => {
  const registry = new Registry();
  workerMetrics(registry, () => {
    throw new Error('nothing is collected here');
  });
  const defined = registry.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[];
  const rows = readFileSync(join(root, 'docs/watching.md'), 'utf8').matchAll(
    /^\| `(armature_\w+)` \| (.*?) ?\|/gm,
  );
  const documented = [...rows].map(([, name, labels]) => `${name} ${labels!.replace(/[`,]/g, '')}`.trim());
  const expected = defined.map(({ name, labelNames }) => [name, ...labelNames].join(' '));
  expect(documented.sort()).toEqual([...expected, ...OF_CONTROL].sort());
});
