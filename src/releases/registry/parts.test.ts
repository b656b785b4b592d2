import { expect, test } from 'vitest';
import type { InspectedFile } from './complete.ts';
import { missingParts } from './parts.ts';

const file = (path: string, inspection: Partial<InspectedFile['inspection']> = {}): InspectedFile => ({
  path,
  sha256: '0'.repeat(64),
  bytes: 1,
  inspection: { format: 'bytes', ...inspection },
});

test('weights that an index or a header names, from its own folder', () => {
  const index = file('m/index.json', { needs: ['a', 'b'], external: ['c'] });
  expect(missingParts([index, file('m/a'), file('b'), file('m/c')])).toEqual([
    'm/index.json has weights in m/b, which is not among the files',
  ]);
});

test('shards of variables, as their names count them', () => {
  const shard = 'sm/variables/variables.data-0000';
  expect(missingParts([file(`${shard}0-of-00002`)])).toEqual([`${shard}1-of-00002 is not among the files`]);
  expect(missingParts([file(`${shard}0-of-00002`), file(`${shard}1-of-00002`)])).toEqual([]);
});

test('parts of a GGUF model, as they say themselves', () => {
  const part = (at: number) => file(`part-${at}`, { format: 'gguf', split: { part: at, of: 3 } });
  expect(missingParts([part(0), part(2)])).toEqual(['a model in 3 files of GGUF has 2 of them here']);
  expect(missingParts([part(0), part(1), part(2)])).toEqual([]);
});
