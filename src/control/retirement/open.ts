import type { LedgerService } from '../../events/ledger.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Random } from '../../kernel/random.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { Registry } from '../../releases/registry/index.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { ReleaseService } from '../releases/service.ts';
import { type RetirementOptions, RetirementService } from './service.ts';

/** Retirements as they were left, with what they need of releases and the registry. */
export function openRetirements(options: {
  ledger: LedgerService;
  log: Logger;
  clock: Clock;
  random: Random;
  timers: Timers;
  data: string;
  registry: Registry;
  releases: ReleaseService;
}): Promise<RetirementService> {
  const { registry, releases, ...rest } = options;
  return RetirementService.open({
    ...rest,
    versions: versionsOf(registry),
    releases: () =>
      releases.running.map(({ id, kept: { body } }) => ({
        id,
        route: body.route,
        backends: [body.to, body.baseline ?? [], body.captured.map(({ backend }) => backend)].flat(),
      })),
  });
}

function versionsOf(registry: Registry): RetirementOptions['versions'] {
  const found = async (name: string) => (await registry.find(name)).version;
  return {
    async named(text) {
      const { model, number } = await found(text);
      return `${model}@${number}`;
    },
    usersOf: async (name) => registry.usersOf(await found(name)),
    async archive(name, actor) {
      const version = await found(name);
      if (version.state === 'archived') return;
      for await (const _step of await registry.archive(version, actor));
    },
  };
}
