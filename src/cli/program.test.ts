import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  askedWrongly,
  type Call,
  type Command,
  defineAction,
  defineCommand,
  failed,
  wholeNumber,
} from './command.ts';
import { type Output, table } from './output.ts';
import { main } from './program.ts';
import { register } from './register.ts';

const calls: Call[] = [];
const loaded: string[] = [];
let out = '';
let err = '';
const output: Output = {
  tty: false,
  print: (text) => {
    out += `${text}\n`;
  },
  write: (text) => {
    out += text;
  },
  json: (value) => {
    out += `${JSON.stringify(value)}\n`;
  },
  note: (text) => {
    err += `${text}\n`;
  },
};

const entry = (name: string, command: Command) => ({
  summary: `does ${name}`,
  load: async () => {
    loaded.push(name);
    return { command };
  },
});
const entries = {
  look: entry(
    'look',
    defineCommand({
      arguments: [
        { name: 'ID', summary: 'Which one.' },
        { name: 'MORE', summary: 'Others.', optional: true, many: true },
      ],
      options: {
        perSecond: { value: 'N', summary: 'How many.', parse: wholeNumber(1, 100) },
        type: { value: 'T', summary: 'Which kinds.', many: true },
        follow: { summary: 'Goes on.' },
      },
      details: 'Looks closely.',
      run: async (call) => void calls.push(call as Call),
    }),
  ),
  keys: entry('keys', {
    defaultAction: 'ls',
    actions: {
      ls: defineAction({ summary: 'lists', run: async (call) => void calls.push(call as Call) }),
      create: defineAction({
        summary: 'creates',
        arguments: [{ name: 'TENANT', summary: 'Whose.' }],
        run: async () => 1,
      }),
    },
  }),
  fail: entry(
    'fail',
    defineCommand({
      arguments: [{ name: 'HOW', summary: 'How.' }],
      async run({ args }) {
        if (args[0] === 'asked') throw askedWrongly('that makes no sense');
        if (args[0] === 'failed') throw failed('that did not work');
        throw new TypeError('a fault of ours');
      },
    }),
  ),
};

const run = (...argv: string[]) => main(argv, output, entries);

beforeEach(() => {
  calls.length = 0;
  loaded.length = 0;
  out = '';
  err = '';
});
afterEach(() => void vi.unstubAllEnvs());

describe('a command', () => {
  it('gets its arguments, its options and the common ones, wherever they stand', async () => {
    expect(
      await run(
        '--json',
        'look',
        'a',
        '--per-second',
        '5',
        'b',
        '--type',
        'x',
        '-c',
        'f.yaml',
        '--type',
        'y',
      ),
    ).toBe(0);
    expect(calls[0]).toMatchObject({
      args: ['a', 'b'],
      options: { perSecond: 5, type: ['x', 'y'], follow: false },
      common: { json: true, config: 'f.yaml', data: '.armature', dataGiven: false, admin: undefined },
    });
  });

  it('gets nothing for what was not given', async () => {
    await run('look', 'a', '--data', 'd', '--admin', 'http://h:1', '--follow');
    expect(calls[0]).toMatchObject({
      args: ['a'],
      options: { perSecond: undefined, type: [], follow: true },
      common: { json: false, config: undefined, data: 'd', dataGiven: true, admin: 'http://h:1' },
    });
  });

  it('takes what follows -- as it is', async () => {
    await run('look', '--', '--json');
    expect(calls[0]).toMatchObject({ args: ['--json'], common: { json: false } });
  });

  it('is the only one that is read', async () => {
    await run('look', 'a');
    expect(loaded).toEqual(['look']);
  });

  it('gives its exit code', async () => {
    expect(await run('keys', 'create', 'web')).toBe(1);
  });

  it('runs its default action where none is named', async () => {
    expect(await run('keys', '--json')).toBe(0);
    expect(calls[0]).toMatchObject({ common: { json: true } });
  });
});

