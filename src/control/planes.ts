import type { Settings } from '../config/schema/index.ts';
import type { LedgerService } from '../events/ledger.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Random } from '../kernel/random.ts';
import type { Timers } from '../kernel/timers.ts';
import { CanaryMachine } from '../releases/canary/machine.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Control } from './control.ts';
import { hookRunner } from './drift/hook.ts';
import { DriftService } from './drift/service.ts';
import { together } from './guards.ts';
import type { TenantKeys } from './keys/index.ts';
import { Parity } from './parity/index.ts';
import { RegistryService } from './registry/service.ts';
import { ReleaseService } from './releases/service.ts';
import { stressGate } from './releases/stress.ts';
import { openRetirements } from './retirement/open.ts';
import { KeptSessions } from './sessions.ts';

export interface PlanesOptions {
  ledger: LedgerService;
  log: Logger;
  clock: Clock;
  random: Random;
  timers: Timers;
  /** The data directory. */
  data: string;
  settings: Settings;
  /** Asked once control stands. */
  control: () => Control;
}

export type Planes = Awaited<ReturnType<typeof openPlanes>>;

/** What stands beside control, as an earlier one left it; nothing goes on before `beginPlanes`. */
export async function openPlanes(options: PlanesOptions) {
  const { data, settings, control, ...deps } = options;
  const sessions = new KeptSessions({ dataDir: data, ...deps });
  const registry = new RegistryService({ data, settings: settings.registry, ...deps });
  const versionOf = (backend: string) => registry.versionOf(backend);
  const parity = await Parity.open({ versionOf, ...deps });
  const drift = await DriftService.open({ runHook: hookRunner(deps.timers), ...deps });
  const gates = [parity.gate, stressGate(control, deps)];
  const releases = await ReleaseService.open({ machines: CanaryMachine, gates, versionOf, ...deps });
  const retirements = await openRetirements({ data, registry: registry.registry, releases, ...deps });
  return { sessions, registry, parity, drift, releases, retirements, guard: together(parity, registry) };
}

export function beginPlanes(
  { registry, parity, drift, releases, retirements }: Planes,
  control: Control,
  keys: TenantKeys,
): void {
  registry.begin(control);
  parity.begin(control);
  drift.begin(control);
  releases.begin(control);
  retirements.begin(control, keys);
}

/** What works by itself ends; what is kept can still be read. */
export async function closePlanes({ releases, retirements, parity, drift }: Planes): Promise<void> {
  releases.close();
  await retirements.close();
  await parity.close();
  await drift.close();
}
