import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFailed, vi } from 'vitest';
import { freePort } from '../upstream/armature.ts';
import { killRemains } from '../upstream/parts.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** No Node that is new enough is on this PATH: the package must bring its own. */
const env = { PATH: '/usr/bin:/bin', HOME: tmpdir() };

let home: string;
let command: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'armature-package-'));
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: root });
  execFileSync('npm', ['pack', '--silent', '--pack-destination', home], { cwd: root });
  const tarball = readdirSync(home).find((name) => name.endsWith('.tgz'))!;
  writeFileSync(join(home, 'package.json'), '{}');
  const install = [
    'install',
    '--ignore-scripts',
    '--omit=optional',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
  ];
  execFileSync('npm', [...install, '--loglevel=error', `./${tarball}`], { cwd: home });
  // What npm would put there for this machine, without fetching it again.
  for (const name of readdirSync(join(root, 'node_modules')).filter((name) =>
    /^node-(bin-)?(linux|darwin)-/.test(name),
  )) {
    symlinkSync(join(root, 'node_modules', name), join(home, 'node_modules', name));
  }
  command = join(home, 'node_modules', '.bin', 'armature');
  writeFileSync(
    join(home, 'armature.yaml'),
    [
      `gateway: { listen: "127.0.0.1:${await freePort()}" }`,
      `admin: { listen: "127.0.0.1:${await freePort()}" }`,
      'backends:',
      '  simulated: { engine: sim }',
      'routes:',
      '  chat: { targets: [{ backend: simulated }] }',
      '',
    ].join('\n'),
  );
});

afterAll(() => {
  killRemains(join(home, '.armature'));
  rmSync(home, { recursive: true, force: true });
});

describe('the package, installed elsewhere', () => {
  it('holds what runs and what is read, and no sources or tests', () => {
    const held = readdirSync(join(home, 'node_modules', 'armature')).sort();
    expect(held).toEqual(['LICENSE', 'README.md', 'bin', 'dist', 'docs', 'examples', 'package.json']);
    const compiled = readdirSync(join(home, 'node_modules', 'armature', 'dist'), {
      recursive: true,
    }) as string[];
    expect(compiled.filter((name) => /\.test\.|\.ts$/.test(name))).toEqual([]);
  });

  it('checks a configuration', () => {
    execFileSync(command, ['check', '-c', 'armature.yaml'], { cwd: home, env });
  });

  it('runs, answers and leaves when it is told to', async () => {
    const log = join(home, 'log');
    onTestFailed(() => console.error(readFileSync(log, 'utf8')));
    const written = openSync(log, 'w');
    const up = spawn(command, ['up', '-c', 'armature.yaml', '--data', join(home, '.armature')], {
      cwd: home,
      env,
      stdio: ['ignore', written, written],
    });
    const gateway = await vi.waitFor(
      async () => {
        const { gateway } = JSON.parse(readFileSync(join(home, '.armature/run/addresses.json'), 'utf8'));
        expect((await fetch(`${gateway}/readyz?route=chat`)).status).toBe(200);
        return gateway as string;
      },
      { timeout: 30_000, interval: 100 },
    );
    const answer = await fetch(`${gateway}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 3 }),
    });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ choices: [{ message: { role: 'assistant' } }] });

    // What is kept is kept by a thread of its own, which has to be found in the package.
    const kept = await fetch(`${gateway}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'chat', input: 'Hello', max_output_tokens: 3 }),
    });
    const { id } = (await kept.json()) as { id: string };
    expect(await (await fetch(`${gateway}/v1/responses/${id}`)).json()).toMatchObject({ id });

    const exit = once(up, 'exit');
    up.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
  });
});
