import { dialectOf } from '../../backends/register.ts';
import type { BackendSettings, Settings, StressSettings } from '../../config/schema/index.ts';
import type { LedgerEvent } from '../../events/contracts.ts';
import type { EventDraft } from '../../events/event-maker.ts';
import type { LedgerService } from '../../events/ledger.ts';
import { authHeaders, readTls } from '../../gateway/state/way-to-backend.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { LoadTask } from '../../load/contracts.ts';
import type { Action, Gate, GateAsked, GateVerdict } from '../../releases/contracts.ts';
import { stressLoad } from '../../releases/stress/load.ts';
import { judgeStress } from '../../releases/stress/verdict.ts';
import type { HostPeer } from '../hosts.ts';
import { readied } from './capacity.ts';
import type { ReleaseControl } from './contracts.ts';
import { MemoryWatch } from './host-memory.ts';
import { startLoad } from './load-process.ts';

export interface StressGateOptions {
  settings(): Settings;
  /** Where the backend is reached now; of a host of ours once it serves: it is woken where it is idle. */
  endpoints(backend: string, asked: GateAsked, signal: AbortSignal): Promise<readonly string[]>;
  hosts(): readonly Pick<HostPeer, 'backend' | 'pid'>[];
  /** Stores what came of it. */
  tell(draft: EventDraft): LedgerEvent;
  timers: Timers;
  /** What Armature's processes start with. */
  entry: string;
}

/**
 * What is released proves itself under load before a caller meets it: by the `stress` of its release, within its caps, at the
 * address of its engine, in a process of its own. It is never done to what answers callers.
 */
export class StressGate implements Gate {
  readonly name = 'stress';
  readonly #options: StressGateOptions;

  constructor(options: StressGateOptions) {
    this.#options = options;
  }

  applies({ stress }: GateAsked): boolean {
    return stress !== undefined;
  }

  async pass(asked: GateAsked, signal: AbortSignal): Promise<GateVerdict> {
    const { stress } = asked;
    if (!stress) throw new Error(`${asked.release} says nothing of a load`);
    const endpoints = await this.#options.endpoints(asked.backend, asked, signal);
    signal.throwIfAborted();
    const settings = this.#options.settings();
    const backend = settings.backends[asked.backend];
    if (!backend) throw new Error(`there is no backend ${asked.backend} any more`);
    if (endpoints.length === 0) throw new Error(`no endpoint of ${asked.backend} can be reached`);
    const load = stressLoad(stress, asked.backend, { settings, endpoints });
    if ('code' in load) return this.#tell(asked, false, load);
    const { passed, reason } = await this.#run({ ...load, ...wayTo(backend) }, asked.backend, stress, signal);
    return this.#tell(asked, passed, reason);
  }

  async #run(task: LoadTask, backend: string, stress: StressSettings, signal: AbortSignal) {
    const { timers, entry, hosts } = this.#options;
    const pids = hosts().flatMap((host) => (host.backend === backend ? [host.pid] : []));
    const memory = new MemoryWatch(pids, timers);
    const load = startLoad(task, { entry, timers, signal });
    const result = await load.result.finally(() => memory.end());
    signal.throwIfAborted(); // what was cut short shows nothing
    if ('unable' in result) throw new Error(`the load test could not begin: ${result.unable}`);
    return judgeStress(stress, result, memory.end());
  }

  #tell(asked: GateAsked, passed: boolean, reason: Action['reason']): GateVerdict {
    const { route, backend, release } = asked;
    const event = this.#options.tell({
      type: passed ? 'stress-passed' : 'stress-failed',
      subject: `release:${release}`,
      data: { route, backend, ...reason.figures, ...(passed ? {} : { for: reason.code }) },
    });
    return { passed, reason, event: event.id };
  }
}

/** How long a host may take to come before the gate is asked again later, milliseconds. */
const READY_MS = 300_000;

/** The gate of a running control, which may begin after it was made. */
export function stressGate(
  control: () => ReleaseControl & { hosts: { peers: readonly HostPeer[] } },
  { ledger, timers }: { ledger: LedgerService; timers: Timers },
): StressGate {
  return new StressGate({
    settings: () => control().effective.settings,
    async endpoints(backend, { release }, signal) {
      const of = { control: control(), timers, withinMs: READY_MS, signal };
      await readied([backend], { event: release, release }, of);
      return control().snapshots.current.endpoints[backend] ?? [];
    },
    hosts: () => control().hosts.peers,
    tell: (draft) => ledger.append(draft),
    timers,
    entry: process.argv[1]!,
  });
}

/** What the gateway would send to the engine beside the request. */
function wayTo(backend: BackendSettings): Pick<LoadTask, 'headers' | 'tls' | 'cap'> {
  const pairs = authHeaders(backend);
  const headers: Record<string, string> = {};
  for (let at = 0; at < pairs.length; at += 2) headers[pairs[at]!] = pairs[at + 1]!;
  const cap = dialectOf(backend.engine).chatCap ?? 'max_tokens';
  if (!('tls' in backend) || !backend.tls) return { headers, cap };
  const { unreadable, ...tls } = readTls(backend.tls);
  if (unreadable !== undefined) throw new Error(`${unreadable} cannot be read`);
  const given = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
  return { headers, cap, tls: given };
}
