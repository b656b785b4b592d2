import { formatDuration } from '../kernel/units.ts';
import type { Spread } from '../telemetry/durations.ts';
import { LATE_MS, type Tally } from './recorder.ts';
import type { RunResult } from './run.ts';

/** What a run was, for its report. */
export interface Subject {
  url: string;
  /** Such as `chat, streamed`. */
  what: string;
  model: string;
  /** Such as `open loop, Poisson 50/s`. */
  arrivals: string;
  closed: boolean;
  warmupMs: number;
  deadlineMs: number;
  seed: number;
  /** It was ended before its time. */
  stopped: boolean;
}

/** What `armature bench --json` prints. Durations are milliseconds. */
export interface Report extends Subject {
  measuredMs: number;
  tally: Tally;
  perSecond: { ok: number; good: number; promptTokens: number; outputTokens: number };
  /** Share of the intended requests that were answered within the deadline, 0 to 1. */
  goodShare: number;
}

export function reportOf(subject: Subject, { tally, measuredMs }: RunResult): Report {
  const perSecond = (count: number) => (measuredMs > 0 ? round((count * 1000) / measuredMs, 3) : 0);
  return {
    ...subject,
    measuredMs: round(measuredMs, 3),
    tally,
    perSecond: {
      ok: perSecond(tally.ok),
      good: perSecond(tally.good),
      promptTokens: perSecond(tally.promptTokens),
      outputTokens: perSecond(tally.outputTokens),
    },
    goodShare: tally.intended > 0 ? round(tally.good / tally.intended, 5) : 0,
  };
}

/** The report as a person reads it. */
export function formatReport(report: Report): string {
  const { tally, perSecond } = report;
  const lines = [
    `${report.url}  ${report.model}  ${report.what}`,
    `${report.arrivals}; ${formatDuration(report.measuredMs)} counted after ${formatDuration(report.warmupMs)} of warm-up; seed ${report.seed}`,
    '',
    `requests  ${count(tally.intended)} intended, ${count(tally.ok)} ok, ${count(tally.failed)} failed` +
      `${more(tally.dropped, 'dropped')}${more(tally.unfinished, 'unfinished')}` +
      `${more(tally.late, `sent over ${LATE_MS} ms late`)}`,
    `rate      ${perSecond.ok} ok/s, ${Math.round(perSecond.promptTokens)} prompt and ` +
      `${Math.round(perSecond.outputTokens)} answer tokens/s`,
    `goodput   ${(report.goodShare * 100).toFixed(2)} % within ${formatDuration(report.deadlineMs)}, ${perSecond.good}/s`,
    ...counts('status  ', tally.statuses),
    ...counts('failures', tally.failures),
    ...counts('degraded', tally.degraded),
    '',
    ...spreads(tally),
    ...remarks(report),
  ];
  return lines.join('\n');
}

const COLUMNS = ['mean', 'p50', 'p90', 'p95', 'p99', 'p999', 'max'] as const;
const WIDTH = 10;

function spreads(tally: Tally): string[] {
  const head = COLUMNS.map((name) => (name === 'p999' ? 'p99.9' : name).padStart(WIDTH)).join('');
  const row = (name: string, spread: Spread | undefined) =>
    spread ? [name.padEnd(16) + COLUMNS.map((column) => ms(spread[column]).padStart(WIDTH)).join('')] : [];
  return [
    `${'milliseconds'.padEnd(16)}${head}`,
    ...row('first token', tally.firstToken),
    ...row('between tokens', tally.betweenTokens),
    ...row('total', tally.total),
    ...row('send delay', tally.sendDelay),
  ];
}

/** What a reader must know to take the figures for what they are. */
function remarks({ tally, closed, stopped }: Report): string[] {
  const said: string[] = [];
  if (stopped) said.push('The run was ended early.');
  if (closed)
    said.push(
      'A closed loop waits for answers before it asks again: it cannot show how long others would wait.',
    );
  if (tally.dropped + tally.unfinished > 0) {
    said.push('Requests that were dropped or did not finish are in no percentile: the true ones are worse.');
  }
  if (tally.late * 20 > tally.intended) {
    said.push('More than 5 % were sent late: this machine, or its connections, could not keep the rate.');
  }
  return said.length > 0 ? ['', ...said] : [];
}

function counts(name: string, values: Record<string, number>): string[] {
  const entries = Object.entries(values).sort(([, a], [, b]) => b - a);
  if (entries.length === 0) return [];
  return [`${name}  ${entries.map(([key, value]) => `${key}: ${count(value)}`).join(', ')}`];
}

function more(value: number, word: string): string {
  return value > 0 ? `, ${count(value)} ${word}` : '';
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function ms(value: number): string {
  return value < 10 ? value.toFixed(2) : value < 1000 ? value.toFixed(1) : String(Math.round(value));
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
