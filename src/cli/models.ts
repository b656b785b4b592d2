import { CONFIG_FILE, loadConfig } from '../config/load.ts';
import type { ModelSettings } from '../config/schema/index.ts';
import { cacheFolder, type Found, find, partBytes, remove } from '../hosts/models/cache.ts';
import { pull } from '../hosts/models/pull.ts';
import { type FileSettings, filesOf } from '../hosts/models/sources.ts';
import { systemClock } from '../kernel/clock.ts';
import { systemTimers } from '../kernel/timers.ts';
import { reportFaults } from './check.ts';
import { askedWrongly, type Command, type CommonOptions, defineAction, failed } from './command.ts';
import { type Output, table } from './output.ts';
import { pullProgress } from './pull-progress.ts';

const DETAILS = `The files lie in $ARMATURE_MODELS, else in $XDG_CACHE_HOME/armature/models, else in
~/.cache/armature/models: one cache for all data directories.`;

const ls = defineAction({
  summary: 'the models of the configuration, and which of their files are here',
  details: DETAILS,
  async run({ common, output }) {
    const folder = cacheFolder();
    const models = modelsOf(common, output);
    if (!models) return 2;
    const files = Object.entries(models).flatMap(([name, model]) =>
      filesOf(model).map(({ part, file }) => ({ model: name, part, ...stateOf(folder, file) })),
    );
    if (common.json) {
      output.json({ cache: folder, files });
    } else if (files.length === 0) {
      output.print('The configuration has no models.');
    } else {
      output.print(
        table(
          ['MODEL', 'FILE', 'STATE', 'SIZE', 'SOURCE'],
          files.map(({ model, part, state, bytes, source }) => [
            model,
            part,
            state,
            bytes === null ? '' : megabytes(bytes),
            source,
          ]),
        ),
      );
      for (const { model, note } of files) if (note !== null) output.print(`${model}: ${note}`);
    }
    return 0;
  },
});

const pullAction = defineAction({
  summary: 'bring the files of models here',
  details: `${DETAILS}
With --json, what happens comes as JSON lines.`,
  arguments: [
    {
      name: 'NAME',
      summary: 'A model of the configuration; all of them unless given.',
      optional: true,
      many: true,
    },
  ],
  async run({ args, common, output }) {
    const models = modelsOf(common, output);
    if (!models) return 2;
    const interrupt = new AbortController();
    const stop = () => interrupt.abort(new Error('stopped'));
    process.once('SIGINT', stop);
    process.once('SIGTERM', stop);
    const missing: string[] = [];
    try {
      for (const name of chosen(models, args)) {
        for (const { part, file } of filesOf(models[name]!)) {
          const title = part === 'model' ? name : `${name} (${part})`;
          const progress = pullProgress({
            model: name,
            part,
            title,
            json: common.json,
            output,
            clock: systemClock,
          });
          const pulled = await pull(file, {
            folder: cacheFolder(),
            env: process.env,
            timers: systemTimers,
            signal: interrupt.signal,
            onEvent: progress.event,
          });
          progress.end(pulled);
          if (!pulled) missing.push(title);
        }
      }
    } catch (error) {
      if (interrupt.signal.aborted)
        throw failed('stopped; what was fetched so far is gone on with next time');
      throw error;
    } finally {
      process.off('SIGINT', stop);
      process.off('SIGTERM', stop);
    }
    if (missing.length === 0) return 0;
    throw failed(`no source could give ${missing.join(', ')}; the reason of each is above`);
  },
});

const rm = defineAction({
  summary: 'remove the files of a model from the cache',
  arguments: [{ name: 'NAME', summary: 'A model of the configuration.' }],
  async run({ args, common, output }) {
    const models = modelsOf(common, output);
    if (!models) return 2;
    const [name] = chosen(models, args);
    const sources = filesOf(models[name!]!).flatMap(({ file }) => file.from.map(({ source }) => source));
    const bytes = sources.reduce((sum, source) => sum + remove(cacheFolder(), source), 0);
    if (common.json) output.json({ model: name, bytes });
    else
      output.print(
        bytes === 0 ? `Nothing of ${name} was in the cache.` : `${name}: ${megabytes(bytes)} removed.`,
      );
    return 0;
  },
});

export const command: Command = { actions: { ls, pull: pullAction, rm }, defaultAction: 'ls' };

/** The models of the configuration; its faults are told where it has some. */
function modelsOf(common: CommonOptions, output: Output): Record<string, ModelSettings> | undefined {
  const loaded = loadConfig(common.config ?? CONFIG_FILE);
  if (loaded.ok) return loaded.config.settings.models;
  reportFaults(loaded.faults, output);
  return undefined;
}

function chosen(models: Record<string, ModelSettings>, names: readonly string[]): string[] {
  const known = Object.keys(models);
  const unknown = names.find((name) => !Object.hasOwn(models, name));
  if (unknown !== undefined) {
    throw askedWrongly(`unknown model '${unknown}'; the configuration has ${known.join(', ') || 'none'}`);
  }
  return names.length === 0 ? known : [...names];
}

interface FileState {
  state: 'here' | 'begun' | 'missing';
  bytes: number | null;
  /** The one it came from, or the first where it is missing. */
  source: string;
  sha256: string | null;
  path: string | null;
  note: string | null;
}

function stateOf(folder: string, file: FileSettings): FileState {
  const found: Found | undefined = find(folder, file);
  if (found) {
    const { bytes, source, sha256 = null, path, note = null } = found;
    return { state: 'here', bytes, source, sha256, path, note };
  }
  const absent = { sha256: null, path: null, note: null };
  for (const { source } of file.from) {
    const bytes = partBytes(folder, source);
    if (bytes !== undefined) return { state: 'begun', bytes, source, ...absent };
  }
  return { state: 'missing', bytes: null, source: file.from[0]!.source, ...absent };
}

/** As model hubs count: 98.4 MB. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
