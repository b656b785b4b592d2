import type { InspectedFile } from './complete.ts';

/** What a version lacks, as its own files say: weights that lie beside a header, or parts of a model in several files. */
export function missingParts(files: readonly InspectedFile[]): string[] {
  const paths = new Set(files.map(({ path }) => path));
  const named = files.flatMap(({ path, inspection: { external = [], needs = [] } }) =>
    [...external, ...needs]
      .map((part) => folderOf(path) + part)
      .filter((part) => !paths.has(part))
      .map((part) => `${path} has weights in ${part}, which is not among the files`),
  );
  return [...named, ...missingShards(files), ...missingSplits(files)];
}

/** Variables of a SavedModel lie in as many files as the name of each says. */
function missingShards(files: readonly InspectedFile[]): string[] {
  return files.flatMap(({ path }) => {
    const [, stem, text] = /^(.*variables\/variables\.data)-00000-of-(\d{5})$/.exec(path) ?? [];
    if (stem === undefined) return [];
    const missing = [...Array(Number(text)).keys()]
      .map((shard) => `${stem}-${String(shard).padStart(5, '0')}-of-${text}`)
      .filter((shard) => !files.some((each) => each.path === shard));
    return missing.slice(0, 10).map((shard) => `${shard} is not among the files`);
  });
}

/** Of a GGUF model in several files each says which it is, and of how many. */
function missingSplits(files: readonly InspectedFile[]): string[] {
  const splits = files.flatMap(({ inspection }) => inspection.split ?? []);
  const of = Math.max(0, ...splits.map((split) => split.of));
  const have = new Set(splits.map(({ part }) => part)).size;
  return have < of ? [`a model in ${of} files of GGUF has ${have} of them here`] : [];
}

export const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1);
