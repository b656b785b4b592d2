import { systemIo } from '../config/files.ts';
import type { Loaded, LoadedConfig } from '../config/load.ts';
import { putOver } from '../config/overlay.ts';
import { Places, readPath } from '../config/places.ts';
import { parseYaml } from '../config/yaml-file.ts';
import type { AcceleratorProfile } from '../simulation/accelerator/step.ts';
import { askedWrongly } from './command.ts';

/** `--set PATH=VALUE`: a value put over the configuration file. */
export interface Setting {
  path: string;
  value: unknown;
  text: string;
}

/** The value is read as YAML: a number, a text, a list, a map. */
export function parseSetting(text: string): Setting {
  const at = text.indexOf('=');
  const path = text.slice(0, Math.max(0, at));
  if (at < 1 || !readPath(path))
    throw askedWrongly(`expected PATH=VALUE, such as routes.chat.deadline=2s, got '${text}'`);
  const { data, broken, faults } = parseYaml('--set', text.slice(at + 1), undefined);
  if (broken || faults.length > 0 || data === null) throw askedWrongly(`'${text.slice(at + 1)}' is no value`);
  return { path, value: data, text };
}

/** The configuration with the values over what its files say. */
export function withSettings(files: LoadedConfig, settings: readonly Setting[]): Loaded {
  const places = new Places();
  const sources = files.sources.withPlaces(places);
  sources.addLines(
    '--set',
    settings.map(({ text }) => text),
  );
  for (const [index, { path, text }] of settings.entries()) {
    const span = { file: '--set', line: index + 1, column: 1, length: text.length };
    places.add(readPath(path)!, { key: span, value: span, written: undefined });
  }
  const overlays = settings.map(({ path, value }) => ({ path, value, actor: '--set', at: '', event: '' }));
  return putOver(files, overlays, systemIo, sources);
}

const FIGURES: Record<string, (profile: AcceleratorProfile, value: number) => void> = {
  prefill: (profile, value) => {
    profile.prefillTokensPerSecond = value;
  },
  decode: (profile, value) => {
    profile.decodeTokensPerSecond = value;
  },
  'decode-max': (profile, value) => {
    profile.decodeTokensPerSecondMax = value;
  },
  step: (profile, value) => {
    profile.stepTokensMax = Math.max(1, Math.floor(value));
  },
  batch: (profile, value) => {
    profile.batchMax = Math.max(1, Math.floor(value));
  },
  kv: (profile, value) => {
    profile.kvTokensMax = Math.floor(value);
  },
};

/** `BACKEND=prefill:8000,decode:60[,decode-max:4000][,step:2048][,batch:32][,kv:100000][,jitter:0.1]`. */
export function parseProfile(text: string): { backend: string; profile: AcceleratorProfile } {
  const at = text.indexOf('=');
  if (at < 1) throw askedWrongly(`expected BACKEND=prefill:N,decode:N,batch:N,kv:N, got '${text}'`);
  const profile: AcceleratorProfile = {
    prefillTokensPerSecond: 0,
    decodeTokensPerSecond: 0,
    batchMax: 32,
    kvTokensMax: 100_000,
    coldStart: 0,
    jitter: 0,
    faults: { errorRate: 0, resetRate: 0, stallRate: 0 },
  };
  for (const member of text.slice(at + 1).split(',')) {
    const [name = '', figure = ''] = member.split(':');
    const value = /^\d+(\.\d+)?$/.test(figure) ? Number(figure) : Number.NaN;
    if (name === 'jitter' && value >= 0 && value <= 1) profile.jitter = value;
    else if (Object.hasOwn(FIGURES, name) && value > 0) FIGURES[name]!(profile, value);
    else
      throw askedWrongly(
        `expected prefill, decode, decode-max, step, batch, kv or jitter with a number, got '${member}'`,
      );
  }
  if (profile.prefillTokensPerSecond === 0 || profile.decodeTokensPerSecond === 0)
    throw askedWrongly('a profile needs prefill and decode, tokens a second each');
  return { backend: text.slice(0, at), profile };
}

/** What parseProfile reads, of what a fit finds. */
export function profileFigures(profile: AcceleratorProfile): string {
  const { prefillTokensPerSecond, decodeTokensPerSecond, decodeTokensPerSecondMax, stepTokensMax, batchMax } =
    profile;
  return [
    `prefill:${prefillTokensPerSecond},decode:${decodeTokensPerSecond}`,
    ...(decodeTokensPerSecondMax === undefined ? [] : [`decode-max:${decodeTokensPerSecondMax}`]),
    ...(stepTokensMax === undefined ? [] : [`step:${stepTokensMax}`]),
    `batch:${batchMax}`,
  ].join(',');
}
