import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { CASES, isAbort } from './releases/cases.ts';
import { type ReleaseEnd, simulateRelease } from './releases/simulated.ts';
import { median } from './statistics.ts';

/**
 * Simulated releases through the machine that runs the live ones, in virtual time:
 * `node bench/releases.ts [--case NAMES] [--sessions-of 1,5,20] [--runs N] [--seed N]`; without a case, all of them.
 * With `--raw` each release is told as a line of JSON instead, and `--of FILE` makes the table of such lines: so a thousand
 * may be run in pieces.
 */
const { values } = parseArgs({
  options: {
    case: { type: 'string', default: Object.keys(CASES).join(',') },
    'sessions-of': { type: 'string', default: '1,5,20' },
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    raw: { type: 'boolean', default: false },
    of: { type: 'string' },
  },
});

interface Run {
  name: string;
  requestsOfSession: number;
  end: ReleaseEnd;
}

setFlagsFromString('--no-allocation-site-pretenuring'); // as `armature sim` does, see src/cli/sim.ts
if (values.of === undefined) play();
else
  tabulate(
    readFileSync(values.of, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Run),
  );

function play(): void {
  if (!values.raw) head();
  for (const name of values.case.split(',')) {
    for (const requestsOfSession of values['sessions-of'].split(',').map(Number)) {
      const settings = CASES[name]!.settings(requestsOfSession);
      const ends: ReleaseEnd[] = [];
      for (let seed = Number(values.seed); ends.length < Number(values.runs); seed++) {
        const end = simulateRelease({ ...settings, seed });
        ends.push(end);
        if (values.raw) console.log(JSON.stringify({ name, requestsOfSession, end } satisfies Run));
      }
      if (!values.raw) row(name, requestsOfSession, ends);
    }
  }
}

function tabulate(runs: Run[]): void {
  head();
  for (const name of Object.keys(CASES)) {
    for (const requestsOfSession of [1, 5, 20]) {
      const ends = runs.filter((run) => run.name === name && run.requestsOfSession === requestsOfSession);
      if (ends.length > 0)
        row(
          name,
          requestsOfSession,
          ends.map(({ end }) => end),
        );
    }
  }
}

function head(): void {
  const columns = [
    'case',
    'has to be',
    'requests a session',
    'releases',
    'promoted',
    'aborted',
    'held to the deadline',
    'canary requests until an abort: median, p90',
    'hours until promoted: median, p90',
  ];
  console.log(`| ${columns.join(' | ')} |\n|${' --- |'.repeat(columns.length)}`);
}

function row(name: string, requestsOfSession: number, ends: ReleaseEnd[]): void {
  const aborted = ends.filter(isAbort);
  const promoted = ends.filter(({ how }) => how === 'promoted');
  const held = ends.filter((end) => end.how === 'rolled-back' && !isAbort(end));
  const columns = [
    CASES[name]!.says,
    CASES[name]!.wants,
    requestsOfSession,
    ends.length,
    promoted.length,
    `${aborted.length}${counts(aborted.map(({ reason }) => [reason.code, reason.figures['metric']].join(' ').trim()))}`,
    `${held.length}${counts(held.map(({ reason }) => String(reason.figures['for'])))}`,
    spread(aborted.map(({ canaryRequests }) => canaryRequests)),
    spread(promoted.map(({ hours }) => hours)),
  ];
  console.log(`| ${columns.join(' | ')} |`);
}

function counts(codes: string[]): string {
  const of = new Map<string, number>();
  for (const code of codes) of.set(code, (of.get(code) ?? 0) + 1);
  return of.size === 0 ? '' : ` (${[...of].map(([code, count]) => `${code}: ${count}`).join(', ')})`;
}

function spread(values: number[]): string {
  if (values.length === 0) return '-';
  const sorted = [...values].sort((a, b) => a - b);
  const digits = (value: number) => (value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en'));
  return `${digits(median(values))}, ${digits(sorted[Math.ceil(0.9 * sorted.length) - 1]!)}`;
}
