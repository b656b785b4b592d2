import type { Registry } from 'prom-client';

/**
 * Counters and histograms for the request path. A child is looked up once, kept by the caller, and raising it is an
 * addition: prom-client's own children hash their labels at every call (0.14 to 0.22 us, several times a request).
 * Everything else is prom-client's: these register themselves, give the same JSON, and are merged and written by it.
 */

export interface Series {
  labels: Record<string, string | number>;
  value: number;
  metricName?: string;
}

/** A histogram of one set of labels: how many fell into each bucket alone, the last one without a bound. */
interface SpreadRow {
  labels: Record<string, string>;
  counts: number[];
  sum: number;
}

/**
 * One metric in the JSON form of prom-client. A histogram travels as rows of counts instead of a series for each bucket
 * (a twentieth of the size: a worker with hundreds of routes would stand still while it writes it); see `expanded`.
 */
export interface MetricJson {
  name: string;
  help: string;
  type: string;
  aggregator: string;
  values: Series[];
  spreads?: { bounds: readonly number[]; rows: SpreadRow[] };
}

export class Tally {
  value = 0;
  add(amount = 1): void {
    this.value += amount;
  }
}

/** A histogram of one set of labels; values are seconds. */
export class Spread {
  readonly bounds: readonly number[];
  /** One count for each bound, and one for what lies beyond the last. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let low = 0;
    let high = this.bounds.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (value <= this.bounds[middle]!) high = middle;
      else low = middle + 1;
    }
    this.counts[low]!++;
    this.sum += value;
  }
}

/** A name, and a child for each set of label values. Label values are names of the configuration, never a caller's words. */
abstract class Family<Child> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly children = new Map<string, { labels: Record<string, string>; child: Child }>();

  constructor(registry: Registry, name: string, help: string, labelNames: readonly string[]) {
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
    registry.registerMetric(this as never);
  }

  /** The child for these label values, in the order of the label names. Keep it: looking it up costs more than raising it. */
  of(...values: string[]): Child {
    const key = values.join('\u0000');
    const known = this.children.get(key);
    if (known) return known.child;
    const labels = Object.fromEntries(this.labelNames.map((label, i) => [label, values[i] ?? '']));
    const child = this.create();
    this.children.set(key, { labels, child });
    return child;
  }

  protected abstract create(): Child;
}

export class TallyFamily extends Family<Tally> {
  protected create(): Tally {
    return new Tally();
  }

  async get(): Promise<MetricJson> {
    const values = [...this.children.values()].map(({ labels, child }) => ({ labels, value: child.value }));
    return {
      name: this.name,
      help: this.help,
      type: 'counter',
      aggregator: 'sum',
      values,
    };
  }
}

export class SpreadFamily extends Family<Spread> {
  readonly bounds: readonly number[];

  constructor(
    registry: Registry,
    name: string,
    help: string,
    labelNames: readonly string[],
    bounds: readonly number[],
  ) {
    super(registry, name, help, labelNames);
    this.bounds = bounds;
    if (labelNames.length === 0) this.of();
  }

  protected create(): Spread {
    return new Spread(this.bounds);
  }

  async get(): Promise<MetricJson> {
    const rows = [...this.children.values()].map(({ labels, child }) => ({
      labels,
      counts: Array.from(child.counts),
      sum: child.sum,
    }));
    const { name, help, bounds } = this;
    return { name, help, type: 'histogram', aggregator: 'sum', values: [], spreads: { bounds, rows } };
  }
}

/** The same metric with a series for each bucket, as prom-client wants it. */
export function expanded({ spreads, ...metric }: MetricJson): MetricJson {
  if (!spreads) return metric;
  const values = spreads.rows.flatMap(({ labels, counts, sum }) => {
    let count = 0;
    const buckets = counts.map((counted, i) => {
      count += counted;
      const le = spreads.bounds[i] ?? '+Inf';
      return { labels: { le, ...labels }, value: count, metricName: `${metric.name}_bucket` };
    });
    return [
      ...buckets,
      { labels, value: sum, metricName: `${metric.name}_sum` },
      { labels, value: count, metricName: `${metric.name}_count` },
    ];
  });
  return { ...metric, values };
}
