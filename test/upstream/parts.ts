import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The processes of one Armature, found by their data directory in /proc: so on Linux alone. */

export interface Part {
  /** `supervisor`, `control`, `gateway-0`, `host-NAME`; another command carries its own name. */
  part: string;
  pid: number;
}

export function partsOf(data: string): Part[] {
  return pids().flatMap((pid) => {
    const args = commandLine(pid);
    return args.includes(data) ? [{ part: nameOf(args), pid }] : [];
  });
}

/** Ends whatever is left of it. */
export function killRemains(data: string): void {
  for (const { pid } of partsOf(data)) ignoreGone(() => process.kill(pid, 'SIGKILL'));
}

export function socketsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  const links = ignoreGone(() => readdirSync(folder)) ?? [];
  return links.filter((fd) => ignoreGone(() => readlinkSync(`${folder}/${fd}`))?.startsWith('socket:'))
    .length;
}

function nameOf(args: readonly string[]): string {
  const after = (flag: string) => args[args.indexOf(flag) + 1];
  if (args.includes('up')) return 'supervisor';
  if (args.includes('gateway')) return `gateway-${after('--worker')}`;
  if (args.includes('host')) return `host-${after('--backend')}`;
  return args.find((arg, index) => index > 0 && /^[a-z]+$/.test(arg)) ?? args[0]!;
}

function pids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Empty for a process that has ended. */
function commandLine(pid: number): string[] {
  const text = ignoreGone(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? '';
  return text.split('\0').slice(0, -1);
}

/** A process may end while it is looked at. */
function ignoreGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES') return undefined;
    throw error;
  }
}
