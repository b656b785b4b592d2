import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from './sources.ts';

const folder = join(root, 'src', 'policies');
const policies = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

describe.each(policies)('the policy %s', (name) => {
  it('is one folder: code, test and a README that says what it takes', () => {
    const held = readdirSync(join(folder, name));
    expect(held).toContain('index.ts');
    expect(held.some((file) => file.endsWith('.test.ts'))).toBe(true);
    expect(existsSync(join(folder, name, 'README.md'))).toBe(true);
    expect(readFileSync(join(folder, name, 'README.md'), 'utf8')).toMatch(/^# /);
  });
});
