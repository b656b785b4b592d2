import type { Inspection, WeightsFormat } from './formats/index.ts';
import { WEIGHTS_FORMATS } from './formats/index.ts';
import type { Manifest, ManifestFile, ManifestInput } from './manifest.ts';
import { folderOf, missingParts } from './parts.ts';

/** A file that is there, and what was found in it. */
export interface InspectedFile {
  path: string;
  sha256: string;
  bytes: number;
  inspection: Inspection;
}

/** Files of a SavedModel that no header describes. */
const OF_SAVED_MODEL =
  /(^|\/)(variables\/variables\.(index|data-\d{5}-of-\d{5})|fingerprint\.pb|keras_metadata\.pb|assets\/.*)$/;

/**
 * Makes a whole manifest of what its maker says and what was found in the files. What the two say of one thing must be
 * the same; what is missing and can be found is filled in. Gives every fault, in words, where it cannot be.
 *
 * @param allowedBy who said that pickles may be in it; undefined where nobody did
 */
export function completeManifest(
  said: ManifestInput,
  files: readonly InspectedFile[],
  allowedBy: string | undefined,
): { manifest: Manifest; faults: string[] } {
  const pickled = files.filter(({ inspection }) => inspection.danger !== undefined).map(({ path }) => path);
  const faults = [
    ...claimedFiles(said, files),
    ...formatFaults(said, files, allowedBy !== undefined),
    ...dangerFaults(files, allowedBy !== undefined),
  ];
  const { files: _files, ...claims } = said;
  const weights = files.filter(({ inspection }) => isWeights(inspection.format));
  const found = findIn(files, weights);
  for (const key of ['tokenizer', 'template'] as const) {
    if (claims[key] !== undefined && found[key] !== undefined && claims[key] !== found[key])
      faults.push(`the manifest says that the ${key} is ${claims[key]}, and the files have ${found[key]}`);
  }
  if (said.precision !== undefined && !fits(said.precision, found.precision, found.numbers))
    faults.push(`the manifest says precision ${said.precision}, and the weights are ${found.precision}`);
  faults.push(...scoreFaults(said, found.outputs));
  const manifest: Manifest = {
    ...found,
    ...claims,
    format: claims.format ?? (weights[0]?.inspection.format as WeightsFormat),
    files: files.map(fileOf).sort((a, b) => (a.path < b.path ? -1 : 1)),
    ...(pickled.length > 0 && allowedBy !== undefined && { pickles: { allowedBy, files: pickled } }),
  };
  return { manifest, faults };
}

const isWeights = (format: string): boolean => (WEIGHTS_FORMATS as readonly string[]).includes(format);

function claimedFiles({ files: claimed = [] }: ManifestInput, files: readonly InspectedFile[]): string[] {
  return claimed.flatMap(({ path, sha256, bytes }) => {
    const file = files.find((each) => each.path === path);
    if (!file) return [`the manifest names ${path}, which is not among the files`];
    if (file.sha256 !== sha256)
      return [`the manifest says that ${path} is ${sha256}, and it is ${file.sha256}`];
    if (bytes !== undefined && bytes !== file.bytes)
      return [`the manifest says that ${path} has ${bytes} bytes, and it has ${file.bytes}`];
    return [];
  });
}

/** One format of weights in a version, what the manifest calls it, and no file of which nothing is known. */
function formatFaults(said: ManifestInput, files: readonly InspectedFile[], pickles: boolean): string[] {
  const faults: string[] = [];
  const formats = new Set(files.map(({ inspection }) => inspection.format).filter(isWeights));
  const pickled = files.some(({ inspection }) => inspection.format === 'pickle');
  if (formats.size === 0 && !(pickles && pickled))
    faults.push(`none of the files has weights: a version needs ${WEIGHTS_FORMATS.join(', ')}`);
  if (formats.size > 1) faults.push(`the files are of several formats: ${[...formats].join(', ')}`);
  if (said.format !== undefined && formats.size === 1 && !formats.has(said.format))
    faults.push(`the manifest says format ${said.format}, and the weights are ${[...formats][0]}`);
  for (const { path, inspection } of files) {
    if (inspection.format === 'bytes' && !isExpected(path, files))
      faults.push(`${path} is of no known format, and no other file says what is in it`);
  }
  return [...faults, ...missingParts(files)];
}

