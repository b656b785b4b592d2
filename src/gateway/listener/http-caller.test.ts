import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { HttpCaller } from './http-caller.ts';

/** More than the buffers of a connection on loopback hold. */
const LARGE = Buffer.alloc(64 * 2 ** 20);

async function answering(answer: (caller: HttpCaller) => void) {
  const responses: ServerResponse[] = [];
  const server = createServer((request, response) => {
    responses.push(response);
    answer(new HttpCaller(request, response, 50));
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
    await using it = await answering(answer);
    const socket = it.open();
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await expect.poll(() => it.responses[0]?.closed).toBe(true);
    expect(it.responses[0]!.writableFinished).toBe(false);
    socket.destroy();
  });

  it('that is taken leaves the connection as it was', async () => {
    await using it = await answering((caller) => caller.respond(200, [], LARGE));
    const socket = it.open();
    for (let i = 1; i <= 2; i++) {
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      for (let left = LARGE.length; left > 0; ) left -= ((await once(socket, 'data')) as [Buffer])[0].length;
      await expect.poll(() => it.responses.at(i - 1)?.writableFinished).toBe(true);
    }
    expect(it.responses[0]!.req.socket).toBe(it.responses[1]!.req.socket);
    socket.destroy();
  });
});
