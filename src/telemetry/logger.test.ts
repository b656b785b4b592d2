import { expect, test } from 'vitest';
import { readableLine } from './logger.ts';

test('a line is short, in words first, with its figures behind', () => {
  const line = JSON.stringify({
    level: 'warn',
    time: '2026-01-02T03:04:05.678Z',
    part: 'gateway-0',
    pid: 7,
    msg: 'endpoint unwell',
    endpoint: 'http://a',
    failures: 3,
  });
  expect(readableLine(line, false)).toBe(
    '03:04:05 warn  gateway-0  endpoint unwell  endpoint=http://a failures=3\n',
  );
  expect(readableLine(line, true)).toContain('\u001b[33mwarn ');
});
