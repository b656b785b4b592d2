import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CommonOptions } from '../../src/cli/command.ts';
import { BrokeOff, findRunning } from '../../src/cli/running.ts';

let data: string;
let server: Server;
let admin: string;
let asked: { method: string; url: string; headers: IncomingHttpHeaders; body: string }[];
let answer: (response: ServerResponse, url: string) => void;

beforeEach(async () => {
  data = mkdtempSync(join(tmpdir(), 'armature-running-'));
  asked = [];
  answer = (response) => response.end('{"good":true}');
  server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    asked.push({ method: request.method!, url: request.url!, headers: request.headers, body });
    answer(response, request.url!);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  vi.unstubAllEnvs();
  rmSync(data, { recursive: true, force: true });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const common = (given: Partial<CommonOptions> = {}): CommonOptions => ({
  json: false,
  config: undefined,
  data: join(data, 'none'),
  dataGiven: false,
  admin: undefined,
  ...given,
});

/** As `up` leaves it. */
function running(folder: string, address = admin): void {
  mkdirSync(join(folder, 'run'), { recursive: true });
  writeFileSync(
    join(folder, 'run', 'addresses.json'),
    JSON.stringify({ gateway: 'http://127.0.0.1:7070', admin: address }),
  );
  writeFileSync(join(folder, 'run', 'admin.token'), 'secret-token\n', { mode: 0o600 });
}

describe('a running Armature is found', () => {
  it('by the data directory, with its token and its gateway', async () => {
    running(data);
    const found = await findRunning(common({ data, dataGiven: true }));
    expect(await found.call('/api/v1/status')).toEqual({ good: true });
    expect(found.gateway).toBe('http://127.0.0.1:7070');
    expect(asked[0]).toMatchObject({ method: 'GET', url: '/api/v1/status' });
    expect(asked[0]!.headers.authorization).toBe('Bearer secret-token');
  });

  it('by --admin, and gives the token of a data directory to nobody else', async () => {
    running(data, 'http://127.0.0.1:1');
    const found = await findRunning(common({ data, admin: `${admin}/` }));
    await found.call('/api/v1/status');
    expect(asked[0]!.headers.authorization).toBeUndefined();
  });

  it('by ARMATURE_ADMIN, with ARMATURE_ADMIN_TOKEN', async () => {
    vi.stubEnv('ARMATURE_ADMIN', admin);
    vi.stubEnv('ARMATURE_ADMIN_TOKEN', 'from-environment');
    await (await findRunning(common())).call('/api/v1/status');
    expect(asked[0]!.headers.authorization).toBe('Bearer from-environment');
  });

  it('by the configuration file', async () => {
    const config = join(data, 'armature.yaml');
    writeFileSync(config, `admin: { listen: "${admin.slice('http://'.length)}" }\n`);
    await (await findRunning(common({ config }))).call('/api/v1/status');
    expect(asked).toHaveLength(1);
  });

  it('by --data rather than by ARMATURE_ADMIN', async () => {
    vi.stubEnv('ARMATURE_ADMIN', 'http://127.0.0.1:1');
    running(data);
    expect((await findRunning(common({ data, dataGiven: true }))).admin).toBe(admin);
  });
});

describe('what cannot be reached is told', () => {
  it('where nothing says that one runs', async () => {
    await expect(findRunning(common())).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('no Armature runs with the data directory'),
    });
  });

  it('where nobody listens', async () => {
    const free = createNetServer();
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(free.address() as AddressInfo).port}`;
    await new Promise((resolve) => free.close(resolve));
    await expect((await findRunning(common({ admin: address }))).call('/')).rejects.toMatchObject({
      exitCode: 1,
      message: `no Armature answers at ${address} (ECONNREFUSED)`,
    });
  });

  it('where it goes away once it was asked: whether it did that is not known', async () => {
    answer = (response) => response.socket!.destroy();
    const asked = (await findRunning(common({ admin }))).call('/api/v1/keys', { method: 'POST', body: {} });
    await expect(asked).rejects.toThrow(BrokeOff);
    await expect(asked).rejects.toMatchObject({ exitCode: 1, message: expect.stringContaining('broke off') });
  });

  it('where --admin is no address', async () => {
    await expect(findRunning(common({ admin: '7071' }))).rejects.toMatchObject({ exitCode: 2 });
  });

  it.each([
    [401, '{"error":{"message":"no token"}}', /wants a token.*ARMATURE_ADMIN_TOKEN.*no token/],
    [404, '{"error":"no such key"}', /^no such key$/],
    [500, 'oops', /answered 500$/],
    [200, '<html>', /no JSON/],
  ])('where it answers %i %s', async (status, body, message) => {
    answer = (response) => response.writeHead(status).end(body);
    await expect((await findRunning(common({ admin }))).call('/x')).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(message),
    });
  });
});

describe('a call', () => {
  it('sends JSON and takes an empty answer', async () => {
    answer = (response) => response.writeHead(204).end();
    const found = await findRunning(common({ admin }));
    expect(await found.call('/api/v1/keys', { method: 'POST', body: { tenant: 'web' } })).toBeUndefined();
    expect(asked[0]).toMatchObject({ method: 'POST', body: '{"tenant":"web"}' });
    expect(asked[0]!.headers['content-type']).toBe('application/json');
  });
});

describe('lines', () => {
  it('come as they are written', async () => {
    let more: ServerResponse | undefined;
    answer = (response) => {
      more = response;
      response.write('{"n":1}\n{"n":');
    };
    const seen: string[] = [];
    for await (const line of (await findRunning(common({ admin }))).lines('/api/v1/events?follow=1')) {
      seen.push(line);
      if (seen.length === 1) more!.end('2}\n');
    }
    expect(seen).toEqual(['{"n":1}', '{"n":2}']);
  });

  it('that are cut off are no clean end', async () => {
    answer = (response) => {
      response.write('{"n":1}\n');
      setImmediate(() => response.destroy());
    };
    const read = async () => {
      for await (const _line of (await findRunning(common({ admin }))).lines('/x'));
    };
    await expect(read()).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('broke off its answer'),
    });
  });
});
