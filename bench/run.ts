import { parseArgs } from 'node:util';
import { systemClock } from '../src/kernel/clock.ts';
import { type Peer, peers } from './peers/peers.ts';
import { coreBusyNs, cpuNs, processTree, rssMiB } from './process-tree.ts';
import { type Measured, record, tableOf } from './results.ts';
import { PROXY_CORE, Stage, type Standing } from './stage.ts';
import { bootstrapMedian, median } from './statistics.ts';

/**
 * `npm run bench -- [PEER...] [--cycles N] [--base NAME] [--no-record]`: what each peer costs and adds, side by side.
 * Every cycle each peer takes its turn, in an order that alternates: a second of requests on 32 connections, a second of
 * 100 streams, 1,000 single requests and 32 slow streams. See README.md.
 */
const WARM_SECONDS = 3;
const MANY = { count: 100, seconds: 1, shape: { events: 50, gapUs: 10_000, firstUs: 0 } };
const SLOW = { count: 32, seconds: 1, shape: { events: 20, gapUs: 20_000, firstUs: 50_000 } };
const PAIRS = 1000;

interface Entrant {
  standing: Standing;
  requestNs: number[];
  eventNs: number[];
  addedP50Us: number[];
  addedP99Us: number[];
  addedFirstUs: number[];
  ageP99Us: number[];
  othersShare: number[];
  bad: number;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    cycles: { type: 'string', default: '9' },
    base: { type: 'string', default: 'haproxy' },
    'no-record': { type: 'boolean', default: false },
  },
});
const stage = await Stage.open();
process.once('SIGINT', () => void stage.close().then(() => process.exit(130)));
try {
  await compare(chosen());
} finally {
  await stage.close();
}

/** Those named, or all that are installed; the base first. */
function chosen(): Peer[] {
  for (const name of [...positionals, values.base]) {
    if (!peers.some((peer) => peer.name === name)) throw new Error(`no peer is called ${name}`);
  }
  const wanted = positionals.length > 0 ? [...positionals, values.base] : undefined;
  const list = peers.filter((peer) => (wanted ? wanted.includes(peer.name) : peer.version() !== undefined));
  for (const peer of peers) {
    if (!wanted && peer.version() === undefined) console.error(`${peer.name} is not installed: left out`);
  }
  return list.sort((a, b) => Number(b.name === values.base) - Number(a.name === values.base));
}

async function compare(list: Peer[]): Promise<void> {
  const entrants: Entrant[] = [];
  for (const peer of list) {
    console.error(`starting ${peer.name}`);
    const standing = await stage.start(peer);
    await stage.requests(standing, 32, WARM_SECONDS);
    await stage.streams(standing, 32, WARM_SECONDS, { events: 20, gapUs: 5000, firstUs: 0 });
    const none = () => [] as number[];
    entrants.push({
      standing,
      requestNs: none(),
      eventNs: none(),
      addedP50Us: none(),
      addedP99Us: none(),
      addedFirstUs: none(),
      ageP99Us: none(),
      othersShare: none(),
      bad: 0,
    });
  }
  const cycles = Number(values.cycles);
  for (let cycle = 0; cycle < cycles; cycle++) {
    console.error(`cycle ${cycle + 1} of ${cycles}`);
    for (const entrant of cycle % 2 === 0 ? entrants : entrants.toReversed()) await turn(entrant);
  }
  const measured = entrants.map((entrant) => figures(entrant, entrants[0]!));
  console.log(tableOf(measured, values.base));
  if (!values['no-record'])
    console.error(`recorded in ${record(measured, values.base, cycles, stage.pinned, systemClock.wall())}`);
}

async function turn(entrant: Entrant): Promise<void> {
  const { standing } = entrant;
  const pids = processTree(standing.pid);
  const began = cpuNs(pids);
  const beganBusy = coreBusyNs(PROXY_CORE);
  const requests = await stage.requests(standing, 32, 1);
  const spentNs = cpuNs(pids) - began;
  entrant.requestNs.push(spentNs / Math.max(1, requests.a.requests));
  // What else ran on the proxy's core: with more than a few percent, latencies are those of the machine.
  const othersNs = Math.max(0, coreBusyNs(PROXY_CORE) - beganBusy - spentNs);
  entrant.othersShare.push(othersNs / (requests.seconds * 1e9));

  const beganStreams = cpuNs(pids);
  const many = await stage.streams(standing, MANY.count, MANY.seconds, MANY.shape);
  entrant.eventNs.push((cpuNs(pids) - beganStreams) / Math.max(1, many.events));
  entrant.ageP99Us.push(many.age.p99Us);

  const pairs = await stage.pairs(standing, PAIRS * 2);
  entrant.addedP50Us.push(pairs.b.total.p50Us - pairs.a.total.p50Us);
  entrant.addedP99Us.push(pairs.b.total.p99Us - pairs.a.total.p99Us);

  const direct = await stage.streams(stage.direct(standing), SLOW.count, SLOW.seconds, SLOW.shape);
  const slow = await stage.streams(standing, SLOW.count, SLOW.seconds, SLOW.shape);
  entrant.addedFirstUs.push(slow.a.first.p50Us - direct.a.first.p50Us);
  entrant.bad += requests.bad + many.bad + pairs.bad + slow.bad;
}

function figures(entrant: Entrant, base: Entrant): Measured {
  const ratio = (of: (one: Entrant) => number[]) =>
    bootstrapMedian(of(entrant).map((value, cycle) => of(base)[cycle]! / value));
  return {
    peer: entrant.standing.peer.name,
    version: entrant.standing.version,
    requestsPerCpuSecond: 1e9 / median(entrant.requestNs),
    requestsRatio: ratio((one) => one.requestNs),
    eventsPerCpuSecond: 1e9 / median(entrant.eventNs),
    eventsRatio: ratio((one) => one.eventNs),
    addedP50Us: median(entrant.addedP50Us),
    addedP99Us: median(entrant.addedP99Us),
    addedFirstTokenP50Us: median(entrant.addedFirstUs),
    eventAgeP99Us: median(entrant.ageP99Us),
    othersShare: median(entrant.othersShare),
    rssMiB: rssMiB(processTree(entrant.standing.pid)),
    bad: entrant.bad,
  };
}
