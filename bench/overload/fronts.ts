import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { haproxyConfig, type Peer, peers, write } from '../peers/peers.ts';

/** What stands before the engine, told how much the engine can hold where it can be told. */

export interface Engine {
  /** `HOST:PORT` of the simulated engine. */
  upstream: string;
  /** The name that it knows its model by, and callers send. */
  model: string;
  /** Sequences that it runs together. */
  batchMax: number;
  deadlineMs: number;
  /** Of Armature's backend: how its `limits` differ from the defaults. */
  limits: object;
}

export interface Front {
  name: string;
  version(): string | undefined;
  command(spot: { port: number; folder: string }): { argv: string[]; env?: Record<string, string> };
  headers: Record<string, string>;
  /** The name that callers send. */
  model: string;
}

const root = fileURLToPath(new URL('../..', import.meta.url));

/** `recordsPerSecondMax` and all else stay at their defaults: what is measured is what is shipped. */
function armature({ upstream, model, deadlineMs, limits }: Engine): Front {
  return {
    name: 'armature',
    version: () => peers.find(({ name }) => name === 'armature')!.version(),
    command({ port, folder }) {
      const config = {
        gateway: { listen: `127.0.0.1:${port}` },
        admin: { listen: '127.0.0.1:0' },
        backends: {
          engine: {
            engine: 'openai',
            model,
            endpoints: [`http://${upstream}/v1`],
            gauges: `http://${upstream}/metrics`,
            limits,
          },
        },
        routes: { [model]: { targets: [{ backend: 'engine' }], deadline: `${deadlineMs}ms` } },
      };
      const file = write(folder, 'armature.yaml', JSON.stringify(config));
      return { argv: [join(root, 'bin/armature'), 'up', '-c', file, '--data', join(folder, 'data')] };
    },
    headers: {},
    model,
  };
}

/** Two descriptors each: HAProxy does not start where a process may not have as many. */
const CONNECTIONS_MAX = 9000;

/** HAProxy with a place for each sequence of the engine, and a queue that lasts as long as the deadline. */
function haproxy({ upstream, model, batchMax, deadlineMs }: Engine): Front {
  return {
    name: 'haproxy maxconn',
    version: () => peers.find(({ name }) => name === 'haproxy')!.version(),
    command({ port, folder }) {
      const places = { max: batchMax, queueMs: deadlineMs };
      const config = haproxyConfig({ port, upstream, connectionsMax: CONNECTIONS_MAX, places });
      return { argv: ['haproxy', '-db', '-f', write(folder, 'haproxy.cfg', config)] };
    },
    headers: {},
    model,
  };
}

function asItIs(peer: Peer, { upstream, model }: Engine): Front {
  const spot = { port: 0, upstream, folder: '' };
  return {
    name: peer.name,
    version: () => peer.version(),
    command: ({ port, folder }) => peer.command({ port, upstream, folder }),
    headers: Object.fromEntries(
      (peer.headers?.(spot) ?? []).map((line) => line.split(': ') as [string, string]),
    ),
    model,
  };
}

/** Those that are installed, Armature first. */
export function fronts(engine: Engine): Front[] {
  const others = ['vllm-router', 'litellm'].map((name) =>
    asItIs(peers.find((peer) => peer.name === name)!, engine),
  );
  return [armature(engine), haproxy(engine), ...others].filter((front) => front.version() !== undefined);
}
