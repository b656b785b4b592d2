import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** The processes of one Armature, found by the data directory on their command line. */

export interface Part {
  /** `supervisor`, `control`, `gateway-0`, `host-NAME`; another command carries its own name. */
  part: string;
  pid: number;
}

export function partsOf(data: string): Part[] {
  const own = commandLines().filter(({ args }) => args.includes(data));
  return own.map(({ pid, args }) => ({ part: nameOf(args), pid }));
}

/** Ends whatever is left of it. */
export function killRemains(data: string): void {
  for (const { pid } of partsOf(data)) ignoreGone(() => process.kill(pid, 'SIGKILL'));
}

/** Read from /proc: on Linux alone; 0 elsewhere. */
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

function commandLines(): { pid: number; args: string[] }[] {
  if (!existsSync('/proc/self/cmdline')) return commandLinesOfPs();
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => {
    // Empty for a process that has ended.
    const text = ignoreGone(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ?? '';
    return { pid: Number(pid), args: text.split('\0').slice(0, -1) };
  });
}

/** Where there is no /proc; arguments with blanks come apart, which folders of tests have none of. */
function commandLinesOfPs(): { pid: number; args: string[] }[] {
  const lines = execFileSync('ps', ['-axww', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n');
  return lines.map((line) => {
    const [pid, ...args] = line.trim().split(/\s+/);
    return { pid: Number(pid), args };
  });
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
