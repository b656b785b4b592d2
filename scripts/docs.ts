import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configurationPage } from './configuration-page.ts';
import { editorSchema } from './editor-schema.ts';
import { errorsPage } from './errors-page.ts';

/** `npm run docs` writes the pages that are made from code; `--check` fails where one is not up to date. */
const PAGES: Record<string, () => string> = {
  'docs/armature.schema.json': editorSchema,
  'docs/configuration.md': configurationPage,
  'docs/errors.md': errorsPage,
};

const check = process.argv.includes('--check');
for (const [path, make] of Object.entries(PAGES)) {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url));
  const made = make();
  if (read(file) === made) continue;
  if (check) {
    console.error(`${path} is not up to date; run \`npm run docs\``);
    process.exitCode = 1;
  } else {
    writeFileSync(file, made);
    console.log(`wrote ${path}`);
  }
}
if (check && !process.exitCode) console.log(`${Object.keys(PAGES).join(', ')}: up to date`);

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
