import type { Output } from './output.ts';

/**
 * What a command is. A file of src/cli exports one as `command` and has one line in register.ts:
 *
 *     export const command = defineCommand({
 *       arguments: [{ name: 'ID', summary: 'Of a request or an action.' }],
 *       options: { type: { value: 'T', summary: 'Events of this type only.' }, follow: { summary: 'Goes on.' } },
 *       async run({ args, options, common, output }) { ... },
 *     });
 */

/** What every command takes. */
export interface CommonOptions {
  json: boolean;
  /** `-c FILE`, as given. */
  config: string | undefined;
  /** `--data DIR`; `.armature` unless given. */
  data: string;
  dataGiven: boolean;
  /** `--admin URL`, as given; ARMATURE_ADMIN is looked up by running.ts. */
  admin: string | undefined;
}

export interface Argument {
  /** As the help shows it, such as `ID` or `TEXT`. */
  name: string;
  summary: string;
  optional?: boolean;
  /** Takes all that follow; only the last may. */
  many?: boolean;
}

/** A switch where `value` is absent; else an option that takes one. The key `perSecond` is written `--per-second`. */
export interface Option {
  /** What the help calls its value, such as `N` or `NAME`. */
  value?: string;
  summary: string;
  /** Reads the value; throws `askedWrongly(...)` where it cannot. */
  parse?: (text: string) => unknown;
  /** Given again and again; collected into an array. */
  many?: boolean;
}

type Value<O extends Option> = O extends { parse: (text: string) => infer V } ? V : string;
export type OptionValues<Options extends Record<string, Option>> = {
  [Name in keyof Options]: Options[Name] extends { value: string }
    ? Options[Name] extends { many: true }
      ? Value<Options[Name]>[]
      : Value<Options[Name]> | undefined
    : boolean;
};

export interface Call<Options extends Record<string, Option> = Record<string, Option>> {
  /** Arguments in order; optional ones that were not given are absent. */
  args: string[];
  options: OptionValues<Options>;
  common: CommonOptions;
  output: Output;
}

export interface Action<Options extends Record<string, Option> = Record<string, Option>> {
  arguments?: readonly Argument[];
  options?: Options;
  /** Shown below the options by `--help`. */
  details?: string;
  /** Gives the exit code, 0 when nothing. Failures are thrown: `failed` (1), `askedWrongly` (2). */
  run(call: Call<Options>): Promise<number | undefined> | Promise<void>;
}

/** A command with actions of its own, such as `keys create`; without one, `defaultAction` runs. */
export interface ActionGroup {
  actions: Record<string, Action & { summary: string }>;
  defaultAction: string;
}

export type Command = Action | ActionGroup;

/** Gives `run` the types of its options. */
export function defineCommand<const Options extends Record<string, Option>>(action: Action<Options>): Action {
  return action as unknown as Action;
}

/** The same for one action of a group. */
export function defineAction<const Options extends Record<string, Option>>(
  action: Action<Options> & { summary: string },
): Action & { summary: string } {
  return action as unknown as Action & { summary: string };
}

/** A failure that a person is told in its own words, without a stack. */
export class CommandError extends Error {
  readonly exitCode: 1 | 2;

  constructor(exitCode: 1 | 2, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What was asked could not be done: exit 1. */
export function failed(message: string): CommandError {
  return new CommandError(1, message);
}

/** What was asked makes no sense: exit 2. */
export function askedWrongly(message: string): CommandError {
  return new CommandError(2, message);
}

/** Reads the value of an option as a whole number. */
export function wholeNumber(min: number, max: number = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) {
      const most = max === Number.MAX_SAFE_INTEGER ? '' : ` and at most ${max}`;
      throw askedWrongly(`expected a whole number of ${min} or more${most}, got '${text}'`);
    }
    return value;
  };
}
