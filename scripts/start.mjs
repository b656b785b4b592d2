// `npm start`: real answers on this machine, in one command. Runs on any Node from 20.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { installPackages, nodePath, root } from './packages.mjs';

const armature = join(root, 'bin', 'armature');
const config = join(root, 'examples', 'quickstart', 'armature.yaml');
const data = join(root, '.armature');
const POLL_MS = 100;
const begun = performance.now();

installPackages();
nodePath();

// Models that are there already are only looked at. What is missing (pip, a way to the network) it says itself.
const pulled = spawnSync(armature, ['models', 'pull', '-c', config, '--data', data], {
  cwd: root,
  stdio: 'inherit',
});
if (pulled.status !== 0) process.exit(1);

const up = spawn(armature, ['up', '-c', config, '--data', data], { cwd: root, stdio: 'inherit' });
let left = false;
up.on('exit', (code, signal) => {
  left = true;
  process.exitCode = code ?? (signal ? 1 : 0);
});
// A terminal sends its signals to both; one that is sent to this process alone is passed on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => up.kill(signal));

const gateway = await routesReady();
if (gateway) {
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  console.log(whatToTry(gateway, seconds));
}

/** Waits until every route can be answered, and gives the gateway's address; undefined when Armature left before. */
async function routesReady() {
  while (!left) {
    const address = gatewayAddress();
    const routes = address && (await ask(`${address}/v1/models`))?.data?.map(({ id }) => id);
    if (routes && (await Promise.all(routes.map((route) => ready(address, route)))).every(Boolean))
      return address;
    await wait(POLL_MS);
  }
  return undefined;
}

function gatewayAddress() {
  const path = join(data, 'run', 'addresses.json');
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).gateway : undefined;
}

async function ready(address, route) {
  return (await ask(`${address}/readyz?route=${encodeURIComponent(route)}`)) !== undefined;
}

/** The JSON of an answer of 200, or undefined while nobody answers so. */
async function ask(url) {
  try {
    const answer = await fetch(url);
    const text = await answer.text();
    return answer.ok ? readJson(text) : undefined;
  } catch {
    return undefined; // Nobody listens yet.
  }
}

function readJson(text) {
  return text.startsWith('{') ? JSON.parse(text) : {};
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
The configuration is examples/quickstart/armature.yaml. Ctrl-C stops everything.
`;
}
