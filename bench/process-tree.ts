import { readdirSync, readFileSync } from 'node:fs';

/** What Linux says of a process and all its living descendants. Processes that vanish meanwhile count as nothing. */

export function processTree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync('/proc')) {
    const stat = /^\d+$/.test(entry) ? readOr(`/proc/${entry}/stat`) : undefined;
    if (stat === undefined) continue;
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(entry)]);
  }
  const found: number[] = [];
  for (const todo = [root]; todo.length > 0; ) {
    const pid = todo.pop()!;
    found.push(pid);
    todo.push(...(children.get(pid) ?? []));
  }
  return found;
}

/** CPU time of all threads, in nanoseconds; that of threads which have ended is not in it. */
export function cpuNs(pids: readonly number[]): number {
  let total = 0;
  for (const pid of pids) {
    for (const thread of listOr(`/proc/${pid}/task`)) {
      total += Number(readOr(`/proc/${pid}/task/${thread}/schedstat`)?.split(' ')[0] ?? 0);
    }
  }
  return total;
}

/** Resident memory, in MiB. */
export function rssMiB(pids: readonly number[]): number {
  let pages = 0;
  for (const pid of pids) pages += Number(readOr(`/proc/${pid}/statm`)?.split(' ')[1] ?? 0);
  return Math.round((pages * 4096) / 2 ** 20);
}

/** Nanoseconds that a core was busy with anything since the machine started, to a hundredth of a second. */
export function coreBusyNs(core: number): number {
  const line = readOr('/proc/stat')?.match(new RegExp(`^cpu${core} (.*)$`, 'm'))?.[1];
  const ticks = line?.split(' ').map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = ticks;
  return (user + nice + system + interrupts + softInterrupts) * 1e7;
}

function readOr(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined; // the process has ended
  }
}

function listOr(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // the process has ended
  }
}
