import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { HttpCaller } from './http-caller.ts';

/** More than the buffers of a connection on loopback hold. */
const LARGE = Buffer.alloc(64 * 2 ** 20);

async function answering(answer: (caller: HttpCaller) => void, untakenMs: number) {
  const responses: ServerResponse[] = [];
  const server = createServer((request, response) => {
    responses.push(response);
    answer(new HttpCaller(request, response, untakenMs));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    responses,
    open: () => connect(port, '127.0.0.1').on('error', () => undefined),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('a finished answer', () => {
  it.each([
    ['whole', (caller: HttpCaller) => caller.respond(200, [], LARGE)],
    [
      'streamed',
      (caller: HttpCaller) => {
        caller.open(200, []);
        caller.write(LARGE);
        caller.end();
      },
    ],
  ])('that nobody takes ends its connection: %s', async (_, answer) => {
    await using it = await answering(answer, 50);
    const socket = it.open();
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => it.responses[0]?.closed).toBe(true);
    expect(it.responses[0]!.writableFinished).toBe(false);
    socket.destroy();
  });

  it('that is taken leaves the connection as it was, for a next request that was sent already', async () => {
    await using it = await answering((caller) => caller.respond(200, [], LARGE), 60_000);
    const socket = it.open();
    const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
    socket.write(request + request);
    await expect.poll(() => it.responses.length).toBe(2);
    const [first, second] = it.responses as [ServerResponse, ServerResponse];
    let timeout: number | undefined;
    first.on('finish', () => (timeout = first.req.socket.timeout));
    for (let left = 2 * LARGE.length; left > 0; )
      left -= ((await once(socket, 'data')) as [Buffer])[0].length;
    await expect.poll(() => second.writableFinished).toBe(true);
    expect(timeout).toBe(0);
    expect(first.req.socket).toBe(second.req.socket);
    socket.destroy();
  });
});
