import { formatDuration } from '../kernel/units.ts';
import type { GroupReport, Spread } from '../simulation/recorder.ts';
import type { Moment, SimulationReport } from '../simulation/run.ts';
import { type Estimate, FIGURES, type FigureName, type GroupSummary, keyOf } from '../simulation/summary.ts';
import { table } from './output.ts';

/** What `armature sim` tells people. */

const CHART_COLUMNS = 60;
const REASONS_SHOWN = 12;

/** One run in full. */
export function formatRun(file: string, report: SimulationReport): string {
  const { all, offeredMs, elapsedMs, seed } = report;
  const perSecond = offeredMs > 0 ? (all.offered * 1000) / offeredMs : 0;
  return [
    `${file}: ${count(all.offered)} requests in ${formatDuration(offeredMs)} (${perSecond.toFixed(1)}/s), the last one over after ${formatDuration(elapsedMs)}; seed ${seed}`,
    '',
    table(
      ['route', 'tenant', 'priority', 'offered', 'good', 'good/s', 'degraded', 'refused', 'failed', 'left'],
      rows(report).map((group) => [
        ...names(group),
        group.offered,
        percent(group.good, group.offered),
        offeredMs > 0 ? ((group.good * 1000) / offeredMs).toFixed(1) : '',
        percent(group.degraded, group.offered),
        percent(group.refused, group.offered),
        percent(group.failed, group.offered),
        percent(group.left, group.offered),
      ]),
    ),
    '',
    table(
      ['milliseconds', '', '', 'first p50', 'p95', 'p99', 'total p50', 'p95', 'p99', 'refused p99'],
      rows(report).map((group) => [
        ...names(group),
        ...spread(group.firstToken, ['p50', 'p95', 'p99']),
        ...spread(group.total, ['p50', 'p95', 'p99']),
        ...spread(group.refusal, ['p99']),
      ]),
    ),
    ...counts('not answered in full', all.reasons),
    ...counts('rungs', all.rungs),
    ...counts('retries', report.retries),
    '',
    endpoints(report),
    '',
    chart(report.series),
  ].join('\n');
}

/** Several seeds of one configuration, or two configurations side by side. */
export function formatSummaries(
  sides: readonly { file: string; seeds: number[]; groups: GroupSummary[] }[],
): string {
  const [a, b] = sides;
  const lines = sides.map(
    ({ file, seeds }, index) =>
      `${sides.length > 1 ? `${'AB'[index]}  ` : ''}${file}, ${seeds.length === 1 ? `seed ${seeds[0]}` : `${seeds.length} seeds from ${seeds[0]} on: means, and the 95 % intervals of them`}`,
  );
  for (const group of a!.groups) {
    const other = b?.groups.find((each) => keyOf(each) === keyOf(group));
    const body = FIGURES.flatMap((name) => {
      const mine = group.figures[name];
      const its = other?.figures[name];
      if (!mine && !its) return [];
      if (!b) return [[LABELS[name], estimate(mine)]];
      return [[LABELS[name], estimate(mine), estimate(its), ...difference(mine, its)]];
    });
    const name = names(group).filter(Boolean).join(' ');
    lines.push('', table([name, ...(b ? ['A', 'B', 'B - A', ''] : ['mean'])], body));
  }
  return lines.join('\n');
}

const LABELS: Record<FigureName, string> = {
  offered: 'offered',
  goodPerSecond: 'good per second',
  goodPercent: 'good, %',
  okPercent: 'in full, %',
  degradedPercent: 'degraded, %',
  refusedPercent: 'refused, %',
  failedPercent: 'failed, %',
  firstTokenP50: 'first token p50, ms',
  firstTokenP99: 'first token p99, ms',
  totalP50: 'total p50, ms',
  totalP99: 'total p99, ms',
  refusalP99: 'refusal p99, ms',
};

