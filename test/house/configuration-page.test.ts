import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { EVERY_KEY, rowsOf } from '../../scripts/configuration-page.ts';
import { formatFaults } from '../../src/config/faults.ts';
import { type ConfigIo, systemIo } from '../../src/config/files.ts';
import { loadConfig } from '../../src/config/load.ts';
import { settingsSchema } from '../../src/config/schema/index.ts';
import { select } from '../../src/config/shape.ts';

const example = fileURLToPath(EVERY_KEY);
/** Whatever the example refers to is there. */
const io: ConfigIo = {
  ...systemIo,
  env: { VLLM_KEY: 'a', TRITON_PASSWORD: 'b', S3_KEY_ID: 'c', S3_SECRET: 'd' },
  readFile: (path) => {
    if (path === example) return readFileSync(path);
    return Buffer.from(path.endsWith('tokenizer.json') ? '{"model": {}}' : 'c\n');
  },
};

describe('the reference page', () => {
  it('has an example that is valid', () => {
    const loaded = loadConfig(example, io);
    expect(loaded.ok ? '' : formatFaults(loaded.faults)).toBe('');
  });

  it('shows every key in its example, and says what each means', () => {
    const loaded = loadConfig(example, io);
    if (!loaded.ok) throw new Error('the example is not valid');
    const { document } = loaded.config;
    const rows = rowsOf(settingsSchema);
    expect(rows.filter(({ meaning }) => meaning === '').map(({ pattern }) => pattern.join('.'))).toEqual([]);
    const unseen = rows.filter(({ pattern }) => select(document, pattern).length === 0);
    expect(unseen.map(({ pattern }) => pattern.join('.'))).toEqual([]);
  });
});
