import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, connect as open } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemRandom } from '../../src/kernel/random.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { type Connection, connect } from '../../src/links/connect.ts';
import { LINE_BYTES_MAX, Link } from '../../src/links/link.ts';
import { type Listener, listen } from '../../src/links/listen.ts';
import { socketPath } from '../../src/links/socket-path.ts';

interface Note {
  type: string;
  text?: string;
}

let folder: string;
let path: string;
const opened: (Listener | Connection<Note>)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'links-'));
  path = socketPath(folder, 'control');
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()));
  rmSync(folder, { recursive: true, force: true });
});

/** A listener that keeps what it hears and the links it has. */
async function hearing() {
  const heard: Note[] = [];
  const links: Link<Note, Note>[] = [];
  const faults: (Error | undefined)[] = [];
  const listener = await listen<Note, Note>(path, {
    onConnect(link) {
      links.push(link);
      link.onMessage = (message) => heard.push(message);
      link.onClose = (fault) => faults.push(fault);
    },
  });
  opened.push(listener);
  return { heard, links, faults, listener };
}

function speaking(
  options: { onMessage?: (message: Note) => void; onUp?: () => void; onDown?: (fault?: Error) => void } = {},
) {
  const connection = connect<Note, Note>(path, {
    hello: () => ({ type: 'hello' }),
    onMessage: () => {},
    timers: systemTimers,
    random: systemRandom,
    ...options,
  });
  opened.push(connection);
  return connection;
}

test('messages go both ways, in order, whatever is in them', async () => {
  const texts = ['plain', 'two\nlines', 'ünïcödé \u2028', 'x'.repeat(3_000_000), ''];
  const { heard, links } = await hearing();
  const back: Note[] = [];
  const connection = speaking({ onMessage: (message) => back.push(message) });
  await expect.poll(() => heard.length).toBe(1);
  for (const text of texts) connection.send({ type: 'note', text });
  await expect.poll(() => heard.length).toBe(1 + texts.length);
  expect(heard.slice(1).map((note) => note.text)).toEqual(texts);
  for (const text of texts) links[0]!.send({ type: 'note', text });
  await expect.poll(() => back.length).toBe(texts.length);
  expect(back.map((note) => note.text)).toEqual(texts);
});

test('the folder is for this user alone', async () => {
  await hearing();
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
});

test('a connection comes before its listener, and comes back after it was gone', async () => {
  const events: string[] = [];
  const connection = speaking({ onUp: () => events.push('up'), onDown: () => events.push('down') });
  expect(connection.send({ type: 'note' })).toBe(false);
  const first = await hearing();
  await expect.poll(() => first.heard.length).toBe(1);
  await first.listener.close();
  await expect.poll(() => events).toEqual(['up', 'down']);
  const second = await hearing();
  await expect.poll(() => second.heard).toEqual([{ type: 'hello' }]);
  expect(events).toEqual(['up', 'down', 'up']);
});

test('what was sent before a close arrives', async () => {
  const { heard } = await hearing();
  const connection = speaking();
  await expect.poll(() => connection.up).toBe(true);
  for (let i = 0; i < 1000; i++) connection.send({ type: 'note', text: 'y'.repeat(1000) });
  await connection.close();
  await expect.poll(() => heard.length).toBe(1001);
});

test("a dead process's socket file is taken over; a living one's is not", async () => {
  await hearing();
  await expect(listen(path, { onConnect: () => {} })).rejects.toThrow(/EADDRINUSE/);
  const dead = socketPath(folder, 'supervisor');
  writeFileSync(dead, '');
  opened.push(await listen(dead, { onConnect: () => {} }));
});

test.each([
  ['no JSON', 'hello\n'],
  ['JSON that is no message', '"hello"\n'],
  ['a message without a type', '{"text":"x"}\n'],
  ['bytes that are no text', Buffer.from([0xff, 0xfe, 10])],
  ['a line without an end', Buffer.alloc(LINE_BYTES_MAX + 1, 'x')],
])('a peer that sends %s loses its connection, and the others keep theirs', async (_, bytes) => {
  const { heard, faults } = await hearing();
  const good = speaking();
  await expect.poll(() => good.up).toBe(true);
  const bad = open(path);
  bad.on('error', () => {});
  const gone = new Promise((resolve) => bad.once('close', resolve));
  bad.write(bytes);
  await gone;
  await expect.poll(() => faults.length).toBe(1);
  expect(faults[0]).toBeInstanceOf(Error);
  good.send({ type: 'note' });
  await expect.poll(() => heard.length).toBe(2);
});

test('a handler that throws ends its own connection only', async () => {
  const { links, faults } = await hearing();
  speaking();
  await expect.poll(() => links.length).toBe(1);
  links[0]!.onMessage = () => {
    throw new Error('unexpected');
  };
  const other = speaking();
  await expect.poll(() => links.length).toBe(2);
  links[0]!.send({ type: 'note' });
  (opened[1] as Connection<Note>).send({ type: 'note' });
  await expect.poll(() => faults.map((fault) => fault?.message)).toEqual(['unexpected']);
  expect(other.up).toBe(true);
});

test('a peer that does not read is cut off instead of filling the memory', async () => {
  const server = createServer((socket) => socket.pause());
  await new Promise<void>((resolve) => server.listen(join(folder, 'deaf.sock'), resolve));
  const link = new Link<Note, Note>(open(join(folder, 'deaf.sock')));
  const closed = new Promise<Error | undefined>((resolve) => {
    link.onClose = resolve;
  });
  const text = 'z'.repeat(2 ** 20);
  let sent = 0;
  while (sent < 1000 && link.send({ type: 'note', text })) sent++;
  expect(sent).toBeLessThan(130);
  expect((await closed)?.message).toMatch(/unread/);
  server.close();
});

test('many messages of one turn leave in one write', async () => {
  const { heard } = await hearing();
  const socket = open(path);
  const link = new Link<Note, Note>(socket);
  let writes = 0;
  const write = socket.write.bind(socket) as (text: string) => boolean;
  socket.write = (text: unknown) => {
    writes++;
    return write(text as string);
  };
  for (let i = 0; i < 100; i++) link.send({ type: 'note', text: String(i) });
  await expect.poll(() => heard.length).toBe(100);
  expect(writes).toBe(1);
  link.close();
});

test('a path too long for the kernel moves to a private folder of its own', async () => {
  const long = join(folder, 'd'.repeat(100));
  path = socketPath(long, 'control');
  expect(Buffer.byteLength(path)).toBeLessThanOrEqual(100);
  expect(path).not.toBe(socketPath(`${long}2`, 'control'));
  const { heard } = await hearing();
  speaking();
  await expect.poll(() => heard.length).toBe(1);
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
  rmSync(dirname(path), { recursive: true, force: true });
});
