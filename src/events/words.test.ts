import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ERRORS } from '../kernel/errors.ts';
import { REASONS } from './reasons.ts';
import { inWords, namesIn } from './words.ts';

test('puts figures into a sentence, with their units', () => {
  expect(inWords('waited', { waitedMs: 1500, priority: 'batch' })).toBe('Waited 1.5s for a place, as batch.');
  expect(inWords('host-ready', { addresses: ['http://a', 'http://b'] })).toBe(
    'The model host serves at http://a, http://b.',
  );
});

test('leaves out a part whose figures are missing', () => {
  expect(inWords('connection-lost', { endpoint: 'http://a' })).toBe('http://a broke the connection off.');
  expect(inWords('connection-lost', { endpoint: 'http://a', tookMs: 20 })).toBe(
    'http://a broke the connection off after 20ms.',
  );
});

test('tells a code within a sentence in words', () => {
  expect(inWords('fixed-answer', { rung: 1, for: 'queue-full' })).toBe(
    'Down the ladder: rung 1, a fixed answer, as the queue was full.',
  );
  expect(inWords('fixed-answer', { rung: 1, for: 'moon-full' })).toContain(', as moon-full.');
  const group = { count: 2, route: 'chat', tenant: 'web', example: 'req_1' };
  expect(inWords('requests-grouped', { ...group, reason: 'refused:queue-full' })).toBe(
    '2 requests to chat by web ended refused, as the queue was full, in that second; req_1 is one of them.',
  );
  expect(inWords('requests-grouped', { ...group, reason: 'failed:moon-full' })).toContain('failed:moon-full');
});

test('tells a code without a sentence as it is, with its figures', () => {
  expect(inWords('moon-full', { phase: 1, tides: null })).toBe('moon-full (phase 1, tides null)');
  expect(inWords('toString', {})).toBe('toString');
});

test('tells an error of the registry by its meaning', () => {
  expect(inWords('draining', {})).toBe(ERRORS.draining.meaning);
});

test('figures cannot write sentences', () => {
  expect(inWords('waited', { waitedMs: 1, priority: '{waitedMs} [x]' })).toBe(
    'Waited 1ms for a place, as {waitedMs} [x].',
  );
});

describe('sentences', () => {
  test.each(Object.entries(REASONS))('%s can be read', (_code, sentence) => {
    expect(sentence).toMatch(/^[A-Z{].*\.$/s);
    expect(sentence.replace(/\{\w+\}/g, '').replace(/\[[^[\]]*\]/g, '')).not.toMatch(/[{}[\]]/);
    expect(namesIn(sentence).length).toBeLessThan(8);
  });
});

describe('every code of the program has words', () => {
  const root = join(import.meta.dirname, '..');
  const sources = (pattern: string) =>
    globSync(pattern, { cwd: root })
      .filter((file) => !file.endsWith('.test.ts'))
      .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
  const quoted = (text: string) => [...text.matchAll(/'([a-z]+(?:-[a-z]+)*)'/g)].map((match) => match[1]!);
  const known = (code: string) => Object.hasOwn(REASONS, code) || Object.hasOwn(ERRORS, code);

  test('decisions of the path', () => {
    const codes = sources('gateway/**/*.ts').flatMap(({ text }) => [
      ...[...text.matchAll(/\bstep\(\s*x,\s*'[a-z]+',\s*([^,]+),/g)].flatMap((match) => quoted(match[1]!)),
      ...[...text.matchAll(/\bwhat: '[a-z]+',\s*code: ([^,]+),/g)].flatMap((match) => quoted(match[1]!)),
      ...[...text.matchAll(/fromBrokenAnswer\(\s*'([^']+)'/g)].map((match) => match[1]!),
    ]);
    expect(codes.length).toBeGreaterThan(15);
    expect(codes.filter((code) => !known(code))).toEqual([]);
  });

  test('ends of an attempt', () => {
    const codes = sources('gateway/dispatch/outcome.ts').flatMap(({ text }) =>
      [...text.matchAll(/\bcode(?: = |: )([^;]+?[,;])/gs)].flatMap((match) => quoted(match[1]!)),
    );
    expect(codes).toContain('connection-refused');
    const phases = ['before-queue'];
    expect(codes.filter((code) => code.includes('-') && !known(code) && !phases.includes(code))).toEqual([]);
  });

  test('reasons of policies', () => {
    const codes = sources('policies/*/*.ts').flatMap(({ text }) =>
      quoted(text.replace(/\bname[:=] ?'[^']+'|readonly name = '[^']+'/g, '')),
    );
    const policies = new Set(sources('policies/*/index.ts').map(({ file }) => file.split('/')[1]!));
    const unknown = codes.filter(
      (code) => code.includes('-') && code !== 'half-open' && !policies.has(code) && !known(code),
    );
    expect(unknown).toEqual([]);
  });

  test('events', () => {
    // Every word that looks like the type of an event, in files that make some. What `status` warns of is no event.
    const nouns =
      /^(?:breaker|configuration|endpoint|events|host|key|overlay|part|probe|release|request|requests|snapshot|worker)-[a-z]+$/;
    const codes = sources('{control,events,gateway}/**/*.ts')
      .filter(
        ({ file, text }) =>
          /\bsubject\b/.test(text) && !['events/reasons.ts', 'control/status.ts'].includes(file),
      )
      .flatMap(({ text }) => quoted(text).filter((code) => nouns.test(code)));
    expect(codes.length).toBeGreaterThan(15);
    expect([...new Set(codes)].filter((code) => !known(code))).toEqual([]);
  });
});
