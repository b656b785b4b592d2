import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { backendOf, plainConfig, startArmature } from '../upstream/armature.ts';
import { startEngine } from '../upstream/engine.ts';
import { chat, cutStream, endless, failWith } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';

/** `armature ask`, as it is shipped. */

const COMMAND = join(import.meta.dirname, '../../bin/armature');

describe('ask', () => {
  test('prints the answer of the only route, and with --json the whole object', async () => {
    await using engine = await startEngine(chat(['Hel', 'lo ', 'thérè']));
    await using armature = await startArmature(plainConfig(engine));
    expect(await armature.run('ask', 'How', 'are', 'you?')).toEqual({
      exitCode: 0,
      stdout: 'Hello thérè\n',
      stderr: '',
    });
    expect(engine.requests.at(-1)!.json().messages).toEqual([{ role: 'user', content: 'How are you?' }]);
    const whole = await armature.run('ask', '--json', 'Hi');
    expect(JSON.parse(whole.stdout).choices[0].message.content).toBe('Hello thérè');
  });

  test('asks chat where there are several, and says which there are where it cannot tell', async () => {
    await using engine = await startEngine(chat(['yes']));
    const backends = { b1: backendOf(engine) };
    const route = { targets: [{ backend: 'b1' }] };
    await using several = await startArmature({ backends, routes: { chat: route, other: route } });
    expect((await several.run('ask', 'Hi')).stdout).toBe('yes\n');
    expect((await several.run('ask', '--route', 'other', 'Hi')).stdout).toBe('yes\n');
    expect(await several.run('ask', '--route', 'none', 'Hi')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("unknown route 'none'; there are chat, other"),
    });
    await using unclear = await startArmature({ backends, routes: { one: route, two: route } });
    expect(await unclear.run('ask', 'Hi')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('one, two'),
    });
  });

  test('says by what a degraded answer was given, and why there is none', async () => {
    await using engine = await startEngine(failWith(500));
    await using degraded = await startArmature(
      plainConfig(engine, { route: { ladder: [{ answer: 'Later.' }] } }),
    );
    expect(await degraded.run('ask', 'Hi')).toMatchObject({
      exitCode: 0,
      stdout: 'Later.\n',
      stderr: expect.stringContaining('degraded'),
    });
    await using failing = await startArmature(plainConfig(engine));
    const failed = await failing.run('ask', 'Hi');
    expect([failed.exitCode, failed.stdout]).toEqual([1, '']);
    expect(failed.stderr).toMatch(/^armature: /);
  });

  test('an answer that breaks off is no success', async () => {
    await using engine = await startEngine(cutStream(['half of it'], 'reset'));
    await using armature = await startArmature(plainConfig(engine));
    const { exitCode, stdout, stderr } = await armature.run('ask', 'Hi');
    expect([exitCode, stdout]).toEqual([1, 'half of it\n']);
    expect(stderr).toMatch(/^armature: /);
  });

  test('a tenant shows its key', async () => {
    await using engine = await startEngine(chat(['yes']));
    await using armature = await startArmature(
      plainConfig(engine, { top: { tenants: { web: { routes: ['chat'] } } } }),
    );
    expect(await armature.run('ask', 'Hi')).toMatchObject({ exitCode: 1, stdout: '' });
    const key = await armature.key('web');
    expect(await armature.run('ask', '--key', key, 'Hi')).toMatchObject({ exitCode: 0, stdout: 'yes\n' });
  });

  test('Ctrl-C stops the answer, and its engine', async () => {
    await using engine = await startEngine(endless());
    await using armature = await startArmature(plainConfig(engine));
    const asking = spawn(COMMAND, ['ask', 'Hi', '--data', armature.data], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let shown = '';
    asking.stdout.on('data', (piece) => {
      shown += piece;
    });
    const left = new Promise<number | null>((resolve) => asking.on('exit', resolve));
    await eventually('something is printed', () => shown !== '', 20_000);
    asking.kill('SIGINT');
    expect(await left).toBe(1);
    await armature.idle();
  });

  test('without a running Armature it says how one is found', async () => {
    await using engine = await startEngine(chat());
    await using armature = await startArmature(plainConfig(engine));
    await armature.stop();
    const { exitCode, stderr } = await armature.run('ask', 'Hi');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^armature: no /);
  });
});
