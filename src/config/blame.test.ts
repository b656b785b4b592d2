import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Blamer, parsePorcelain } from './blame.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'armature-blame-'));
  file = join(folder, 'armature.yaml');
});
afterEach(() => rmSync(folder, { recursive: true }));

function git(...args: string[]): string {
  const env = {
    ...process.env,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: 'ada@example.org',
    GIT_AUTHOR_DATE: '2026-01-02T03:04:05Z',
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: 'ada@example.org',
  };
  return execFileSync('git', ['-C', folder, ...args], { env, encoding: 'utf8' }).trim();
}

describe('who wrote a line', () => {
  it('is told by git: commit, author and date; nothing for a line that is not committed', async () => {
    writeFileSync(file, 'routes:\n  chat: {}\n');
    git('init', '-q');
    git('add', '.');
    git('commit', '-q', '-m', 'one');
    const commit = git('rev-parse', 'HEAD');
    const blamer = new Blamer();
    const told = { commit, author: 'Ada', date: '2026-01-02T03:04:05.000Z' };
    expect(await blamer.blame(file, 1)).toEqual(told);
    expect(await blamer.blame(file, 2)).toEqual(told);
    expect(await blamer.blame(file, 3)).toBeUndefined();

    writeFileSync(file, 'routes:\n  chat: {}\n  more: {}\n');
    expect(await blamer.blame(file, 2)).toEqual(told);
    expect(await blamer.blame(file, 3)).toBeUndefined();

    git('commit', '-q', '-a', '-m', 'two');
    expect(await blamer.blame(file, 3)).toEqual({ ...told, commit: git('rev-parse', 'HEAD') });
  });

  it('is not known for a file outside of a work tree, one that git does not track, or none', async () => {
    const blamer = new Blamer();
    expect(await blamer.blame(file, 1)).toBeUndefined();
    writeFileSync(file, 'routes:\n');
    expect(await blamer.blame(file, 1)).toBeUndefined();
    git('init', '-q');
    expect(await new Blamer().blame(file, 1)).toBeUndefined();
  });

  it('is read from any text without failing', () => {
    expect(parsePorcelain('').authors.size).toBe(0);
    expect(parsePorcelain('fatal: no such path').authors.size).toBe(0);
  });
});
