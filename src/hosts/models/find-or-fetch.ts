import type { Timers } from '../../kernel/timers.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { cacheFolder, find } from './cache.ts';
import { pull } from './pull.ts';
import type { FileSettings } from './sources.ts';

/** Finds single files of models for those that serve none: the tokenizers that a gateway makes tokens by. */
export function modelFiles(timers: Timers, log: Pick<Logger, 'warn'>) {
  return {
    find: (file: FileSettings): string | undefined => find(cacheFolder(), file)?.path,
    async fetch(what: string, file: FileSettings): Promise<void> {
      const pulled = await pull(file, {
        folder: cacheFolder(),
        env: process.env,
        timers,
        signal: new AbortController().signal,
        onEvent(event) {
          if (event.type !== 'failed') return;
          log.warn({ source: event.source, reason: event.reason }, `the ${what} cannot be had from there`);
        },
      }).catch((error: unknown) => {
        log.warn({ err: error }, `the ${what} cannot be had`);
        return undefined;
      });
      if (pulled?.note) log.warn({}, `${what}: ${pulled.note}`);
    },
  };
}
