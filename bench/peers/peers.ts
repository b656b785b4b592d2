import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What stands between load and upstream, and how it is started to do nothing but forward. */

export interface Spot {
  port: number;
  /** `HOST:PORT`. */
  upstream: string;
  /** An empty folder of its own. */
  folder: string;
}

export interface Peer {
  name: string;
  /** Undefined where it is not installed. */
  version(): string | undefined;
  /** Writes what it needs into the folder and gives the command. */
  command(spot: Spot): { argv: string[]; env?: Record<string, string> };
  /** `Name: value` lines that every request must carry. */
  headers?(spot: Spot): string[];
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const installed =
  process.env.BENCH_PEERS || fileURLToPath(new URL('../../.cache/bench-peers', import.meta.url));

const armature: Peer = {
  name: 'armature',
  version: () => run(join(root, 'bin/armature'), '--version'),
  command({ port, upstream, folder }) {
    const config = {
      gateway: { listen: `127.0.0.1:${port}` },
      admin: { listen: '127.0.0.1:0' },
      backends: { mock: { engine: 'openai', model: 'mock', endpoints: [`http://${upstream}/v1`] } },
      routes: { mock: { targets: [{ backend: 'mock', weight: 100 }] } },
    };
    const file = write(folder, 'armature.yaml', JSON.stringify(config));
    return { argv: [join(root, 'bin/armature'), 'up', '-c', file, '--data', join(folder, 'data')] };
  },
};

/** HAProxy with one server, which is given `places.max` requests at once; others wait for `places.queueMs` at most. */
export function haproxyConfig(options: {
  port: number;
  upstream: string;
  connectionsMax: number;
  places?: { max: number; queueMs: number };
}): string {
  const { port, upstream, connectionsMax, places } = options;
  // Without http-no-delay it holds small events back for 200 ms and more.
  return `
global
  nbthread 1
  maxconn ${connectionsMax}
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 60s
  timeout server 60s
${places ? `  timeout queue ${places.queueMs}ms\n` : ''}listen bench
  bind 127.0.0.1:${port}
  http-reuse always
  server mock ${upstream}${places ? ` maxconn ${places.max}` : ''}
`;
}

const haproxy: Peer = {
  name: 'haproxy',
  version: () => run('haproxy', '-v')?.match(/version (\S+)/)?.[1],
  command({ port, upstream, folder }) {
    const config = haproxyConfig({ port, upstream, connectionsMax: 4096 });
    return { argv: ['haproxy', '-db', '-f', write(folder, 'haproxy.cfg', config)] };
  },
};

const nginx: Peer = {
  name: 'nginx',
  version: () => run('nginx', '-v')?.match(/nginx\/(\S+)/)?.[1],
  command({ port, upstream, folder }) {
    // Unless told otherwise it speaks HTTP/1.0 to its upstream, closes connections and buffers streams.
    const config = `
daemon off;
worker_processes 1;
pid ${folder}/pid;
error_log ${folder}/error.log;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  keepalive_requests 1000000000;
  upstream mock { server ${upstream}; keepalive 512; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;
    const file = write(folder, 'nginx.conf', config);
    return { argv: ['nginx', '-e', join(folder, 'error.log'), '-p', folder, '-c', file] };
  },
};

/** The two routers in Rust are of one family and take the same arguments. */
function router(name: string, launch: string[]): Peer {
  const binary = join(installed, name, 'bin', name);
  return {
    name,
    version: () => pythonPackage(name),
    command: ({ port, upstream }) => ({
      argv: [
        ...[binary, ...launch, '--host', '127.0.0.1', '--port', String(port)],
        ...['--worker-urls', `http://${upstream}`, '--policy', 'round_robin', '--log-level', 'error'],
        ...['--prometheus-port', String(port < 60_000 ? port + 2000 : port - 2000)],
      ],
    }),
  };
}

const litellm: Peer = {
  name: 'litellm',
  version: () => pythonPackage('litellm'),
  command({ port, upstream, folder }) {
    const config = {
      model_list: [
        {
          model_name: 'mock',
          litellm_params: { model: 'openai/mock', api_base: `http://${upstream}/v1`, api_key: 'bench' },
        },
      ],
    };
    const file = write(folder, 'config.yaml', JSON.stringify(config));
    const at = ['--host', '127.0.0.1', '--port', String(port)];
    return {
      argv: [join(installed, 'litellm/bin/litellm'), '--config', file, ...at, '--num_workers', '1'],
      // It does not start without a master key, and fetches a price list unless told not to.
      env: { LITELLM_MASTER_KEY: 'bench', LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' },
    };
  },
  headers: () => ['authorization: Bearer bench'],
};

const portkeyFolder = join(installed, 'portkey/node_modules/@portkey-ai/gateway');
const portkey: Peer = {
  name: 'portkey',
  version() {
    const file = join(portkeyFolder, 'package.json');
    return existsSync(file)
      ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
      : undefined;
  },
  command: ({ port }) => ({
    argv: [process.execPath, join(portkeyFolder, 'build/start-server.js'), `--port=${port}`, '--headless'],
    env: { NODE_ENV: 'production' },
  }),
  headers: ({ upstream }) => ['x-portkey-provider: openai', `x-portkey-custom-host: http://${upstream}/v1`],
};

export const peers: readonly Peer[] = [
  haproxy,
  nginx,
  router('vllm-router', []),
  router('sglang-router', ['launch']),
  portkey,
  litellm,
  armature,
];

/** Writes a file of a peer and gives its path. */
export function write(folder: string, name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** What a command prints, on either stream; undefined where there is no such command. */
function run(command: string, ...argv: string[]): string | undefined {
  try {
    return execFileSync('sh', ['-c', '"$0" "$@" 2>&1', command, ...argv], { encoding: 'utf8' }).trim();
  } catch {
    return undefined; // not installed
  }
}

/** The version of a package in its own virtual environment. */
function pythonPackage(name: string): string | undefined {
  const lib = join(installed, name, 'lib');
  if (!existsSync(lib)) return undefined;
  const wheel = name.replace('-', '_');
  for (const python of readdirSync(lib)) {
    for (const entry of readdirSync(join(lib, python, 'site-packages'))) {
      const match = new RegExp(`^${wheel}-([\\d.]+)\\.dist-info$`).exec(entry);
      if (match) return match[1];
    }
  }
  return undefined;
}
