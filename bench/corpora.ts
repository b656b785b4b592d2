import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** Real texts that measurements ask with, out of a folder of data. */

/** The articles of gsa-articles. */
export function readArticles(data: string): { id: string; text: string }[] {
  return unpacked(join(data, 'gsa-articles/articles.jsonl.gz'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { id: string; text: string });
}

/** What a bank's customers ask, each with its intent: a part of banking77. */
export function readQuestions(data: string, part: 'train' | 'test'): { text: string; intent: string }[] {
  const found = unpacked(join(data, `banking77/${part}.csv.gz`)).matchAll(
    /(?:"((?:[^"]|"")*)"|([^",\r\n]*)),([^,\r\n]+)\r?\n/g,
  );
  return Array.from(found, ([, quoted, plain, intent]) => ({
    text: (quoted?.replaceAll('""', '"') ?? plain!).trim(),
    intent: intent!,
  })).slice(1);
}

function unpacked(file: string): string {
  return gunzipSync(readFileSync(file)).toString('utf8');
}
