import { parseArgs } from 'node:util';
import { type Played, playWorld } from './play.ts';
import { planWorld } from './world.ts';

/**
 * Plays worlds by hand: `node test/worlds/replay.ts --seed N` tells all of one, `--seed N --count M` looks for wrong ones among
 * M seeds from N on. With `--request I` the steps of one request are told.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string' },
    request: { type: 'string' },
  },
});
const seed = Number(values.seed);

if (values.count !== undefined) {
  let bad = 0;
  let requests = 0;
  let turns = 0;
  const kinds = new Map<string, { count: number; seeds: number[] }>();
  for (let i = seed; i < seed + Number(values.count); i++) {
    const { wrong, callers, contested } = playSafely(i);
    requests += callers.length;
    turns += contested;
    if (wrong.length === 0) continue;
    bad++;
    for (const line of wrong) {
      const kind = line
        .replace(/req_\w+|http:[^ |:]*[^ ]*/g, '')
        .replace(/\([^)]*\)/g, '')
        .replace(/\d[\d.e-]*/g, '#')
        .slice(0, 200);
      const same = kinds.get(kind) ?? { count: 0, seeds: [] };
      same.count++;
      if (same.seeds.at(-1) !== i) same.seeds.push(i);
      kinds.set(kind, same);
    }
  }
  for (const [kind, { count, seeds }] of kinds)
    console.log(
      `${count} times, in seeds ${seeds.slice(0, 5).join(', ')}${seeds.length > 5 ? ', ...' : ''}: ${kind}`,
    );
  console.log(
    `${values.count} worlds, ${requests} requests, ${turns} turns in which several priorities waited; ${bad} worlds are wrong`,
  );
  process.exitCode = bad > 0 ? 1 : 0;
} else {
  const plan = planWorld(seed);
  const { backends, routes, tenants } = plan.settings;
  console.log(
    JSON.stringify(
      {
        backends,
        routes,
        tenants,
        mishaps: plan.mishaps,
        drain: plan.drain,
        swaps: plan.swaps.map(({ atMs }) => atMs),
      },
      null,
      1,
    ),
  );
  const { wrong, callers, records } = playWorld(plan);
  const statuses: Record<string, number> = {};
  for (const { status, code, degraded, left } of callers) {
    const key = left ? 'left' : [status, code, degraded].filter(Boolean).join(' ');
    statuses[key] = (statuses[key] ?? 0) + 1;
  }
  console.log(`${callers.length} requests in ${plan.durationMs} ms: ${JSON.stringify(statuses)}`);
  if (values.request !== undefined) {
    const caller = callers[Number(values.request)]!;
    console.log(caller.arrival, records.get(caller.requestId)?.steps);
  }
  for (const line of wrong) console.log(`wrong: ${line}`);
  process.exitCode = wrong.length > 0 ? 1 : 0;
}

function playSafely(each: number): Pick<Played, 'wrong' | 'callers' | 'contested'> {
  try {
    return playWorld(planWorld(each));
  } catch (error) {
    return { wrong: [(error as Error).stack ?? String(error)], callers: [], contested: 0 };
  }
}
