import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { countBy, fuzz } from './fuzz.ts';

const small = ['bytes', 'pieces', 'words'].map((name) =>
  fileURLToPath(new URL(`reference/small/${name}/tokenizer.json`, import.meta.url)),
);

// All 100,000: node test/context/fuzz.ts --count 100000 --tokenizer FILE ...
it('holds for random conversations, templates, tokenizers and windows', () => {
  const tally = fuzz(400, 1, [(text) => Buffer.byteLength(text), ...small.map(countBy)]);
  for (const count of Object.values(tally)) expect(count).toBeGreaterThan(5);
});
