import { parseArgs } from 'node:util';
import { systemClock } from '../src/kernel/clock.ts';
import { config } from '../test/path/release-world.ts';
import { chatAnswer, VirtualGateway } from '../test/path/virtual-gateway.ts';
import { median } from './statistics.ts';

/**
 * What a route under release costs the path: the same requests in one process, in turns, through a route without a release, and
 * through one whose sessions are divided and whose evidence is gathered. `node bench/release-path.ts [--rounds 60]`
 */
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '60' } } });
const REQUESTS = 2_000;
const WARM_ROUNDS = 10;

function gateway(share: number | undefined): VirtualGateway {
  const made = new VirtualGateway(config(0), 1, () => ({
    push: () => undefined,
    wantsRecord: () => false,
    waiting: 0,
  }));
  for (const origin of ['http://old:1', 'http://next:1']) made.engines.set(origin, chatAnswer('x', 1));
  const releases = { chat: { id: 'rel_1', canary: 'next', share: share ?? 0 } };
  made.load(config(share ?? 0.25), {}, share === undefined ? undefined : releases);
  return made;
}

/** Microseconds of a request. */
function round(of: VirtualGateway): number {
  const began = systemClock.mono();
  for (let i = 0; i < REQUESTS; i++) {
    of.chat({}, { 'x-armature-session': `s${i % 500}` });
    of.time.run(2);
    of.served.length = 0;
  }
  return ((systemClock.mono() - began) * 1000) / REQUESTS;
}

const without = gateway(undefined);
const under = gateway(0.25);
const times: [number[], number[]] = [[], []];
for (let i = 0; i < Number(values.rounds) + WARM_ROUNDS; i++) {
  // In turns, and in either order.
  const pair = i % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
  for (const which of pair) {
    const us = round(which === 0 ? without : under);
    if (i >= WARM_ROUNDS) times[which].push(us);
  }
}
const [plain, divided] = times.map((each) => median(each)) as [number, number];
console.log(
  JSON.stringify({
    requests: REQUESTS * Number(values.rounds),
    withoutUs: Number(plain.toFixed(2)),
    underReleaseUs: Number(divided.toFixed(2)),
    moreUs: Number((divided - plain).toFixed(2)),
  }),
);
