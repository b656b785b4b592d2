import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { files, root } from './sources.ts';

const pages = files()
  .filter((path) => path.endsWith('.md'))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));

describe('pages', () => {
  it('link to what is there', () => {
    const broken = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)]
        .map(([, target]) => target!)
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => !existsSync(join(root, posix.join(posix.dirname(path), target))))
        .map((target) => `${path}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it('name every decision in their index', () => {
    const index = pages.find(({ path }) => path === 'docs/decisions/README.md')!.text;
    const records = pages.map(({ path }) => path).filter((path) => /^docs\/decisions\/\d/.test(path));
    expect(records.filter((path) => !index.includes(`(${posix.basename(path)})`))).toEqual([]);
  });

  it('introduce Armature in 150 lines', () => {
    const lines = pages.find(({ path }) => path === 'README.md')!.text.split('\n').length - 1;
    expect(lines).toBeLessThanOrEqual(150);
  });
});
