import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { files, parse, root, sources } from './sources.ts';
import * as style from './style.ts';

/** Names that others prescribe. */
const GIVEN_NAMES =
  /^([A-Z]+(\.md)?|.*\/LICENSE\.md|.*\.(py|sh)|docs\/decisions\/.*|console\/.*|deploy\/.*)$/;

describe('style', () => {
  it('names files in kebab-case, and no bag of things', () => {
    const named = files().filter(
      (path) => !GIVEN_NAMES.test(path) && !path.split('/').at(-1)!.startsWith('.'),
    );
    const bad = named.filter((path) => !path.endsWith('README.md')).map(style.badName);
    expect(bad.filter((fault) => fault !== undefined)).toEqual([]);
  });

  it('reads time and chance in the kernel only', () => {
    expect(sources().flatMap(style.ambient)).toEqual([]);
  });

  it('lets no caught error vanish', () => {
    expect(sources().flatMap(style.emptyCatches)).toEqual([]);
  });

  it('leaves nothing unfinished behind', () => {
    expect(sources().flatMap(style.unfinished)).toEqual([]);
  });

  it('keeps files and functions short', () => {
    expect(
      sources().flatMap((source) => [...style.longFile(source), ...style.longFunctions(source)]),
    ).toEqual([]);
  });

  it('keeps no exception that nothing needs', () => {
    const paths = new Map(sources().map((source) => [source.path, source]));
    const idle = Object.keys(style.LONG).filter((name) => {
      const source = paths.get(name.split('#')[0]!);
      if (!source) return true;
      return !name.includes('#') && source.text.split('\n').length - 1 <= style.FILE_LINES_MAX;
    });
    expect(idle).toEqual([]);
  });

  it('ends every text file with one line feed', () => {
    const texts = files().filter(
      (path) => /\.(ts|mjs|md|json|yaml|sh)$/.test(path) && !path.endsWith('package-lock.json'),
    );
    const bad = texts.filter((path) => !/(^|[^\n])\n$/.test(readFileSync(join(root, path), 'utf8')));
    expect(bad).toEqual([]);
  });
});

describe('the rules themselves', () => {
  const read = (text: string) => parse('src/gateway/example.ts', text);

  it('see time, chance and timers', () => {
    const text =
      'Date.now();\nMath.random();\nsetTimeout(run, 1);\nnew Date();\nperformance.now();\nimport { setTimeout as wait } from "node:timers/promises";\n';
    expect(style.ambient(read(text))).toHaveLength(6);
    expect(style.ambient(read('timers.set(1, run);\nnew Date(ms);\nclock.now();\n'))).toEqual([]);
  });

  it('see an error that vanishes', () => {
    expect(style.emptyCatches(read('try { a(); } catch {}\n'))).toHaveLength(1);
    expect(style.emptyCatches(read('try { a(); } catch { /* Gone already. */ }\n'))).toEqual([]);
  });

  it('see a long function under its name', () => {
    const body = 'a();\n'.repeat(style.FUNCTION_LINES_MAX);
    expect(style.longFunctions(read(`function f() {\n${body}}\n`))[0]).toContain('f has 72 lines');
    expect(style.longFunctions(read(`const g = () => {\n${body}};\n`))[0]).toContain('g has');
    expect(style.longFunctions(read(`class A { h() {\n${body}} }\n`))[0]).toContain('h has');
  });

  it.each([
    'src/gateway/utils.ts',
    'src/shared/a.ts',
    'src/kernel/string-helpers.ts',
    'src/kernel/camelCase.ts',
  ])('refuse the name %s', (path) => expect(style.badName(path)).toBeTypeOf('string'));
});
