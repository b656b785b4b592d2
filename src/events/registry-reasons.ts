/** What is told of versions of models, their aliases, and decisions about stacks; see reasons.ts. */
export const REGISTRY_REASONS = {
  'version-added':
    '{version} was sealed: files {files}, {bytes}, {format}[, {precision}][; pickles were allowed aloud in {pickles}].',
  'version-removed': '{version}, {bytes}, was removed: nobody used it.',
  'version-verified': 'All files of {version}, {bytes}, are as they were.',
  'version-damaged': 'Files of {version} are not as they were: {damaged}.',
  'version-archived': '{version} was archived to {place}; files that were moved: {files}.',
  'version-restored': '{version} was brought back to {place}; files that were moved: {files}.',
  'alias-moved': '{alias} leads to version {to} from now on[, and led to {from}].',
  'alias-removed': '{alias}, which led to version {from}, was taken away.',
  'stack-decided':
    '{by} chose {engine} on {hardware}, {version}, for {chosenFor}: "{why}"[, by the evidence of {evidence}].',
} as const;
