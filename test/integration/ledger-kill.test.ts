import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/kernel/clock.ts';
import { seededRandom } from '../../src/kernel/random.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { batchOf } from './ledger-batches.ts';

/** A process that writes to the store is killed, again and again: what it had said to be stored is there, once. */

const WRITER = join(import.meta.dirname, 'ledger-writer.ts');
const EVENTS = 7;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-kill-'));
  path = join(folder, 'state.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs a writer from a sequence on and kills it once it has said so much; gives what it said of each. */
async function writeUntilKilled(
  from: number,
  lines: number,
  limitBlocks?: number,
): Promise<Map<number, string>> {
  const command = `exec "${process.execPath}" "${WRITER}" --path "${path}" --from ${from} --events ${EVENTS}`;
  const limit = limitBlocks === undefined ? '' : `ulimit -f ${limitBlocks}; `;
  const writer = spawn('sh', ['-c', limit + command], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said = new Map<number, string>();
  for await (const line of createInterface({ input: writer.stdout })) {
    const [what = '', sequence] = line.split(' ');
    // A line that the kill has cut short says nothing.
    if (sequence !== undefined && line.endsWith('.')) said.set(Number.parseInt(sequence, 10), what);
    if (said.size === lines) writer.kill('SIGKILL');
  }
  return said;
}

function check(): { events: number; ids: number; batches: number } {
  const database = new DatabaseSync(path);
  expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  const counts = database.prepare('SELECT count(*) AS events, count(DISTINCT id) AS ids FROM events').get();
  const batches = database.prepare('SELECT coalesce(sum(last - first + 1), 0) AS batches FROM batches').get();
  database.close();
  return { ...(counts as { events: number; ids: number }), ...(batches as { batches: number }) };
}

test('kill -9 of the writer loses nothing that it had stored, and stores nothing twice', async () => {
  const random = seededRandom(7);
  let from = 1;
  for (let round = 0; round < 6; round++) {
    const said = await writeUntilKilled(from, 20 + Math.floor(random.next() * 200));
    expect([...said.values()].every((what) => what === 'stored')).toBe(true);
    const { events, ids, batches } = check();
    expect([events, ids]).toEqual([batches * EVENTS, batches * EVENTS]);
    // One batch at most was stored without its word having come through, for each line of the pipe that was lost.
    expect(batches).toBeGreaterThanOrEqual(from - 1 + said.size);
    // As a worker does that has not heard of its last batches: it sends them again.
    const store = sqliteStore({ path, clock: systemClock });
    const last = Math.max(...said.keys());
    for (let sequence = from; sequence <= last; sequence++) {
      const batch = { boot: 'boot', sequence, events: batchOf(sequence, EVENTS) };
      expect(await store.ledger.storeBatches([batch])).toEqual([false]);
    }
    await store.close();
    from = check().batches + 1;
  }
});

test('a disk that takes no more is told of each batch, and spoils nothing', async () => {
  const said = await writeUntilKilled(1, 200, 700);
  const kinds = new Set(said.values());
  expect(kinds).toContain('stored');
  expect(kinds.size).toBeGreaterThan(1);
  const stored = [...said.values()].filter((what) => what === 'stored').length;
  const { events, ids, batches } = check();
  expect([events, ids]).toEqual([batches * EVENTS, batches * EVENTS]);
  expect(batches).toBeGreaterThanOrEqual(stored);
  expect(batches).toBeLessThan(200);
});
