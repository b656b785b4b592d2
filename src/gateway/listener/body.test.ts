import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BufferBudget } from '../buffer-budget.ts';
import { type BodyRefusal, readBody } from './body.ts';

/** What becomes of a body that comes in these pieces. */
function read(pieces: readonly Buffer[], bytesMax: number, budget: BufferBudget, whole = true) {
  const request = Object.assign(new EventEmitter(), { headers: {} });
  const got: (Buffer | BodyRefusal)[] = [];
  let release = () => {};
  readBody(request as unknown as IncomingMessage, bytesMax, budget, (result, giveBack) => {
    got.push(result);
    release = giveBack;
  });
  for (const piece of pieces) request.emit('data', piece);
  if (whole) request.emit('end');
  request.emit('close');
  return { got, release };
}

describe('readBody', () => {
  it('gives the bytes that came, in pieces of any size, and takes each from the budget once', () => {
    const piece = fc.oneof(
      { arbitrary: fc.uint8Array({ minLength: 1, maxLength: 3 }), weight: 5 },
      fc.uint8Array({ minLength: 1000, maxLength: 1100 }),
      fc.uint8Array({ minLength: 16_000, maxLength: 17_000, size: 'max' }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (arrays) => {
        const pieces = arrays.map((array) => Buffer.from(array));
        const bytes = Buffer.concat(pieces);
        const budget = new BufferBudget();
        const { got, release } = read(pieces, bytes.length, budget);
        expect(got).toEqual([bytes]);
        expect(budget.held).toBe(bytes.length);
        release();
        release();
        expect(budget.held).toBe(0);
      }),
    );
  });

  it('keeps few objects of a body that comes a byte at a time', () => {
    const kept: WeakRef<Buffer>[] = [];
    const pieces = Array.from({ length: 50_000 }, (_, i) => Buffer.from([i & 0xff]));
    const concat = Buffer.concat;
    try {
      Buffer.concat = ((list: readonly Buffer[]) => {
        for (const each of list) kept.push(new WeakRef(each));
        return concat(list);
      }) as typeof Buffer.concat;
      const { got } = read(pieces, 50_000, new BufferBudget());
      expect((got[0] as Buffer).equals(concat(pieces))).toBe(true);
    } finally {
      Buffer.concat = concat;
    }
    expect(kept.length).toBeLessThan(10);
  });

  it.each([
    ['too-large', 10, 100],
    ['no-room', 100, 10],
  ] as const)('says %s once, and holds nothing', (why, bytesMax, room) => {
    const budget = new BufferBudget();
    budget.bytesMax = room;
    const pieces = Array.from({ length: 20 }, () => Buffer.from('ab'));
    expect(read(pieces, bytesMax, budget).got).toEqual([why]);
    expect(budget.held).toBe(0);
  });

  it('says nothing when the caller leaves, and holds nothing', () => {
    const budget = new BufferBudget();
    expect(read([Buffer.from('ab')], 10, budget, false).got).toEqual([]);
    expect(budget.held).toBe(0);
  });
});
