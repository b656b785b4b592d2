import { beforeEach, describe, expect, test } from 'vitest';
import type { Fact, RequestRecord } from '../../events/contracts.ts';
import { seededRandom } from '../../kernel/random.ts';
import { VirtualTime } from '../../kernel/virtual-time.ts';
import type { GatewayToControl } from '../../links/messages.ts';
import { GROUPS_MAX } from './groups.ts';
import { Outbox } from './outbox.ts';

type Batch = Extract<GatewayToControl, { type: 'facts' }>;

let time: VirtualTime;
let connected: boolean;
let sent: Batch[];
let later: (() => void)[];
let outbox: Outbox;

beforeEach(() => {
  time = new VirtualTime();
  connected = true;
  sent = [];
  later = [];
  outbox = new Outbox({
    boot: 'b',
    send(batch) {
      if (connected) sent.push(batch);
      return connected;
    },
    soon: (run) => later.push(run),
    clock: time,
    timers: time,
    random: seededRandom(1),
  });
});

/** Ends turns of the loop until nothing is left to be done in one. */
function turn(): void {
  while (later.length > 0) for (const run of later.splice(0)) run();
}

function storeAll(): void {
  for (let i = 0; i < sent.length; i++) {
    outbox.stored(sent[i]!.sequence);
    turn();
  }
}

let count = 0;
function ended(reason = 'overloaded', route = 'chat') {
  return { id: `rq_${count++}`, wallMs: time.wall(), route, tenant: 'web', reason };
}

function record(id: string): Fact {
  return { kind: 'request', record: { id } as RequestRecord };
}

/** What the path does when a request has ended. */
function end(reason?: string, route?: string): void {
  const request = ended(reason, route);
  if (outbox.wantsRecord(request)) outbox.push(record(request.id));
}

function event(): Fact {
  const at = '2026-01-01T00:00:00.000Z';
  return {
    kind: 'event',
    event: { id: `ev_${count++}`, at, type: 't', subject: 's', actor: 'a', causes: [], data: {} },
  };
}

/** How many requests the sent facts speak of: records and counts together. */
function told(): { records: number; counted: number } {
  const facts = sent.flatMap((batch) => batch.facts);
  return {
    records: facts.filter((fact) => fact.kind === 'request').length,
    counted: facts.reduce((sum, fact) => sum + (fact.kind === 'group' ? fact.count : 0), 0),
  };
}

describe('batches', () => {
  test('facts of one turn leave together, numbered from 1', () => {
    for (let i = 0; i < 3; i++) outbox.push(event());
    expect(sent).toEqual([]);
    turn();
    outbox.push(event());
    turn();
    expect(sent.map(({ sequence, facts }) => [sequence, facts.length])).toEqual([
      [1, 3],
      [2, 1],
    ]);
    expect(outbox.waiting).toBe(4);
    storeAll();
    expect(outbox.waiting).toBe(0);
  });

  test('what is not known to be stored is sent again on a new connection, the same under the same number', () => {
    for (let i = 0; i < 3; i++) {
      outbox.push(event());
      turn();
    }
    outbox.stored(2);
    connected = false;
    outbox.push(event());
    turn();
    const before = sent.splice(0);
    connected = true;
    outbox.up();
    turn();
    expect(sent.map(({ sequence }) => sequence)).toEqual([1, 3, 4]);
    expect(sent[0]).toEqual(before[0]);
    expect(sent[1]).toEqual(before[2]);
    storeAll();
    expect(outbox.waiting).toBe(0);
  });

  test('every turn has its batch while control is slow; beyond a bound facts wait, and leave in full ones', () => {
    for (let i = 0; i < 3000; i++) {
      outbox.push(event());
      turn();
    }
    expect(sent.length).toBe(2000);
    storeAll();
    expect(sent.flatMap(({ facts }) => facts).length).toBe(3000);
    expect(Math.max(...sent.map(({ facts }) => facts.length))).toBe(200);
    expect(outbox.waiting).toBe(0);
  });

  test('an acknowledgement of what was never sent, or twice, does nothing', () => {
    outbox.push(event());
    turn();
    outbox.stored(7);
    outbox.stored(1);
    outbox.stored(1);
    expect(outbox.waiting).toBe(0);
  });

  test('says when everything is stored', () => {
    let empty = 0;
    outbox.onEmpty = () => empty++;
    outbox.push(event());
    turn();
    expect(empty).toBe(0);
    storeAll();
    expect(empty).toBe(1);
  });
});

