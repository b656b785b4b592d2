import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LedgerEvent } from '../events/contracts.ts';
import { VirtualTime } from '../kernel/virtual-time.ts';
import type { Store } from './contracts.ts';
import { memoryStore } from './memory/index.ts';
import { sqliteStore } from './sqlite/index.ts';

/**
 * What workers do with batches: they send them, some of them again, a few of which come within one moment; or control dies
 * before, or after, they have been stored.
 */
type Deed = { do: 'send'; batches: { boot: number; sequence: number }[] } | { do: 'restart' };

const BOOTS = 3;
const SEQUENCES = 12;

const deed: fc.Arbitrary<Deed> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      batches: fc.array(
        fc.record({ boot: fc.nat(BOOTS - 1), sequence: fc.integer({ min: 1, max: SEQUENCES }) }),
        { minLength: 1, maxLength: 5 },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);

/** Batches differ in length; some are empty. */
function batch(boot: number, sequence: number): LedgerEvent[] {
  return Array.from({ length: (boot + sequence) % 4 }, (_, n) => ({
    id: `ev_${boot}_${sequence}_${n}`,
    at: '2026-01-01T00:00:00.000Z',
    type: 'worker-died',
    subject: 'worker:0',
    actor: 'armature',
    causes: [],
    data: {},
  }));
}

async function check(deeds: Deed[], open: () => Store, restart: (store: Store) => Store): Promise<void> {
  let store = open();
  const sent = new Set<string>();
  for (const it of deeds) {
    if (it.do === 'restart') {
      store = restart(store);
      continue;
    }
    const fresh = it.batches.map(({ boot, sequence }) => {
      const known = sent.has(`${boot} ${sequence}`);
      sent.add(`${boot} ${sequence}`);
      return !known;
    });
    const batches = it.batches.map(({ boot, sequence }) => ({
      boot: `boot-${boot}`,
      sequence,
      events: batch(boot, sequence),
    }));
    expect(await store.ledger.storeBatches(batches)).toEqual(fresh);
  }
  const expected = [...sent].flatMap((key) => batch(Number(key.split(' ')[0]), Number(key.split(' ')[1])));
  const stored = await store.ledger.events({ order: 'asc', limit: 1000 });
  expect(stored.map(({ event }) => event.id)).toEqual(expected.map(({ id }) => id));
  await store.close();
}

test('memory: every fact is stored exactly once, whatever is sent again and in whatever order', async () => {
  const property = fc.asyncProperty(fc.array(deed, { maxLength: 80 }), (deeds) =>
    check(deeds, memoryStore, (store) => store),
  );
  await fc.assert(property, { numRuns: 100 });
});

test('sqlite: every fact is stored exactly once, over restarts too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'armature-once-'));
  let files = 0;
  const property = fc.asyncProperty(fc.array(deed, { maxLength: 60 }), async (deeds) => {
    const path = join(folder, `${files++}.db`);
    const left: Store[] = [];
    const open = () => sqliteStore({ path, clock: new VirtualTime() });
    // The one before is left as a killed process leaves it: not closed.
    await check(deeds, open, (store) => {
      left.push(store);
      return open();
    });
    for (const store of left) await store.close();
  });
  await fc.assert(property, { numRuns: 25 });
  rmSync(folder, { recursive: true });
});
