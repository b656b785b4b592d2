import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { StoreError } from '../../src/store/contracts.ts';
import { BatchWorld, choosing, HOUR } from './batches-world.ts';
import { chatAnswer, failing, NOTHING, never, status } from './virtual-gateway.ts';

describe('a batch', () => {
  it('is run to its end, tells of it, and leaves nothing taken', async () => {
    const world = new BatchWorld(chatAnswer('hello'));
    world.worker('w0');
    const id = await world.start(100);
    const batch = await world.end(id);
    expect(batch).toMatchObject({ status: 'completed', total: 100, completed: 100, failed: 0 });
    expect(world.linesOf(batch.outputFile).map((line) => line.custom_id)).toEqual(
      Array.from({ length: 100 }, (_, i) => `q-${i}`),
    );
    expect(world.asked).toHaveLength(100);
    expect(world.gateway.events().map(({ type, subject, causes }) => [type, subject, causes])).toEqual([
      ['batch-began', `batch:${id}`, [id.replace('batch', 'ev')]],
      ['batch-completed', `batch:${id}`, [id.replace('batch', 'ev')]],
    ]);
    await world.runners[0]!.close();
    expect(world.gateway.taken).toEqual(NOTHING);
  });

  it('waits out an engine that is not there for hours', async () => {
    let up = false;
    const world = new BatchWorld((served) => (up ? chatAnswer('x') : failing())(served));
    world.worker('w0');
    const id = await world.start(30);
    // Reading its file takes real time, of which hours that pass at once have next to none.
    await world.until(async () => (await world.batch(id)).status === 'in_progress');
    for (let i = 0; i < 240; i++) await world.pass(30_000);
    expect(await world.batch(id)).toMatchObject({ status: 'in_progress', completed: 0, failed: 0 });
    up = true;
    expect(await world.end(id, 1000)).toMatchObject({ status: 'completed', completed: 30, failed: 0 });
  });

  it('expires with its window: what was answered is there, the rest is told so, and is no failure of its lines', async () => {
    const world = new BatchWorld(
      choosing((asked) => (Number(asked.split(' ')[1]) < 10 ? chatAnswer('x') : status(503))),
    );
    world.worker('w0');
    const id = await world.start(25, { windowMs: HOUR });
    const batch = await world.end(id, 5000);
    expect(batch).toMatchObject({ status: 'expired', total: 25, completed: 10, failed: 0 });
    expect(batch.since.expired).toBeGreaterThanOrEqual(batch.expiresMs);
    expect(world.linesOf(batch.outputFile)).toHaveLength(10);
    const errors = world.linesOf(batch.errorFile);
    expect(errors.map(({ custom_id: name, error }) => [name, error!.code])).toEqual(
      Array.from({ length: 15 }, (_, i) => [`q-${i + 10}`, 'batch_expired']),
    );
  });

  it('has every line asked in its turn, however many others fail', async () => {
    const world = new BatchWorld(
      choosing((asked) => (/ (?:7|33)$/.test(asked) ? status(500) : chatAnswer('x', 100))),
    );
    world.worker('w0');
    const id = await world.start(100);
    const since = world.gateway.time.mono();
    await world.until(async () => (await world.batch(id)).completed === 98);
    expect(world.gateway.time.mono() - since).toBeLessThan(60_000);
    expect(await world.batch(id)).toMatchObject({ status: 'in_progress', failed: 0 });
  });

  it('gives up a line that its engine fails at again and again, while it answers others', async () => {
    const world = new BatchWorld(
      choosing((asked) => (asked === 'question 3' ? status(500) : chatAnswer('x', 5000))),
      { backend: { limits: { concurrency: 2 } } },
    );
    world.worker('w0');
    const id = await world.start(2000);
    const batch = await world.end(id, 500);
    expect(batch).toMatchObject({ status: 'completed', completed: 1999, failed: 1 });
    const [error] = world.linesOf(batch.errorFile);
    expect(error).toMatchObject({ custom_id: 'q-3', response: { status_code: 502 } });
    // Not before it had gone on for long.
    expect(world.asked.filter((asked) => asked === 'question 3').length).toBeGreaterThanOrEqual(20);
  });

  it('never takes a rung of the ladder', async () => {
    let full = true;
    const world = new BatchWorld(
      (served) => (full ? status(429, {}, { 'retry-after': '2' }) : chatAnswer('x'))(served),
      {
        route: { ladder: [{ answer: 'rough' }] },
      },
    );
    world.worker('w0');
    const id = await world.start(5);
    for (let i = 0; i < 60; i++) await world.pass(500);
    full = false;
    const batch = await world.end(id);
    expect(batch).toMatchObject({ completed: 5, failed: 0 });
    expect(readFileSync(world.disk.pathOf(batch.outputFile!), 'utf8')).not.toContain('rough');
  });

  it('has errors for the lines of a tenant that is no more', async () => {
    const tenants = { web: {}, other: {} };
    const world = new BatchWorld(chatAnswer('x', 1000), {
      top: { tenants },
      backend: { limits: { concurrency: 2 } },
    });
    world.worker('w0');
    const id = await world.start(30, { tenant: 'web' });
    await world.until(async () => (await world.batch(id, 'web')).completed > 5);
    const { settings } = world.gateway.world.snapshot!;
    world.gateway.world.swap({
      ...world.gateway.world.snapshot!,
      number: 2,
      settings: { ...settings, tenants: { other: settings.tenants!['other']! } },
    });
    await world.until(async () => (await world.batch(id, 'web')).status === 'completed');
    const batch = await world.batch(id, 'web');
    expect(batch.completed + batch.failed).toBe(30);
    expect(batch.failed).toBeGreaterThan(0);
    expect(world.linesOf(batch.errorFile)[0]!.error!.code).toBe('unauthorized');
  });

  it('waits for a disk that is full, and loses nothing', async () => {
    const world = new BatchWorld(chatAnswer('x', 200));
    world.worker('w0');
    const id = await world.start(40);
    await world.until(async () => (await world.batch(id)).completed >= 4);
    world.trouble = new StoreError('full', 'the disk is full');
    for (let i = 0; i < 100; i++) await world.pass(100);
    world.trouble = undefined;
    const batch = await world.end(id);
    expect(batch).toMatchObject({ status: 'completed', completed: 40, failed: 0 });
    expect(world.asked).toHaveLength(40);
  });
});

