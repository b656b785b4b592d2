import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import type { Why } from '../../src/events/why.ts';
import { type Armature, backendOf, type Config, startArmature } from '../upstream/armature.ts';
import { type Script, type ScriptedEngine, startEngine } from '../upstream/engine.ts';
import { chat, chatAnswer } from '../upstream/scripts.ts';
import { eventually } from '../upstream/waiting.ts';
import { begin, releaseIsInTheEnd as releaseIs } from './releases.ts';

/** Releases of a running Armature, under load, by the shipped command. */

const RELEASE = {
  plan: [50, 100],
  step: { sessionsMin: 30, timeMin: '1s' },
  metrics: ['errors'],
  errorRateMax: 0.1,
  deadline: '10min',
  watch: '2s',
};

function configOf(old: ScriptedEngine, next: ScriptedEngine, route: Config = {}): Config {
  return {
    gateway: { workers: 2 },
    backends: { old: backendOf(old), next: backendOf(next) },
    routes: { chat: { targets: [{ backend: 'old' }], deadline: '10s', release: RELEASE, ...route } },
  };
}

/** Fails one of so many requests. */
function failing(every: number): Script {
  let count = 0;
  return async (x) => {
    if (++count % every === 0) await x.json({ error: { message: 'broken' } }, { status: 500 });
    else await x.json(chatAnswer('next'));
  };
}

/** Callers that ask one after the other, each time as a session of its own, until they are told to end. */
class Callers {
  readonly answers = new Map<string, number>();
  readonly failed: string[] = [];
  #going = true;
  readonly #all: Promise<unknown>;

  constructor(armature: Armature, callers = 8) {
    let count = 0;
    const one = async () => {
      while (this.#going) {
        const answer = await armature.chat({}, [['x-armature-session', `session-${count++}`]]);
        const backend = answer.header('x-armature-backend') ?? 'none';
        if (answer.status === 200) this.answers.set(backend, (this.answers.get(backend) ?? 0) + 1);
        else this.failed.push(`${answer.status} ${backend} ${answer.content.toString()}`);
      }
    };
    this.#all = Promise.all(Array.from({ length: callers }, one));
  }

