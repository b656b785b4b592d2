import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Heap } from './heap.ts';

test('knows the first, whoever comes, leaves or changes', () => {
  const act = fc.record({
    kind: fc.constantFrom('add', 'add', 'remove', 'change'),
    at: fc.nat(50),
    value: fc.nat(100),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
      const heap = new Heap<{ slot: number; value: number }>((a, b) => a.value < b.value);
      const held: { slot: number; value: number }[] = [];
      for (const { kind, at, value } of acts) {
        const item = held[at];
        if (kind === 'add') {
          const added = { slot: -1, value };
          held.push(added);
          heap.add(added);
        } else if (item && kind === 'change') {
          item.value = value;
          heap.changed(item);
        } else if (item) {
          heap.remove(item);
          expect(item.slot).toBe(-1);
          held.splice(at, 1);
        }
        expect(heap.items).toHaveLength(held.length);
        expect(heap.first?.value).toBe(
          held.length === 0 ? undefined : Math.min(...held.map((one) => one.value)),
        );
        for (const one of held) expect(heap.items[one.slot]).toBe(one);
      }
    }),
  );
});