function estimate(value: Estimate | undefined): string {
  if (!value) return '-';
  const { mean, low, high } = value;
  return low === high ? short(mean) : `${short(mean)} (${short(low)} to ${short(high)})`;
}

function difference(a: Estimate | undefined, b: Estimate | undefined): [string, string] {
  if (!a || !b) return ['', ''];
  const by = b.mean - a.mean;
  const share = a.mean === 0 ? '' : `${by >= 0 ? '+' : ''}${((100 * by) / a.mean).toFixed(1)} %`;
  return [`${by >= 0 ? '+' : ''}${short(by)}`, share];
}

function rows(report: SimulationReport): GroupReport[] {
  return report.groups.length > 1 ? [report.all, ...report.groups] : report.groups;
}

function names({ route, tenant, priority }: { route: string; tenant: string; priority: string }): string[] {
  return [route, tenant, priority === 'default' ? '' : priority];
}

function spread(value: Spread | undefined, which: readonly ('p50' | 'p95' | 'p99')[]): string[] {
  return which.map((name) => (value ? short(value[name]) : '-'));
}

function counts(title: string, values: Record<string, number>): string[] {
  const entries = Object.entries(values).sort(([, a], [, b]) => b - a);
  if (entries.length === 0) return [];
  const more = entries.length > REASONS_SHOWN ? [`  ... and ${entries.length - REASONS_SHOWN} more`] : [];
  const shown = entries.slice(0, REASONS_SHOWN);
  return [
    '',
    title,
    table(
      ['', ''],
      shown.map(([name, value]) => [`  ${name}`, value]),
    )
      .split('\n')
      .slice(1)
      .join('\n'),
    ...more,
  ];
}

function endpoints({ endpoints: all, elapsedMs }: SimulationReport): string {
  return table(
    ['backend', 'endpoint', 'requests', 'limit', 'busy', 'running', 'prompt tok/s', 'answer tok/s'],
    all.map((each) => [
      each.backend,
      each.endpoint,
      each.requests,
      each.limit,
      percent(each.busy, 1),
      each.running,
      Math.round((each.promptTokens * 1000) / elapsedMs),
      Math.round((each.outputTokens * 1000) / elapsedMs),
    ]),
  );
}

const BARS = ' ▁▂▃▄▅▆▇█';

/** What came, what was answered in time, and what waited, over time. */
function chart(series: readonly Moment[]): string {
  if (series.length === 0) return '';
  const columns = Math.min(CHART_COLUMNS, series.length);
  const everyMs = series.length > 1 ? series[1]!.atMs - series[0]!.atMs : series[0]!.atMs;
  const line = (name: string, unit: string, value: (moment: Moment) => number) => {
    const values = Array.from({ length: columns }, (_, column) => {
      const from = Math.floor((column * series.length) / columns);
      const to = Math.max(from + 1, Math.floor(((column + 1) * series.length) / columns));
      return Math.max(...series.slice(from, to).map(value));
    });
    const most = Math.max(...values);
    const bars = values.map((each) => BARS[most === 0 ? 0 : Math.ceil((8 * each) / most)]).join('');
    return `  ${name.padEnd(9)} ${bars} at most ${short(most)}${unit}`;
  };
  const perSecond = (key: 'offered' | 'good' | 'degraded' | 'refused' | 'failed') => (moment: Moment) =>
    (moment[key] * 1000) / everyMs;
  return [
    `over ${formatDuration(series.at(-1)!.atMs)}`,
    line('offered', '/s', perSecond('offered')),
    line('good', '/s', perSecond('good')),
    line('degraded', '/s', perSecond('degraded')),
    line('refused', '/s', perSecond('refused')),
    line('failed', '/s', perSecond('failed')),
    line('waiting', '', ({ waiting }) => waiting),
    line('in flight', '', ({ inflight }) => inflight),
  ].join('\n');
}

function percent(part: number, whole: number): string {
  return whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)}%`;
}

function short(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1);
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}
