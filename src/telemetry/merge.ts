import { AggregatorRegistry, type Registry } from 'prom-client';
import { expanded, type MetricJson, type Series } from './tally.ts';

/**
 * One registry out of the JSON of several: series with the same labels are added up (counters, gauges, the buckets of
 * histograms), save those of a metric that says `max`.
 */
export function mergeMetrics(sets: readonly MetricJson[][]): Registry {
  return AggregatorRegistry.aggregate(sets.map((metrics) => metrics.map(expanded)) as never);
}

/** What still counts once its process has gone: counters and histograms, and no gauge. */
export function countsOf(metrics: readonly MetricJson[]): MetricJson[] {
  return metrics.filter(({ type }) => type === 'counter' || type === 'histogram');
}

/** The same, of several processes, in the size of one. */
export async function addCounts(sets: readonly MetricJson[][]): Promise<MetricJson[]> {
  return (await mergeMetrics(sets.map(countsOf)).getMetricsAsJSON()) as unknown as MetricJson[];
}

/** Whether something that another process sent is a worker's metrics, so that one that is not cannot break a scrape. */
export function isMetrics(data: unknown): data is MetricJson[] {
  return (
    Array.isArray(data) &&
    data.every(
      (metric: Partial<MetricJson> | null) =>
        typeof metric?.name === 'string' &&
        typeof metric.type === 'string' &&
        (metric.aggregator === 'sum' || metric.aggregator === 'max') &&
        Array.isArray(metric.values) &&
        metric.values.every((series: Partial<Series> | null) => typeof series?.value === 'number') &&
        (metric.spreads === undefined || isSpreads(metric.spreads)),
    )
  );
}

function isSpreads({ bounds, rows }: Partial<NonNullable<MetricJson['spreads']>>): boolean {
  const areNumbers = (list: unknown) =>
    Array.isArray(list) && list.every((value) => typeof value === 'number');
  return (
    areNumbers(bounds) &&
    Array.isArray(rows) &&
    rows.every(
      (row) => areNumbers(row?.counts) && typeof row.sum === 'number' && typeof row.labels === 'object',
    )
  );
}
