import { readFileSync } from 'node:fs';
import { Command as Commander, CommanderError, Option as CommanderOption } from 'commander';
import {
  type Action,
  askedWrongly,
  type Command,
  CommandError,
  type CommonOptions,
  type Option,
} from './command.ts';
import { type Output, processOutput } from './output.ts';
import { type Entry, register } from './register.ts';

/** The common options, as commander and the completions want them. */
export const COMMON_OPTIONS: readonly { flags: string; summary: string }[] = [
  { flags: '--json', summary: 'print JSON' },
  { flags: '-c, --config <FILE>', summary: 'the configuration file' },
  { flags: '--data <DIR>', summary: 'the data directory (default: .armature)' },
  { flags: '--admin <URL>', summary: 'the admin listener of a running Armature (or ARMATURE_ADMIN)' },
];

/** Runs what was typed and gives the exit code: 0, 1 (failed) or 2 (asked wrongly). Never throws. */
export async function main(
  argv: readonly string[],
  output: Output = processOutput,
  entries: Record<string, Entry> = register,
): Promise<number> {
  let exitCode = 0;
  const typed = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv;
  try {
    const root = program(entries, output, (code) => {
      exitCode = code;
    });
    // A command may have a version of its own to ask for.
    if (!typed.some((word) => Object.hasOwn(entries, word)))
      root.version(version(), '--version', 'print the version');
    await root.parseAsync(typed, { from: 'user' });
    return exitCode;
  } catch (error) {
    return tell(error, output);
  }
}

function program(entries: Record<string, Entry>, output: Output, exit: (code: number) => void): Commander {
  const root = new Commander('armature')
    .description('One address in front of every model you run, and a plain answer to why it did what it did.')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => output.write(text),
      writeErr: (text) => output.note(text.trimEnd()),
      outputError: (text, write) => write(text.replace(/^error: /, 'armature: ')),
    })
    .exitOverride();
  for (const { flags, summary } of COMMON_OPTIONS) root.option(flags, summary);

  for (const [name, entry] of Object.entries(entries)) {
    root.addCommand(child(root, name).description(entry.summary));
  }
  // A command's file is read only when it is the one that was typed.
  root.hook('preSubcommand', async (_root, typed) => {
    const entry = entries[typed.name()];
    if (entry) describe(typed, (await entry.load()).command, output, exit);
  });
  return root;
}

function child(parent: Commander, name: string): Commander {
  return new Commander(name)
    .copyInheritedSettings(parent)
    .helpOption('-h, --help', 'print help')
    .helpCommand(false);
}

/** Tells commander what a command takes. */
function describe(target: Commander, command: Command, output: Output, exit: (code: number) => void): void {
  if (!('actions' in command)) {
    takeAction(target, command, output, exit);
    return;
  }
  for (const [name, action] of Object.entries(command.actions)) {
    const sub = child(target, name).description(
      name === command.defaultAction ? `${action.summary} (the default)` : action.summary,
    );
    target.addCommand(sub);
    takeAction(sub, action, output, exit);
  }
  const usual = command.actions[command.defaultAction]!;
  const names = Object.keys(command.actions);
  target
    .showHelpAfterError(`actions of '${target.name()}': ${names.join(', ')}; each has its own --help`)
    .usage('[options] [action]')
    .argument('[action...]')
    .configureHelp({ showGlobalOptions: true, visibleArguments: () => [] })
    .action(async ([typed]: string[]) => {
      if (typed !== undefined) {
        const { nearest } = await import('../config/nearest.ts');
        const meant = nearest(typed, names);
        const hint = meant ? `did you mean ${meant}?` : `it has ${names.join(', ')}`;
        throw askedWrongly(`unknown action '${typed}' of '${target.name()}'; ${hint}`);
      }
      exit((await usual.run({ args: [], options: {}, common: common(target), output })) ?? 0);
    });
}

function takeAction(target: Commander, action: Action, output: Output, exit: (code: number) => void): void {
  for (const { name, summary, optional, many } of action.arguments ?? []) {
    const inner = many ? `${name}...` : name;
    target.argument(optional ? `[${inner}]` : `<${inner}>`, summary);
  }
  for (const [name, option] of Object.entries(action.options ?? {}))
    target.addOption(commanderOption(name, option));
  target.showHelpAfterError(`usage: ${target.createHelp().commandUsage(target)}`);
  if (action.details) target.addHelpText('after', `\n${action.details}`);
  target.action(async () => {
    const typed = target.opts();
    const options = Object.fromEntries(
      Object.entries(action.options ?? {}).map(([name, { value, many }]) => [
        name,
        typed[name] ?? (value === undefined ? false : many ? [] : undefined),
      ]),
    );
    exit((await action.run({ args: target.args, options, common: common(target), output })) ?? 0);
  });
}

/** `perSecond` -> `per-second` */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function commanderOption(name: string, { value, summary, parse, many }: Option): CommanderOption {
  if (value === undefined) return new CommanderOption(flagOf(name), summary);
  const option = new CommanderOption(`${flagOf(name)} <${value}>`, summary);
  return option.argParser<unknown>((text, before) => {
    const read = parse ? readWith(parse, text, flagOf(name)) : text;
    return many ? [...((before as unknown[] | undefined) ?? []), read] : read;
  });
}

/** An option's value that cannot be read is told together with the option's name. */
function readWith(parse: (text: string) => unknown, text: string, flag: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof CommandError) throw askedWrongly(`${flag}: ${error.message}`);
    throw error;
  }
}

function common(target: Commander): CommonOptions {
  const typed = target.optsWithGlobals<{ json?: boolean; config?: string; data?: string; admin?: string }>();
  return {
    json: typed.json === true,
    config: typed.config,
    data: typed.data ?? '.armature',
    dataGiven: typed.data !== undefined,
    admin: typed.admin,
  };
}

/** Says what went wrong in a line that a person can act on; stacks only with ARMATURE_DEBUG=1. */
function tell(error: unknown, output: Output): number {
  if (error instanceof CommanderError) {
    // Commander has printed its message already; help and version come this way too, with code 0.
    return error.exitCode === 0 ? 0 : 2;
  }
  const debug = process.env.ARMATURE_DEBUG === '1';
  const message = error instanceof Error ? error.message : String(error);
  output.note(`armature: ${message}`);
  if (debug && error instanceof Error) output.note(error.stack ?? '');
  if (error instanceof CommandError) return error.exitCode;
  if (!debug) output.note('This is a fault in Armature. ARMATURE_DEBUG=1 shows where it happened.');
  return 1;
}

function version(): string {
  const read: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return (read as { version: string }).version;
}
