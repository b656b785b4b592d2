import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { isReady } from '../../src/gateway/readiness.ts';
import { NEXT, OLD, ReleaseGateway } from './release-world.ts';
import { chatAnswer, VirtualGateway } from './virtual-gateway.ts';

/** Whether a route is said to be ready, and which routes are told of at all, against what callers get. */

const SESSIONS = Array.from({ length: 12 }, (_, i) => `s${i}`);
const ORIGINS = { old: OLD!, other: 'http://other:1', next: NEXT! };

it('a route under release is ready exactly while its requests are answered, wherever the release stands', async () => {
  const shares = fc.constantFrom(0, 0.1, 0.5, 1);
  const unwell = fc.subarray(Object.keys(ORIGINS) as (keyof typeof ORIGINS)[]);
  await fc.assert(
    fc.asyncProperty(shares, unwell, fc.boolean(), async (share, names, isOver) => {
      const gateway = new ReleaseGateway(share, { stable: [1, 1] });
      if (isOver) gateway.rollBack(share);
      const health = Object.fromEntries(
        names.map((name) => [`${name}|${ORIGINS[name]}/v1`, 'unwell' as const]),
      );
      gateway.world.read({ health });
      const ready = isReady(gateway.world, 'chat', gateway.time.mono());
      for (const session of SESSIONS)
        expect((await gateway.askedAs(session)) !== undefined, session).toBe(ready);
    }),
    { numRuns: 100 },
  );
});

test('what a promoted canary has replaced keeps the route ready, until it cannot be gone back to any more', () => {
  const gateway = new ReleaseGateway(1);
  const ready = () => isReady(gateway.world, 'chat', gateway.time.mono());
  gateway.world.read({ health: { [`next|${NEXT}/v1`]: 'unwell' } });
  expect(ready()).toBe(true);
  gateway.rollBack(1); // the release is over, and all has gone to what it brought
  expect(ready()).toBe(false);
});

test('a retired route is not listed, not ready and answers nobody; given back, it is all of that again', async () => {
  const configured = (retired: boolean) => ({
    backends: { one: { engine: 'openai', model: 'm', endpoints: ['http://one:1/v1'] } },
    routes: {
      old: { targets: [{ backend: 'one' }], retired, ladder: [{ answer: 'busy' }] },
      chat: { targets: [{ backend: 'one' }] },
    },
  });
  const gateway = new VirtualGateway(configured(true));
  gateway.engines.set('http://one:1', chatAnswer('x', 1));
  const get = (target: string) => {
    const caller = gateway.send('GET', target, '');
    return { status: caller.status, body: JSON.parse(caller.text) };
  };
  const listed = () => get('/v1/models').body.data.map(({ id }: { id: string }) => id);
  const ready = () => isReady(gateway.world, 'old', gateway.time.mono());

  expect(listed()).toEqual(['chat']);
  expect(get('/v1/models/old')).toMatchObject({
    status: 404,
    body: { error: { code: 'unknown_route', message: expect.stringContaining('was retired') } },
  });
  for (const target of ['/v2/models/old', '/v2/models/old/ready'])
    expect(get(target)).toEqual({ status: 404, body: { error: expect.stringContaining('was retired') } });
  // A name that is nearly its own is not told of it.
  expect(get('/v1/models/OLD').body.error.message).not.toContain('old');
  expect(ready()).toBeUndefined();

  gateway.load(configured(false));
  expect(listed()).toEqual(['old', 'chat']);
  expect(get('/v1/models/old').status).toBe(200);
  expect(ready()).toBe(true);
});