  get total(): number {
    return [...this.answers.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Resolves when so many more answers have come. */
  more(count: number): Promise<unknown> {
    const until = this.total + count;
    return eventually(`${count} more answers`, () => this.total >= until, 30_000);
  }

  async end(): Promise<void> {
    this.#going = false;
    await this.#all;
  }
}

function edit(armature: Armature, change: (file: Config) => void): void {
  const file = parse(readFileSync(armature.file, 'utf8'));
  change(file);
  writeFileSync(armature.file, stringify(file));
  armature.kill('supervisor', 'SIGHUP');
}

const targetsOf = async (armature: Armature) => {
  const { data } = JSON.parse((await armature.admin('/api/v1/routes')).content.toString());
  return data[0].targets;
};

for (const killed of [false, true]) {
  test(`a canary that fails 5 % of its requests is rolled back, and nobody else sees an error${killed ? ', though control is killed in the middle' : ''}`, async () => {
    await using old = await startEngine();
    await using next = await startEngine();
    old.script = chat();
    next.script = failing(20);
    await using armature = await startArmature(configOf(old, next));
    const callers = new Callers(armature);
    const { id } = await begin(armature);
    await releaseIs(armature, 'the canary answers', ({ share }) => share === 0.5);
    await callers.more(100);
    if (killed) armature.kill('control', 'SIGKILL');
    const over = await releaseIs(armature, 'it is rolled back', ({ state }) => state === 'rolled-back');
    expect(over).toMatchObject({ id, last: { code: 'release-metric-worse' } });
    expect(await targetsOf(armature)).toEqual([{ backend: 'old', weight: 1 }]);
    const before = callers.answers.get('next')!;
    await callers.more(200);
    await callers.end();
    expect(callers.answers.get('next')! - before).toBeLessThan(20);
    expect(callers.failed).toEqual([]);

    const why: Why = await armature.why(id);
    const codes = why.steps.map(({ code }) => code);
    for (const code of [
      'release-rolled-back',
      'release-metric-worse',
      'evidence-gathered',
      'release-started',
    ])
      expect(codes).toContain(code);
    expect(why.steps.find(({ code }) => code === 'release-started')?.origin).toMatchObject({
      file: armature.file,
    });
    const told = (await armature.events())
      .map(({ type }) => type)
      .filter((type) => type === 'release-rolled-back');
    expect(told).toHaveLength(1);
    await armature.idle();
  });
}

test('a canary that is as good goes through its steps and is promoted, though the file is read again in the middle', async () => {
  await using old = await startEngine();
  await using next = await startEngine();
  await using armature = await startArmature(configOf(old, next));
  const callers = new Callers(armature);
  await begin(armature, '--plan', '10,50,100');
  await releaseIs(armature, 'the canary answers', ({ share }) => share > 0);
  edit(armature, (file) => {
    file['routes'].chat.deadline = '9s';
  });
  await releaseIs(armature, 'it has all of the traffic', ({ phase }) => phase === 'promoted');
  const { stdout } = await armature.run('release', 'status', 'chat');
  expect(stdout).toContain('chat to next');
  await releaseIs(armature, 'it is over', ({ state }) => state === 'promoted');
  await callers.end();
  expect(callers.failed).toEqual([]);
  expect(callers.answers.get('next')).toBeGreaterThan(60);
  const events = (await armature.events()).filter(({ type }) => type.startsWith('release-'));
  expect(events.filter(({ type }) => type === 'release-share-changed').map(({ data }) => data.share)).toEqual(
    [0.1, 0.5],
  );
  expect(events.at(-1)?.type).toBe('release-ended');

  // The file says what it said: the promotion stands over it until it says the same.
  const check = await armature.run('check', '-c', armature.file);
  expect(check.stdout).toContain('changed live');
  edit(armature, (file) => {
    file['routes'].chat.targets = [{ backend: 'next' }];
  });
  await eventually('the file agrees', async () => (await armature.events('overlay-agreed')).length === 1);
  expect(await targetsOf(armature)).toEqual([{ backend: 'next', weight: 1 }]);
  expect((await armature.run('check', '-c', armature.file)).stdout).not.toContain('changed live');
});

test('an abort wins over the file, over SIGHUP and over a restart, until the file agrees', async () => {
  await using old = await startEngine();
  await using next = await startEngine();
  await using armature = await startArmature(configOf(old, next));
  const callers = new Callers(armature, 4);
  const { id } = await begin(armature);
  await releaseIs(armature, 'the canary answers', ({ share }) => share > 0);
  edit(armature, (file) => {
    file['routes'].chat.targets = [{ backend: 'next' }];
  });
  await releaseIs(armature, 'the file has overtaken it', ({ overtaken }) => overtaken);
  const aborted = await armature.run('release', 'abort', 'chat', '--json');
  expect(JSON.parse(aborted.stdout)).toMatchObject({ done: true, release: { id, state: 'rolled-back' } });
  expect(await targetsOf(armature)).toEqual([{ backend: 'old', weight: 1 }]);
  edit(armature, () => undefined);
  armature.kill('control', 'SIGKILL');
  await eventually(
    'control is back',
    async () => (await targetsOf(armature).catch(() => [])).length > 0,
    20_000,
  );
  expect(await targetsOf(armature)).toEqual([{ backend: 'old', weight: 1 }]);
  const check = await armature.run('check', '-c', armature.file);
  expect(check.stdout).toContain(id);
  const again = await armature.run('release', 'abort', 'chat');
  expect(again).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('Nothing was changed') });
  await callers.end();
  expect(callers.failed).toEqual([]);
  edit(armature, (file) => {
    file['routes'].chat.targets = [{ backend: 'old' }];
  });
  await eventually('the file agrees', async () => (await armature.events('overlay-agreed')).length === 1);
});
