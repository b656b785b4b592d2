import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { hookRunner } from '../../src/control/drift/hook.ts';
import { systemTimers } from '../../src/kernel/timers.ts';

/** Hooks that do not do what they should. */

const run = hookRunner(systemTimers);
const never = new AbortController().signal;
const program = (code: string, timeout = 10_000) =>
  run({ command: [process.execPath, '-e', code], timeout }, '{"alarm":"ev_1"}', never);

async function posted(status: number, body: string, timeout = 10_000): Promise<string | undefined> {
  const server = createServer((request, response) => {
    request.resume();
    if (status > 0) response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    return await run({ url, timeout }, '{}', never);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('a hook', () => {
  it('may name a job, or say anything else', async () => {
    expect(await program('console.log(JSON.stringify({ job: 7 }))')).toBe('7');
    expect(await program('console.log("started")')).toBeUndefined();
    // What it leaves running holds its output open.
    const leaves = `require('child_process').spawn('sleep', ['30'], { stdio: 'inherit' }).unref();
      console.log('{"job":"b"}'); process.exit()`;
    expect(await program(leaves)).toBe('b');
    expect(await posted(200, '{"job":"a"}')).toBe('a');
    expect(await posted(202, '')).toBeUndefined();
  });

  it('fails where it says so, is not there, or takes too long', async () => {
    await expect(program('console.error("no room"); process.exit(3)')).rejects.toThrow(
      'it ended with 3: no room',
    );
    await expect(program('setInterval(() => {}, 1000)', 300)).rejects.toThrow('within 300 ms');
    await expect(run({ command: ['/nowhere/train'], timeout: 1000 }, '{}', never)).rejects.toThrow('ENOENT');
    await expect(posted(500, 'no')).rejects.toThrow('it answered 500');
    await expect(posted(302, '')).rejects.toThrow();
    await expect(posted(0, '', 300)).rejects.toThrow('within 300 ms');
  });
});
