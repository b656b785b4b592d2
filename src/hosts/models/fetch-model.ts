import type { ModelSettings } from '../../config/schema/index.ts';
import type { Timers } from '../../kernel/timers.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { pull } from './pull.ts';
import { filesOf } from './sources.ts';

/** How far a download comes between two notes of it. */
const NOTED_BYTES = 5e6;

/** Where the files of a model are. */
interface FetchedModel {
  modelPath: string;
  tokenizerPath: string | undefined;
}

/**
 * Finds the files of a model, and pulls those that are missing; throws where none of their sources has them. `note` is
 * told how far it has come; the log, which source was taken and why not those before it.
 */
export async function fetchModel(
  name: string,
  model: ModelSettings,
  options: {
    folder: string;
    timers: Timers;
    log: Logger;
    signal: AbortSignal;
    note(text: string): void;
  },
): Promise<FetchedModel> {
  const { folder, timers, log, signal, note } = options;
  const paths: Partial<Record<'model' | 'tokenizer', string>> = {};
  for (const { part, file } of filesOf(model)) {
    const what = part === 'model' ? name : `${part} of ${name}`;
    let noted = 0;
    const pulled = await pull(file, {
      folder,
      env: process.env,
      timers,
      signal,
      onEvent(event) {
        if (event.type === 'progress') {
          if (Math.abs(event.bytes - noted) < NOTED_BYTES) return;
          noted = event.bytes;
          note(`fetching ${what}: ${Math.round(event.bytes / 1e6)} MB`);
        } else if (event.type === 'waiting') note(`waiting for ${what}, which somebody else is fetching`);
        else if (event.type === 'trying') note(`fetching ${what} from ${event.source}`);
        else log.warn({ source: event.source, reason: event.reason }, `${what} cannot be had from there`);
      },
    });
    if (!pulled) throw new Error(`no source has ${what}; the log says why of each`);
    if (pulled.note) log.warn(`${what}: ${pulled.note}`);
    paths[part] = pulled.path;
  }
  return { modelPath: paths.model!, tokenizerPath: paths.tokenizer };
}
