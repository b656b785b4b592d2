// `npm test`, and `npm test -- STEP...` for some of it. Runs on any Node from 20; the tests run on the right one.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { installPackages, nodePath, root } from './packages.mjs';

const ci = process.env.CI === 'true';
const LINT = ['format', 'types', 'house', 'dead-code', 'docs'];
const STEPS = {
  format: { does: 'format and lint', run: () => tool('biome', ['check', '--error-on-warnings']) },
  types: { does: 'types', run: () => tool('tsc', ['-p', '.']) },
  house: { does: 'import boundaries, style, references', run: () => vitest('house') },
  'dead-code': { does: 'dead code', run: () => tool('knip', []) },
  docs: { does: 'generated docs are up to date', run: () => script('scripts/docs.ts', ['--check']) },
  unit: { does: 'unit tests', run: () => vitest('unit') },
  engines: { does: 'engines and clients that the tests need', run: provision },
  integration: { does: 'real sockets and processes', run: () => vitest('integration') },
  e2e: { does: 'the shipped command', run: () => vitest('e2e') },
};

const asked = process.argv.slice(2).flatMap((name) => (name === 'lint' ? LINT : [name]));
const unknown = asked.find((name) => !Object.hasOwn(STEPS, name));
if (unknown !== undefined) {
  console.error(`There is no step '${unknown}'; there are lint, ${Object.keys(STEPS).join(', ')}.`);
  process.exit(2);
}

installPackages();
const node = nodePath();
// Whatever the tests start finds the same Node first.
const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
const scratch = mkdtempSync(join(tmpdir(), 'armature-test-'));

const total = { passed: 0, failed: 0, skipped: [] };
for (const name of asked.length > 0 ? asked : Object.keys(STEPS)) {
  const { does, run } = STEPS[name];
  console.log(`\n== ${name}: ${does}`);
  const { passed, failed, skipped } = run();
  if (failed > 0) console.log(`== ${name}: ${failed} failed`);
  total.passed += passed;
  total.failed += failed;
  total.skipped.push(...skipped);
}
rmSync(scratch, { recursive: true, force: true });

for (const { name, reason } of total.skipped) console.log(`skipped: ${name} (${reason})`);
if (ci && total.skipped.length > 0) {
  console.log(`${total.skipped.length} skipped, which counts as failed where CI=true`);
  total.failed += total.skipped.length;
}
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exit(total.failed > 0 ? 1 : 0);

/** A tool of node_modules; counts as one. */
function tool(name, args) {
  return one(spawnSync(join(root, 'node_modules', '.bin', name), args, { cwd: root, env, stdio: 'inherit' }));
}

function script(path, args) {
  return one(spawnSync(node, [join(root, path), ...args], { cwd: root, env, stdio: 'inherit' }));
}

function one({ status }) {
  return status === 0 ? { passed: 1, failed: 0, skipped: [] } : { passed: 0, failed: 1, skipped: [] };
}

/** One project of vitest; counts as its tests. */
function vitest(project) {
  const tally = join(scratch, `${project}.json`);
  const args = [
    'run',
    '--project',
    project,
    '--reporter=default',
    '--reporter=./test/reporter.ts',
    '--passWithNoTests',
  ];
  const { status } = spawnSync(join(root, 'node_modules', '.bin', 'vitest'), args, {
    cwd: root,
    env: { ...env, ARMATURE_TALLY: tally },
    stdio: 'inherit',
  });
  const counted = existsSync(tally)
    ? JSON.parse(readFileSync(tally, 'utf8'))
    : { passed: 0, failed: 0, skipped: [] };
  // A run that broke without a failed test is a failure all the same.
  if (status !== 0 && counted.failed === 0) counted.failed = 1;
  return counted;
}

/** Engines and Python clients for the integration tests; says itself what it fetches and what is missing. */
function provision() {
  return script('test/engines/provision.ts', []);
}
