import { createServer, type Server } from 'node:net';
import { hostAndPort } from '../kernel/listen-address.ts';

/**
 * Tries to listen at every address by itself, all at once, and gives what is wrong in words, or undefined. Workers share
 * their port, so without this two Armatures could come to share one and take each other's callers.
 */
export async function findTaken(addresses: readonly string[]): Promise<string | undefined> {
  const servers: Server[] = [];
  try {
    for (const address of addresses) {
      const { host, port } = hostAndPort(address);
      const server = createServer();
      const fault = await new Promise<string | undefined>((resolve) => {
        server.once('error', (error) => resolve(reason(error, host, port)));
        server.listen({ host, port, exclusive: true }, () => resolve(undefined));
      });
      if (fault) return fault;
      servers.push(server);
    }
    return undefined;
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

function reason({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  if (code === 'EADDRINUSE') return `port ${port} at ${host} is taken`;
  if (code === 'EACCES') return `port ${port} at ${host} is not for this user`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') return `${host} is no address of this machine`;
  return `cannot listen at ${host}, port ${port}: ${message}`;
}
