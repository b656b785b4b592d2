import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { TransportError, TransportSettings, UpstreamRequest } from '../../src/gateway/contracts.ts';
import { openHttp1 } from '../../src/gateway/transport/http1/index.ts';

const PLAIN: TransportSettings = { connectMs: 1000, tls: undefined };
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A server that hands each connection and each request's text to `serve`. */
async function listen(
  serve: (socket: Socket, request: string, connection: number) => void,
  tls?: { cert: string; key: string },
) {
  let connections = 0;
  const sockets = new Set<Socket>();
  const take = (socket: Socket) => {
    const connection = ++connections;
    sockets.add(socket);
    socket.on('error', () => sockets.delete(socket));
    socket.on('data', (data) => serve(socket, data.toString('latin1'), connection));
  };
  const server: Server = tls ? createTlsServer(tls, take) : createServer(take);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `http${tls ? 's' : ''}://127.0.0.1:${port}`,
    sockets,
    connections: () => connections,
  };
}

function open(origin: string, settings = PLAIN) {
  const transport = openHttp1(origin, settings);
  closers.push(() => transport.close());
  return transport;
}

interface Result {
  status?: number;
  body: string;
  error?: TransportError;
  sent: boolean;
}

/** Sends one request, and resolves when it is over. `onFlight` may break it off: then it resolves at once. */
function send(transport: ReturnType<typeof open>, more: Partial<UpstreamRequest> = {}): Promise<Result> {
  const result: Result = { body: '', sent: false };
  return new Promise((resolve) => {
    transport.send(
      {
        method: 'POST',
        path: '/v1/x',
        headers: ['content-type', 'application/json'],
        body: Buffer.from('{}'),
        fresh: false,
        ...more,
      },
      {
        onSent: () => {
          result.sent = true;
        },
        onHead: (status) => {
          result.status = status;
        },
        onData: (piece) => {
          result.body += piece.toString('latin1');
        },
        onEnd: () => resolve(result),
        onError: (error) => resolve({ ...result, error }),
      },
    );
  });
}