describe('workers', () => {
  const running = { backend: { limits: { concurrency: 4 } } };

  it('that drain begin no line, finish those that are asked, and leave the rest to others at once', async () => {
    const world = new BatchWorld(chatAnswer('x', 1000), running);
    const first = world.worker('w0');
    const id = await world.start(40);
    await world.until(async () => (await world.batch(id)).completed >= 8);
    const asked = world.asked.length;
    first.drain();
    for (let i = 0; i < 60; i++) await world.pass(100);
    expect(world.asked).toHaveLength(asked);
    expect((await world.batch(id)).completed).toBe(asked);
    world.worker('w1');
    expect(await world.end(id)).toMatchObject({ status: 'completed', completed: 40 });
    expect(world.asked).toHaveLength(40);
  });

  it.each([
    ['is dead is taken over at once', 2 ** 22 + 7, 1500],
    ['stands still is taken over after seconds, and writes nothing any more', process.ppid, 8000],
  ])('one that %s', async (_, pid, withinMs) => {
    const world = new BatchWorld(chatAnswer('x', 100), running);
    const first = world.worker('w0', pid);
    const id = await world.start(200);
    await world.until(async () => (await world.batch(id)).completed >= 20);
    // It goes on with what it has, but says no more that it lives.
    const { call } = world.store;
    let stands = true;
    Object.assign(world.store, {
      call: (name: 'beat', args: { boot: string }) =>
        stands && args.boot === 'w0' && ['look', 'beat', 'bury', 'claim'].includes(name)
          ? new Promise(() => undefined)
          : call(name as never, args as never),
    });
    const since = world.gateway.time.mono();
    world.worker('w1');
    await world.until(async () => (await world.batch(id)).epoch === 2, 50, withinMs / 50);
    expect(world.gateway.time.mono() - since).toBeLessThanOrEqual(withinMs);
    const batch = await world.end(id);
    stands = false;
    expect(batch).toMatchObject({ status: 'completed', completed: 200, failed: 0 });
    expect(world.linesOf(batch.outputFile)).toHaveLength(200);
    expect(world.asked.length).toBeLessThanOrEqual(260);
    void first;
  });

  it('share batches so that no tenant waits for all of another one', async () => {
    const world = new BatchWorld(chatAnswer('x', 500), { ...running, top: { tenants: { a: {}, b: {} } } });
    for (let i = 0; i < 20; i++) await world.start(50, { tenant: 'a' });
    const late = await world.start(5, { tenant: 'b' });
    world.worker('w0');
    await world.until(async () => (await world.batch(late, 'b')).status === 'completed');
    const others = (await world.store.call('batches', { tenant: 'a', limit: 100, after: undefined }))!;
    expect(others.items.filter((batch) => batch.status === 'validating').length).toBeGreaterThan(5);
  });

  it('cancel: what no engine has is given up, what one has is in the output', async () => {
    let held = true;
    const world = new BatchWorld((served) => (held ? never : chatAnswer('x'))(served), {
      backend: { limits: { concurrency: 2 } },
    });
    const runner = world.worker('w0');
    const id = await world.start(20);
    await world.until(() => world.gateway.served.length === 2);
    await world.store.call('cancelBatch', { id, tenant: 'open', nowMs: world.gateway.time.wall() });
    runner.poke();
    await world.pass(50);
    held = false;
    for (const served of world.gateway.served) chatAnswer('x', 1)(served);
    const batch = await world.end(id);
    expect(batch).toMatchObject({ status: 'cancelled', completed: 2, failed: 0 });
    expect(world.gateway.served).toHaveLength(2);
    expect(world.gateway.taken).toEqual(NOTHING);
  });
});
