import { parseArgs } from 'node:util';
import { settingsSchema } from '../src/config/schema/index.ts';
import { type SimSettings, serveSim } from '../src/hosts/sim/index.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { systemRandom } from '../src/kernel/random.ts';
import { systemTimers } from '../src/kernel/timers.ts';

/**
 * A simulated engine by itself, for trying things out: `node bench/sim.ts [--model NAME] [--profile JSON]` prints its
 * address and serves until it is stopped. The profile is that of `engine: sim`.
 */
const { values } = parseArgs({
  options: { model: { type: 'string', default: 'sim' }, profile: { type: 'string', default: '{}' } },
});
const settings = settingsSchema.parse({
  backends: { sim: { engine: 'sim', model: values.model, profile: JSON.parse(values.profile) as unknown } },
}).backends.sim as SimSettings;

const host = await serveSim({
  backend: 'sim',
  settings,
  clock: systemClock,
  random: systemRandom,
  timers: systemTimers,
  note: (text) => console.error(text),
});
console.log(host.address);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void host.close(5000));
