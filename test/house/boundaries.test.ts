import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXCEPTIONS, forbidden } from './boundaries.ts';
import { root, sources } from './sources.ts';

describe('import boundaries', () => {
  it.each([
    ['src/config/load.ts', 'src/kernel/units.ts'],
    ['src/gateway/path.ts', 'src/policies/routing/index.ts'],
    ['src/gateway/path.ts', 'src/backends/contracts.ts'],
    ['src/control/main.ts', 'src/api/app.ts'],
    ['src/cli/up.ts', 'src/supervisor/run.ts'],
    ['test/e2e/up.test.ts', 'src/cli/program.ts'],
    ['src/gateway/leases/leased.test.ts', 'src/control/leases/book.ts'],
  ])('%s may import %s', (from, to) => {
    expect(forbidden(from, to)).toBeUndefined();
  });

  it.each([
    ['src/kernel/units.ts', 'src/config/load.ts'],
    ['src/policies/routing/index.ts', 'src/gateway/contracts.ts'],
    ['src/gateway/path.ts', 'src/backends/openai/dialect.ts'],
    ['src/gateway/path.ts', 'src/control/snapshots.ts'],
    ['src/api/app.ts', 'src/control/snapshots.ts'],
    ['src/gateway/path.ts', 'test/upstream/engine.ts'],
    ['src/cli/up.ts', 'src/main.ts'],
  ])('%s may not import %s', (from, to) => {
    expect(forbidden(from, to)).toBeTypeOf('string');
  });

  it('are kept', () => {
    const broken = sources().flatMap(({ path, imports }) =>
      imports
        .filter(({ target }) => /^(src|test|bench|scripts)\//.test(target))
        .filter(({ target }) => !EXCEPTIONS.some(({ from, to }) => from === path && to === target))
        .map(({ target, line }) => ({ at: `${path}:${line}`, target, why: forbidden(path, target) }))
        .filter(({ why }) => why !== undefined)
        .map(({ at, target, why }) => `${at} imports ${target}: ${why}`),
    );
    expect(broken).toEqual([]);
  });

  it('leave no exception that nothing needs', () => {
    const idle = EXCEPTIONS.filter(
      ({ from, to }) =>
        !sources().some(({ path, imports }) => path === from && imports.some((one) => one.target === to)),
    );
    expect(idle).toEqual([]);
  });

  it('let shipped code import only what is installed with it', () => {
    const declared = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
      string,
      Record<string, string>
    >;
    const shipped = { ...declared.dependencies, ...declared.optionalDependencies };
    const missing = sources()
      .filter(({ path }) => path.startsWith('src/') && !path.endsWith('.test.ts'))
      .flatMap(({ path, imports }) => imports.map((one) => ({ at: `${path}:${one.line}`, ...one })))
      .filter(({ target, types }) => !types && !/^(src\/|node:|package\.json$)/.test(target))
      .filter(({ target }) => !Object.hasOwn(shipped, packageOf(target)))
      .map(({ at, target }) => `${at} imports ${target}, which is no dependency`);
    expect(missing).toEqual([]);
  });
});

function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}
