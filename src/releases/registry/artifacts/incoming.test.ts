import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Incoming } from './incoming.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-incoming-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const SHA = 'a'.repeat(64);

test('a piece that finds no room is told, and leaves what was there before', async () => {
  // A process that may write 8 KiB to a file: what the file system says then is what a full disk says.
  const script = `
    import { Incoming } from ${JSON.stringify(new URL('./incoming.ts', import.meta.url).href)};
    const incoming = new Incoming(${JSON.stringify(folder)});
    await incoming.add('${SHA}', 0, Buffer.alloc(5000, 1), 0);
    const told = await incoming.add('${SHA}', 5000, Buffer.alloc(5000, 2), 0).catch((error) => error.trouble);
    console.log(JSON.stringify({ told, bytes: await incoming.bytes('${SHA}') }));
  `;
  const limited = `ulimit -f 8; exec ${JSON.stringify(process.execPath)} --input-type=module -e "$SCRIPT"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', limited], {
    env: { ...process.env, SCRIPT: script },
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual({ told: 'full', bytes: 5000 });
  expect(await new Incoming(folder).add(SHA, 5000, Buffer.alloc(10), 0)).toBe(5010);
});

test('pieces follow one another, and what nobody goes on with is removed', async () => {
  const incoming = new Incoming(folder);
  const now = 1_700_000_000_000;
  expect(await incoming.add(SHA, 0, Buffer.from('abc'), now)).toBe(3);
  await expect(incoming.add(SHA, 2, Buffer.from('c'), now)).rejects.toMatchObject({ trouble: 'wrong' });
  await expect(incoming.add(SHA, 4, Buffer.from('e'), now)).rejects.toMatchObject({ trouble: 'wrong' });
  expect(await incoming.bytes(SHA)).toBe(3);
  const later = 4_000_000_000_000;
  await incoming.add('b'.repeat(64), 0, Buffer.from('x'), later);
  expect(await incoming.bytes(SHA)).toBe(0);
});
