import { statSync } from 'node:fs';
import type { ModelSettings, Settings } from '../../config/schema/index.ts';
import type { TokenizerFile, TokenizerFiles } from './contracts.ts';

type FileSettings = Pick<ModelSettings, 'from' | 'sha256'>;

/** Where files of models are found, and fetched where they are not here. */
export interface ModelFiles {
  /** The path of a file that is here. */
  find(file: FileSettings): string | undefined;
  /** Resolves when the file is here, or cannot be had. */
  fetch(what: string, file: FileSettings): Promise<void>;
}

/** Finds tokenizers of models; one that is not here yet is fetched, once at a time. */
export class ModelTokenizers implements TokenizerFiles {
  models: Settings['models'] = {};
  readonly #files: ModelFiles;
  /** Names of models whose tokenizers are being fetched. */
  readonly #fetching = new Set<string>();

  constructor(files: ModelFiles) {
    this.#files = files;
  }

  ofModel(name: string): TokenizerFile | undefined {
    const model = this.models[name];
    // A GGUF file holds its own tokenizer; it is fetched by the host that serves it.
    const file = model?.tokenizer ?? (model?.format === 'gguf' ? model : undefined);
    if (!model || !file) return undefined;
    const path = this.#files.find(file);
    if (path !== undefined) return this.ofFile(path);
    if (file === model || this.#fetching.has(name)) return undefined;
    this.#fetching.add(name);
    void this.#files.fetch(`tokenizer of ${name}`, file).then(() => this.#fetching.delete(name));
    return undefined;
  }

  ofFile(path: string): TokenizerFile | undefined {
    return fileNow(path);
  }
}

/** Known by what the file is now; undefined where there is none. */
export function fileNow(path: string): TokenizerFile | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && { key: `${path} ${found.size} ${found.mtimeMs}`, path };
}
