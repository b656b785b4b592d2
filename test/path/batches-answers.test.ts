import { describe, expect, it } from 'vitest';
import { BatchWorld } from './batches-world.ts';
import { NOTHING } from './virtual-gateway.ts';

describe('a batch', () => {
  it('holds no more of its answers than the worker has room for, and asks the rest once more', async () => {
    const half = Buffer.alloc(15_000, 'x');
    let most = 0;
    const world = new BatchWorld((served) => {
      served.sink.onHead(200, { 'content-type': 'application/json' });
      const pieces = [Buffer.from('{"choices":[{"message":{"content":"'), half, half, Buffer.from('"}}]}')];
      pieces.forEach((piece, at) => {
        served.time.set(20 * at + 1, () => {
          most = Math.max(most, world.gateway.buffers.held);
          if (!served.aborted) served.sink.onData(piece);
          if (!served.aborted && at === pieces.length - 1) served.sink.onEnd();
        });
      });
    });
    world.gateway.buffers.bytesMax = 100_000;
    world.worker('w0');
    const id = await world.start(60);
    expect(await world.end(id)).toMatchObject({ status: 'completed', completed: 60, failed: 0 });
    expect(world.asked.length).toBeGreaterThan(60);
    expect(most).toBeGreaterThan(60_000);
    await world.runners[0]!.close();
    expect(world.gateway.taken).toEqual(NOTHING);
  });
});
