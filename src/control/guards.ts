import type { Fault } from '../config/faults.ts';
import type { Settings } from '../config/schema/index.ts';

/** What has a say in which configuration may run, and wants to know of each that does. */
export interface Guard {
  /** Why a configuration, sound in itself, may not take the place of the one that runs. */
  objections(
    before: Settings,
    after: { settings: Settings; config: { certificates: Record<string, string> } },
    file: string,
  ): Fault[] | Promise<Fault[]>;
  /** The configuration that runs has changed. */
  settled(): void;
}

export function together(...guards: Guard[]): Guard {
  return {
    async objections(before, after, file) {
      const found = await Promise.all(guards.map((guard) => guard.objections(before, after, file)));
      return found.flat();
    },
    settled() {
      for (const guard of guards) guard.settled();
    },
  };
}