describe('what was asked wrongly', () => {
  it.each([
    [['lok', 'a'], "unknown command 'lok'", 'look'],
    [['look', 'a', '--folow'], "unknown option '--folow'", '--follow'],
    [['look'], "missing required argument 'ID'", 'usage: armature look [options] <ID> [MORE...]'],
    [
      ['look', 'a', '--per-second', '0'],
      "--per-second: expected a whole number of 1 or more and at most 100, got '0'",
      '',
    ],
    [['look', 'a', '--type'], "option '--type <T>' argument missing", ''],
    [['keys', 'crate', 'web'], "unknown action 'crate'", 'create'],
    [['keys', 'ls', 'more'], 'too many arguments', 'usage: armature keys ls [options]'],
    [
      ['keys', '--tenant', 'web'],
      "unknown option '--tenant'",
      "actions of 'keys': ls, create; each has its own --help",
    ],
    [['--jsn'], "unknown option '--jsn'", '--json'],
    [['fail', 'asked'], 'that makes no sense', ''],
  ])('%j exits 2, says so and names the nearest', async (argv, message, nearest) => {
    expect(await run(...argv)).toBe(2);
    expect(err).toContain(message);
    expect(err).toContain(nearest);
    expect(err).toMatch(/^armature: /);
    expect(out).toBe('');
  });

  it('without a command prints the help on stderr', async () => {
    expect(await run()).toBe(2);
    expect(err).toContain('Usage: armature');
  });
});

describe('what failed', () => {
  it('is told in one line', async () => {
    expect(await run('fail', 'failed')).toBe(1);
    expect(err).toBe('armature: that did not work\n');
  });

  it('through a fault of ours shows no stack, and how to see it', async () => {
    expect(await run('fail', 'ours')).toBe(1);
    expect(err).toContain('armature: a fault of ours');
    expect(err).toContain('ARMATURE_DEBUG=1');
    expect(err).not.toContain('at ');
  });

  it('shows the stack with ARMATURE_DEBUG=1', async () => {
    vi.stubEnv('ARMATURE_DEBUG', '1');
    await run('fail', 'ours');
    expect(err).toContain('TypeError');
  });
});

describe('help', () => {
  it('names every command without reading any', async () => {
    expect(await run('--help')).toBe(0);
    for (const [name, { summary }] of Object.entries(entries))
      expect(out).toMatch(new RegExp(`${name}.*${summary}`));
    expect(loaded).toEqual([]);
  });

  it.each([[['help', 'look']], [['look', '--help']]])('%j shows what a command takes', async (argv) => {
    expect(await run(...argv)).toBe(0);
    expect(out).toContain('armature look [options] <ID> [MORE...]');
    for (const word of ['--per-second <N>', '--follow', '--json', '--data <DIR>', 'Looks closely.']) {
      expect(out).toContain(word);
    }
  });

  it('shows the actions of a group', async () => {
    await run('keys', '--help');
    expect(out).toContain('lists (the default)');
    expect(out).toMatch(/create \[options\] <TENANT>|create.*creates/);
  });
});

describe('the register', () => {
  it('holds commands that can be read', async () => {
    for (const { load } of Object.values(register)) {
      const { command } = await load();
      expect('run' in command || command.defaultAction in command.actions).toBe(true);
    }
  });

  it.each(['bash', 'zsh', 'fish'])('gives completions for %s', async (shell) => {
    expect(await main(['completion', shell], output)).toBe(0);
    for (const name of Object.keys(register)) expect(out).toContain(name);
  });
});

describe('table', () => {
  it('aligns words left and numbers right', () => {
    expect(
      table(
        ['route', 'waiting'],
        [
          ['chat', 5],
          ['embeddings', 12],
        ],
      ),
    ).toBe(['route       waiting', 'chat              5', 'embeddings       12'].join('\n'));
  });
});
