import { unlinkSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { Link, type Message } from './link.ts';
import { privateFolder } from './socket-path.ts';

/** Connections of one listener at once: 256 workers, hosts, and room for those that are being replaced. */
const CONNECTIONS_MAX = 4096;

export interface Listener {
  /** Takes no more connections and removes the socket's file, so that another may listen; those that stand go on. */
  release(): void;
  /** Takes no more connections, removes the socket's file, and ends the connections that stand. */
  close(): Promise<void>;
}

/**
 * Listens for links at a Unix socket, in a folder for this user alone. A file left by a process that died is removed;
 * rejects where a living process listens there.
 */
export async function listen<In extends Message, Out extends Message>(
  path: string,
  options: { onConnect: (link: Link<In, Out>) => void },
): Promise<Listener> {
  privateFolder(path);
  const links = new Set<Link<In, Out>>();
  const server = createServer((socket) => {
    const link = new Link<In, Out>(socket);
    links.add(link);
    socket.on('close', () => links.delete(link));
    options.onConnect(link);
  });
  server.maxConnections = CONNECTIONS_MAX;
  try {
    await listening(server, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || (await answers(path))) throw error;
    unlinkSync(path);
    await listening(server, path);
  }
  return {
    release: () => void server.close(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const link of links) link.close();
      }),
  };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
