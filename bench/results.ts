import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Interval } from './statistics.ts';

/** What one peer showed. CPU is that of all its processes; a ratio above 1 means cheaper than the base. */
export interface Measured {
  peer: string;
  version: string;
  requestsPerCpuSecond: number;
  requestsRatio: Interval;
  eventsPerCpuSecond: number;
  eventsRatio: Interval;
  addedP50Us: number;
  addedP99Us: number;
  addedFirstTokenP50Us: number;
  eventAgeP99Us: number;
  /** Of the proxy's core, what others took while requests were measured, 0 to 1; all of it where nothing is pinned. */
  othersShare: number;
  rssMiB: number;
  /** Answers that were not right. */
  bad: number;
}

export function tableOf(measured: readonly Measured[], base: string): string {
  const count = (value: number) => Math.round(value).toLocaleString('en-US');
  const ratio = ({ median, low, high }: Interval) =>
    `${median.toFixed(2)} (${low.toFixed(2)}-${high.toFixed(2)})`;
  const head = [
    'peer',
    'requests / CPU-s',
    `x ${base}`,
    'events / CPU-s',
    `x ${base}`,
    'added p50 us',
    'added p99 us',
    'added first token p50 us',
    'event age p99 us',
    'others on its core',
    'RSS MiB',
    'bad',
  ];
  const rows = measured.map((one) => [
    `${one.peer} ${one.version}`,
    count(one.requestsPerCpuSecond),
    ratio(one.requestsRatio),
    count(one.eventsPerCpuSecond),
    ratio(one.eventsRatio),
    count(one.addedP50Us),
    count(one.addedP99Us),
    count(one.addedFirstTokenP50Us),
    count(one.eventAgeP99Us),
    `${(one.othersShare * 100).toFixed(0)} %`,
    count(one.rssMiB),
    count(one.bad),
  ]);
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const rule = line(head.map((_, column) => (column === 0 ? '---' : '---:')));
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** Writes bench/results/STAMP.json and .md and gives the latter's path. */
export function record(
  measured: readonly Measured[],
  base: string,
  cycles: number,
  pinned: boolean,
  wallMs: number,
): string {
  const folder = fileURLToPath(new URL('results', import.meta.url));
  mkdirSync(folder, { recursive: true });
  const at = new Date(wallMs).toISOString();
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    pinned,
  };
  const stamp = at.slice(0, 16).replace(/[-:]/g, '').replace('T', '-');
  const facts = `${machine.cpu}, ${machine.cores} cores, Linux ${machine.kernel}, Node ${machine.node}, ${pinned ? 'pinned' : 'not pinned'}`;
  writeFileSync(
    `${folder}/${stamp}.json`,
    `${JSON.stringify({ at, base, cycles, machine, measured }, null, 2)}\n`,
  );
  const text = `# Side by side, ${at.slice(0, 10)}\n\n${facts}; ${cycles} cycles. Method: ../README.md.\n\n${tableOf(measured, base)}\n`;
  writeFileSync(`${folder}/${stamp}.md`, text);
  return `${folder}/${stamp}.md`;
}
