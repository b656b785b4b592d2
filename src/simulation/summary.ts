import type { GroupReport, Spread } from './recorder.ts';
import type { SimulationReport } from './run.ts';

/** The figures by which runs are compared; those of shares are percent, those of times milliseconds. */
export const FIGURES = [
  'offered',
  'goodPerSecond',
  'goodPercent',
  'okPercent',
  'degradedPercent',
  'refusedPercent',
  'failedPercent',
  'firstTokenP50',
  'firstTokenP99',
  'totalP50',
  'totalP99',
  'refusalP99',
] as const;
export type FigureName = (typeof FIGURES)[number];

/** Of one route, tenant and priority in several runs: the mean, and between what it lies with a certainty of 95 %. */
export interface Estimate {
  mean: number;
  low: number;
  high: number;
}

export interface GroupSummary {
  route: string;
  tenant: string;
  priority: string;
  /** A figure that no run had, such as a percentile of no answer, is absent. */
  figures: Partial<Record<FigureName, Estimate>>;
}

/** Several runs of one configuration, each with a seed of its own, as one; all requests together come first. */
export function summarise(reports: readonly SimulationReport[]): GroupSummary[] {
  const names = new Map<string, GroupReport>();
  for (const report of reports) for (const group of groupsOf(report)) names.set(keyOf(group), group);
  return [...names.entries()].map(([key, { route, tenant, priority }]) => {
    const figures: GroupSummary['figures'] = {};
    for (const name of FIGURES) {
      const values = reports.flatMap((report) => {
        const group = groupsOf(report).find((each) => keyOf(each) === key);
        return group ? (figure(group, report, name) ?? []) : [];
      });
      const estimate = estimateOf(values);
      if (estimate) figures[name] = estimate;
    }
    return { route, tenant, priority, figures };
  });
}

function groupsOf(report: SimulationReport): GroupReport[] {
  return [report.all, ...report.groups];
}

export function keyOf({
  route,
  tenant,
  priority,
}: {
  route: string;
  tenant: string;
  priority: string;
}): string {
  return [route, tenant, priority].join('\u0000');
}

function figure(group: GroupReport, report: SimulationReport, name: FigureName): number | undefined {
  const percent = (count: number) => (group.offered > 0 ? (100 * count) / group.offered : undefined);
  const at = (spread: Spread | undefined, which: 'p50' | 'p99') => spread?.[which];
  switch (name) {
    case 'offered':
      return group.offered;
    case 'goodPerSecond':
      return report.offeredMs > 0 ? (group.good * 1000) / report.offeredMs : undefined;
    case 'goodPercent':
      return percent(group.good);
    case 'okPercent':
      return percent(group.ok);
    case 'degradedPercent':
      return percent(group.degraded);
    case 'refusedPercent':
      return percent(group.refused);
    case 'failedPercent':
      return percent(group.failed);
    case 'firstTokenP50':
      return at(group.firstToken, 'p50');
    case 'firstTokenP99':
      return at(group.firstToken, 'p99');
    case 'totalP50':
      return at(group.total, 'p50');
    case 'totalP99':
      return at(group.total, 'p99');
    case 'refusalP99':
      return at(group.refusal, 'p99');
  }
}

/** Quantiles 0.975 of Student's t distribution, by degrees of freedom from 1 on. */
const T975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL975 = 1.96;

/** Formula: mean ± t(0.975, n - 1) s / √n, Student's interval; of one value the value itself. */
export function estimateOf(values: readonly number[]): Estimate | undefined {
  const n = values.length;
  if (n === 0) return undefined;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n === 1) return { mean: round(mean), low: round(mean), high: round(mean) };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const half = (T975[n - 2] ?? NORMAL975) * Math.sqrt(variance / n);
  return { mean: round(mean), low: round(mean - half), high: round(mean + half) };
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