/** Whether a file without a header of its own belongs to another that says so. */
function isExpected(path: string, files: readonly InspectedFile[]): boolean {
  return files.some(({ path: other, inspection }) => {
    const folder = folderOf(other);
    if (inspection.format === 'savedmodel')
      return path.startsWith(folder) && OF_SAVED_MODEL.test(path.slice(folder.length));
    return inspection.external?.some((part) => folder + part === path) ?? false;
  });
}

function dangerFaults(files: readonly InspectedFile[], allowed: boolean): string[] {
  if (allowed) return [];
  return files.flatMap(({ path, inspection: { format, danger } }) =>
    danger === undefined
      ? []
      : [
          `${path} ${format === 'pickle' ? 'is a pickle' : 'holds pickles'}: ${danger}. Convert it to safetensors, or say --allow-pickle`,
        ],
  );
}

/** What the files say together. */
function findIn(files: readonly InspectedFile[], weights: readonly InspectedFile[]) {
  const numbers: Record<string, number> = {};
  for (const { inspection } of weights) {
    for (const [kind, count] of Object.entries(inspection.numbers ?? {}))
      numbers[kind] = (numbers[kind] ?? 0) + count;
  }
  const first = <Key extends keyof Inspection>(key: Key): Inspection[Key] | undefined =>
    [...weights, ...files].find(({ inspection }) => inspection[key] !== undefined)?.inspection[key];
  const precision = first('precision') ?? commonest(numbers);
  const jinja = files.find(({ path }) => /(^|\/)chat_template\.jinja$/.test(path))?.sha256;
  const [tokenizer, template] = [first('tokenizer'), first('template') ?? jinja];
  const [inputs, outputs, told] = [first('inputs'), first('outputs'), first('told')];
  return {
    ...(Object.keys(numbers).length > 0 && { numbers }),
    ...(precision !== undefined && { precision }),
    ...(tokenizer !== undefined && { tokenizer }),
    ...(template !== undefined && { template }),
    ...(inputs && { inputs }),
    ...(outputs && { outputs }),
    ...(told && { told }),
  };
}

/** The kind that most numbers are of. */
function commonest(numbers: Record<string, number>): string | undefined {
  return Object.entries(numbers).sort(([, a], [, b]) => b - a)[0]?.[0];
}

/**
 * Whether what is claimed can be. Of whole and packed numbers files do not tell what they stand for (four-bit weights lie
 * in int32), so that there only a claim of floating point is refused.
 */
function fits(
  claim: string,
  found: string | undefined,
  numbers: Record<string, number> | undefined,
): boolean {
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, '');
  const name = ALSO_CALLED[plain(claim)] ?? plain(claim);
  if (found === undefined || name === plain(found)) return true;
  const most = commonest(numbers ?? {});
  if (most !== undefined && name === plain(most)) return true;
  return /^u?int\d+$/.test(found) && !/^(fp|bf|float)/.test(name);
}

const ALSO_CALLED: Record<string, string> = {
  float32: 'fp32',
  f32: 'fp32',
  float16: 'fp16',
  f16: 'fp16',
  half: 'fp16',
  bfloat16: 'bf16',
  float64: 'fp64',
  f64: 'fp64',
  fp8: 'fp8e4m3',
  e4m3: 'fp8e4m3',
  e5m2: 'fp8e5m2',
};

function scoreFaults({ score }: ManifestInput, outputs: string[] | undefined): string[] {
  if (!score || !outputs || outputs.includes(score.output)) return [];
  return [`the manifest says that '${score.output}' is the score, and the outputs are ${outputs.join(', ')}`];
}

function fileOf({ path, sha256, bytes, inspection: { format, tokenizer } }: InspectedFile): ManifestFile {
  const isTemplate = /(^|\/)chat_template\.jinja$/.test(path);
  const isTokenizer = format === 'sentencepiece' || (format === 'json' && tokenizer !== undefined);
  const heavy = isWeights(format) || format === 'pickle' || format === 'bytes';
  const role = heavy ? 'weights' : isTokenizer ? 'tokenizer' : isTemplate ? 'template' : 'other';
  return { path, sha256, bytes, format, role };
}