describe('the rate of full records', () => {
  test('above it each kind has one example and a count, told when its second is over', async () => {
    outbox.limits.recordsPerSecondMax = 10;
    for (let i = 0; i < 100; i++) end();
    for (let i = 0; i < 5; i++) end('ok');
    turn();
    expect(told()).toEqual({ records: 12, counted: 0 });
    await time.advance(1000);
    turn();
    expect(told()).toEqual({ records: 12, counted: 93 });
    const groups = sent.flatMap(({ facts }) => facts).filter((fact) => fact.kind === 'group');
    expect(groups).toMatchObject([
      { route: 'chat', tenant: 'web', reason: 'overloaded', count: 89, second: Date.UTC(2026, 0, 1) / 1000 },
      { reason: 'ok', count: 4 },
    ]);
    const ids = sent
      .flatMap(({ facts }) => facts)
      .flatMap((fact) => (fact.kind === 'request' ? fact.record.id : []));
    for (const group of groups) expect(ids).toContain(group.example);
  });

  test('each second has its own', async () => {
    outbox.limits.recordsPerSecondMax = 10;
    for (let second = 0; second < 3; second++) {
      for (let i = 0; i < 10; i++) end();
      await time.advance(1000);
    }
    turn();
    expect(told()).toEqual({ records: 30, counted: 0 });
  });

  test('a rate of 0 keeps an example of each kind', async () => {
    outbox.limits.recordsPerSecondMax = 0;
    for (let i = 0; i < 10; i++) end();
    await time.advance(1000);
    turn();
    expect(told()).toEqual({ records: 1, counted: 9 });
  });
});

describe('while control is away', () => {
  beforeEach(() => {
    connected = false;
    outbox.limits = { factsMax: 200, recordsPerSecondMax: 1_000_000 };
  });

  test('beyond the bound records become counts, and no request is lost', async () => {
    for (let second = 0; second < 20; second++) {
      for (let i = 0; i < 500; i++) end(i % 2 ? 'overloaded' : 'ok');
      await time.advance(1000);
    }
    turn();
    expect(outbox.waiting).toBeLessThan(200 + 2 * 20 * 2 + 1);
    connected = true;
    outbox.up();
    turn();
    storeAll();
    outbox.flushGroups();
    turn();
    storeAll();
    expect(outbox.waiting).toBe(0);
    const { records, counted } = told();
    expect(records + counted).toBe(10_000);
    expect(records).toBeGreaterThanOrEqual(200);
  });

  test('what waits is bounded, whatever comes', () => {
    for (let i = 0; i < 50_000; i++) end('overloaded', `route-${i}`);
    for (let i = 0; i < 5000; i++) outbox.push(event());
    turn();
    expect(outbox.waiting).toBeLessThanOrEqual(200 + 1000 + GROUPS_MAX + 1);
    connected = true;
    outbox.up();
    turn();
    storeAll();
    outbox.flushGroups();
    turn();
    storeAll();
    const { records, counted } = told();
    expect(records + counted).toBe(50_000);
  });

  test('events are kept up to the bound, and those beyond it are counted and told', () => {
    for (let i = 0; i < 1500; i++) outbox.push(event());
    connected = true;
    outbox.up();
    turn();
    storeAll();
    const events = sent
      .flatMap(({ facts }) => facts)
      .flatMap((fact) => (fact.kind === 'event' ? fact.event : []));
    expect(events.length).toBe(1201);
    expect(events.find(({ type }) => type === 'events-dropped')?.data).toMatchObject({ count: 300 });
  });
});