describe('connections to an engine', () => {
  it('sends what it is given, and uses the connection again', async () => {
    const seen: string[] = [];
    const server = await listen((socket, request) => {
      seen.push(request);
      socket.write(OK);
    });
    const transport = open(server.origin);
    expect(await send(transport)).toEqual({ status: 200, body: 'ok', sent: true });
    expect(await send(transport, { method: 'GET', body: undefined })).toMatchObject({ status: 200 });
    expect(server.connections()).toBe(1);
    expect(seen[0]).toBe(
      `POST /v1/x HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\nconnection: keep-alive\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
    );
    expect(seen[1]).not.toContain('content-length');
    await send(transport, { fresh: true });
    expect(server.connections()).toBe(2);
  });

  it('sends bodies of any size whole', async () => {
    let received = 0;
    const server = await listen((socket, request) => {
      received += request.length;
      if (request.endsWith('END')) socket.write(OK);
    });
    const body = Buffer.alloc(5_000_000, 'x');
    body.write('END', body.length - 3);
    expect(await send(open(server.origin), { body })).toMatchObject({ status: 200 });
    expect(received).toBeGreaterThan(body.length);
  });

  it('knows a connection that died between two requests from one that failed', async () => {
    const server = await listen((socket, _request, connection) => {
      if (connection === 1 && socket.bytesWritten > 0) socket.destroy();
      else socket.write(OK);
    });
    const transport = open(server.origin);
    await send(transport);
    expect((await send(transport)).error).toMatchObject({ kind: 'reset', stale: true, unsent: false });
    expect(await send(transport, { fresh: true })).toMatchObject({ status: 200 });
  });

  it('does not take for one that died an engine that had the request for a second', async () => {
    let late = 0;
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + late);
    closers.push(() => clock.mockRestore());
    const server = await listen((socket) => {
      if (socket.bytesWritten === 0) socket.write(OK);
      else {
        late = 1_000;
        socket.destroy();
      }
    });
    const transport = open(server.origin);
    await send(transport);
    expect((await send(transport)).error).toMatchObject({ kind: 'reset', stale: false, unsent: false });
    expect(server.connections()).toBe(1);
  });

  it.each([
    ['closes without an answer', (socket: Socket) => socket.destroy(), 'reset'],
    ['resets', (socket: Socket) => socket.resetAndDestroy(), 'reset'],
    [
      'ends in the middle',
      (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok'),
      'reset',
    ],
    [
      'speaks something else',
      (socket: Socket) => socket.end('220 mail.example.org ESMTP\r\n\r\n'),
      'protocol',
    ],
  ])('tells an engine that %s', async (_name, serve, kind) => {
    const server = await listen((socket) => serve(socket));
    expect((await send(open(server.origin))).error).toMatchObject({ kind, stale: false, unsent: false });
  });

  it('tells a refused connection as unsent', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    expect((await send(open(`http://127.0.0.1:${port}`))).error).toMatchObject({
      kind: 'refused',
      unsent: true,
    });
  });

  it('gives up connecting in time', async () => {
    const server = await listen(() => undefined); // it takes the connection, and never answers the TLS greeting
    const transport = open(server.origin.replace('http:', 'https:'), { ...PLAIN, connectMs: 100 });
    expect((await send(transport)).error).toMatchObject({ kind: 'connect-timeout', unsent: true });
  });

  it('never uses a connection again on which more came than was asked for', async () => {
    const server = await listen((socket) =>
      socket.write(`${OK}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`),
    );
    const transport = open(server.origin);
    expect((await send(transport)).body).toBe('ok');
    expect((await send(transport)).body).toBe('ok');
    expect(server.connections()).toBe(2);
  });

  it('does not use a connection on which something came while it was idle', async () => {
    const server = await listen((socket, request, connection) => {
      socket.write(OK);
      if (connection === 1 && request.includes('/v1/x'))
        setImmediate(() => socket.write('HTTP/1.1 408 Late\r\n\r\n'));
    });
    const transport = open(server.origin);
    await send(transport);
    const first = [...server.sockets][0]!;
    await once(first, 'close');
    expect(await send(transport)).toMatchObject({ status: 200, body: 'ok' });
  });

  it('closes the connection at once when a request is broken off', async () => {
    let closed: Promise<unknown> | undefined;
    const asked = new Promise<void>((resolve) => {
      void listen((socket) => {
        closed = once(socket, 'close');
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n');
        resolve();
      }).then((server) => {
        const transport = open(server.origin);
        const flight = transport.send(
          { method: 'POST', path: '/', headers: [], body: Buffer.from('{}'), fresh: false },
          {
            onSent: () => undefined,
            onHead: () => undefined,
            onData: () => flight.abort(),
            onEnd: () => expect.unreachable(),
            onError: () => expect.unreachable(),
          },
        );
      });
    });
    await asked;
    await closed;
  });

  it('holds the engine back while it is paused', async () => {
    const piece = Buffer.alloc(64 * 1024, 'x');
    const total = 40 * 1024 * 1024;
    let written = 0;
    const server = await listen((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`);
      const more = () => {
        while (written < total) {
          written += piece.length;
          if (!socket.write(piece)) return void socket.once('drain', more);
        }
      };
      more();
    });
    const transport = open(server.origin);
    let received = 0;
    await new Promise<void>((resolve) => {
      const flight = transport.send(
        { method: 'GET', path: '/', headers: [], body: undefined, fresh: false },
        {
          onSent: () => undefined,
          onHead: () => undefined,
          onData: (bytes) => {
            const first = received === 0;
            received += bytes.length;
            if (!first) return;
            flight.pause();
            let before = -1;
            const settled = setInterval(() => {
              if (written !== before) {
                before = written;
                return;
              }
              clearInterval(settled);
              expect(written).toBeLessThan(total);
              flight.resume();
            }, 50);
          },
          onEnd: resolve,
          onError: () => expect.unreachable(),
        },
      );
    });
    expect(received).toBe(total);
  });

  it('speaks TLS to whom it trusts, with a certificate of its own, and to nobody else', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'armature-tls-'));
    const run = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
    run(
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      'key.pem',
      '-out',
      'cert.pem',
      '-days',
      '2',
      '-subj',
      '/CN=engine.internal',
      '-addext',
      'subjectAltName=DNS:engine.internal',
    );
    const [cert, key] = ['cert.pem', 'key.pem'].map((file) => readFileSync(join(folder, file), 'utf8')) as [
      string,
      string,
    ];
    const server = await listen((socket) => socket.write(OK), { cert, key });
    const trusting = { connectMs: 2000, tls: { ca: cert, cert, key, serverName: 'engine.internal' } };
    const transport = open(server.origin, trusting);
    expect(await send(transport)).toMatchObject({ status: 200, body: 'ok' });
    expect(await send(transport)).toMatchObject({ status: 200, body: 'ok' });
    expect(server.connections()).toBe(1);
    expect((await send(open(server.origin, { connectMs: 2000, tls: undefined }))).error).toMatchObject({
      kind: 'tls',
      unsent: true,
    });
    const wrongName = { connectMs: 2000, tls: { ...trusting.tls, serverName: 'other.internal' } };
    expect((await send(open(server.origin, wrongName))).error).toMatchObject({ kind: 'tls', unsent: true });
  });
});
