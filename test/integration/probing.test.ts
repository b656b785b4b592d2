import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { httpProbe } from '../../src/control/probing/http-probe.ts';
import type { ProbeTarget } from '../../src/control/probing/prober.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { systemTimers } from '../../src/kernel/timers.ts';
import { eventually } from '../upstream/waiting.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function serve(answer: RequestListener): Promise<{ server: Server; target: ProbeTarget }> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const target = {
    backend: 'b',
    endpoint,
    url: `${endpoint}/health?deep=1`,
    headers: { authorization: 'Bearer k' },
    tls: undefined,
    everyMs: 5000,
    healthy: 2,
    unhealthy: 3,
    pathGiven: false,
  };
  return { server, target };
}

const probe = httpProbe(systemTimers);

test('one GET with the key, on a connection that is closed after it', async () => {
  const seen: unknown[] = [];
  const { server, target } = await serve((request, response) => {
    seen.push([request.method, request.url, request.headers.authorization]);
    response.writeHead(503).end('loading');
  });
  expect(await probe(target, 1000)).toEqual({ status: 503 });
  expect(seen).toEqual([['GET', '/health?deep=1', 'Bearer k']]);
  const connections = () =>
    new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
  await eventually('no connection is left', async () => (await connections()) === 0);
});

test('an engine that says nothing, or never stops, takes no longer than a probe may', async () => {
  const mute = await serve(() => {});
  const endless = await serve((_, response) => {
    response.writeHead(200);
    const more = () => {
      while (response.write('x'.repeat(16_384)));
      response.once('drain', more);
    };
    more();
  });
  const began = systemClock.mono();
  expect(await probe(mute.target, 300)).toEqual({ fault: 'no answer within 300 ms' });
  expect(await probe(endless.target, 2000)).toEqual({ status: 200 });
  expect(systemClock.mono() - began).toBeLessThan(2000);
});

test('an engine that is not there is told as it is', async () => {
  const { server, target } = await serve(() => {});
  await new Promise((resolve) => server.close(resolve));
  expect(await probe(target, 1000)).toEqual({ fault: expect.stringContaining('ECONNREFUSED') });
  expect(await probe({ ...target, tls: { ca: '/no/such/file' } }, 1000)).toEqual({
    fault: expect.stringContaining('/no/such/file'),
  });
});
