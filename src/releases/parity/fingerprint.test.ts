import { expect, test } from 'vitest';
import { canonical, changeSince } from './fingerprint.ts';

const server = (version: string, batch: number, more = {}) =>
  canonical({ '/v2': { version, ...more }, '/v2/models/m/config': { max_batch_size: batch } });

test('what has changed is named, and not all that an endpoint tells', () => {
  const then = { settings: { hardware: 'h100' }, told: [server('1.0', 8), server('2.0', 8)] };
  expect(changeSince(then, { hardware: 'h100' }, [server('2.0', 8)])).toBeUndefined();
  expect(changeSince(then, { hardware: 'h200' }, [])).toBe('hardware was "h100" and is "h200"');
  expect(changeSince(then, {}, [])).toBe('hardware was "h100" and is nothing');
  expect(changeSince(then, { hardware: 'h100' }, [server('2.0', 16)])).toBe(
    'of what an endpoint tells of itself, /v2/models/m/config.max_batch_size was 8 and is 16',
  );
  const much = server('2.0', 8, { a: 1, b: 2, c: 3, d: 4 });
  expect(changeSince(then, { hardware: 'h100' }, [much])).toBe(
    'of what an endpoint tells of itself, /v2.a was nothing and is 1, /v2.b was nothing and is 2, /v2.c was nothing and is 3, and 1 more',
  );
  expect(changeSince({ ...then, told: [] }, { hardware: 'h100' }, ['{}'])).toContain('told nothing then');
});
