import { settingsSchema } from '../../src/config/schema/index.ts';
import { type SimSettings, serveSim } from '../../src/hosts/sim/index.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';

/**
 * `node bench/pipelines/devices.ts COUNT PROFILE`: so many simulated accelerators in one process, as `engine: sim` has each
 * in one of its own, with two cores for all; prints their addresses in a line.
 */
const settings = settingsSchema.parse({
  backends: { sim: { engine: 'sim', profile: JSON.parse(process.argv[3]!) as unknown } },
}).backends.sim as SimSettings;

const hosts = await Promise.all(
  Array.from({ length: Number(process.argv[2]) }, () =>
    serveSim({
      backend: 'sim',
      settings,
      clock: systemClock,
      random: systemRandom,
      timers: systemTimers,
      note() {},
    }),
  ),
);
console.log(hosts.map(({ address }) => address).join(' '));
