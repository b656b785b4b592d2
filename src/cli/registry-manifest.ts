import { REQUEST_BYTES_MAX } from '../api/contracts.ts';
import { formatFaults } from '../config/faults.ts';
import { readText, systemIo } from '../config/files.ts';
import { Sources } from '../config/sources.ts';
import { parseYaml } from '../config/yaml-file.ts';
import { readManifest } from '../releases/registry/manifest-faults.ts';
import { askedWrongly } from './command.ts';

/** What a manifest's file says, as it was written. Throws with every fault, and the line of each, where it cannot be one. */
export function manifestIn(file: string): unknown {
  const read = readText(systemIo, file, REQUEST_BYTES_MAX);
  if ('cause' in read) throw askedWrongly(`the manifest ${file} ${read.cause}`);
  const yaml = parseYaml(file, read.text, undefined);
  const sources = new Sources(file, yaml.places);
  sources.addLines(file, yaml.lines);
  const written = yaml.faults.map(({ fault, span }) => sources.withExcerpt(fault, span));
  const faults = yaml.broken ? written : [...written, ...readManifest(yaml.data, sources).faults];
  if (faults.length > 0) throw askedWrongly(formatFaults(faults, 'the manifest'));
  return yaml.data;
}
