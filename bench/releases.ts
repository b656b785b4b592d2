import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { CASES, isAbort } from './releases/cases.ts';
import { type ReleaseEnd, simulateRelease } from './releases/simulated.ts';
import { median } from './statistics.ts';

/**
 * Simulated releases through the machine that runs the live ones, in virtual time:
 * `node bench/releases.ts [--case NAME] [--runs N] [--sessions-of 1|5|20] [--seed N]`; without a case, all of them.
 */
const { values } = parseArgs({
  options: {
    case: { type: 'string' },
    runs: { type: 'string', default: '1000' },
    'sessions-of': { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
});
setFlagsFromString('--no-allocation-site-pretenuring'); // as `armature sim` does, see src/cli/sim.ts

const names = values.case ? values.case.split(',') : Object.keys(CASES);
const lengths = values['sessions-of'] ? values['sessions-of'].split(',').map(Number) : [1, 5, 20];
console.log(
  '| case | requests a session | releases | promoted | aborted | held to the deadline | canary requests until an abort: median, p90 | hours until promoted: median, p90 | seconds |',
);
console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- |');
for (const name of names) {
  for (const requestsOfSession of lengths) row(name, requestsOfSession);
}

function row(name: string, requestsOfSession: number): void {
  const begun = performance.now();
  const settings = CASES[name]!.settings(requestsOfSession);
  const ends: ReleaseEnd[] = [];
  for (let run = 0; run < Number(values.runs); run++) {
    ends.push(simulateRelease({ ...settings, seed: Number(values.seed) + run }));
  }
  const aborted = ends.filter(isAbort);
  const promoted = ends.filter(({ how }) => how === 'promoted');
  const held = ends.filter((end) => end.how === 'rolled-back' && !isAbort(end));
  const columns = [
    CASES[name]!.says,
    requestsOfSession,
    ends.length,
    promoted.length,
    `${aborted.length}${counts(aborted.map(({ reason }) => `${reason.code}${reason.figures['metric'] ? ` ${reason.figures['metric']}` : ''}`))}`,
    `${held.length}${counts(held.map(({ reason }) => String(reason.figures['for'])))}`,
    spread(aborted.map(({ canaryRequests }) => canaryRequests)),
    spread(promoted.map(({ hours }) => hours)),
    Math.round((performance.now() - begun) / 1000),
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
  return `${digits(median(values))}, ${digits(sorted[Math.floor(0.9 * (sorted.length - 1))]!)}`;
}
