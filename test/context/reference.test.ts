import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { compare } from './reference/compare.ts';

it('has the very tokens of the reference: bytes, pieces with bytes to fall back on, and pieces of words', async () => {
  const compared = await compare(fileURLToPath(new URL('reference/small', import.meta.url)));
  expect(compared).toEqual({ chats: 300, different: {}, first: undefined, below: 0 });
});
