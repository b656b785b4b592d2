import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Chain, type Link } from './chain.ts';

function itemsOf(chain: Chain<number>): number[] {
  const items: number[] = [];
  for (let link = chain.first; link; link = link.after) items.push(link.item);
  return items;
}

test('keeps the order of a list, whoever leaves', () => {
  const acts = fc.array(fc.oneof(fc.constant(undefined), fc.nat(30)), { maxLength: 200 });
  fc.assert(
    fc.property(acts, (all) => {
      const chain = new Chain<number>();
      const links: Link<number>[] = [];
      const list: number[] = [];
      all.forEach((leaving, number) => {
        const link = leaving === undefined ? undefined : links[leaving];
        if (leaving === undefined) {
          links.push(chain.push(number));
          list.push(number);
        } else if (link) {
          expect(chain.remove(link)).toBe(list.includes(link.item));
          if (list.includes(link.item)) list.splice(list.indexOf(link.item), 1);
        }
        expect(itemsOf(chain)).toEqual(list);
        expect([chain.length, chain.last?.item]).toEqual([list.length, list.at(-1)]);
      });
    }),
  );
});

test('leaves alone what another chain holds', () => {
  const [one, other] = [new Chain<number>(), new Chain<number>()];
  const link = one.push(1);
  expect(other.remove(link)).toBe(false);
  expect(one.length).toBe(1);
});
