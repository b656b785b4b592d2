import { expect, it } from 'vitest';
import { Rounds } from './rounds.ts';

/** Rounds whose computations end when they are told to. */
function rig() {
  const rounds = new Rounds(32);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const compute = (name: string) => (tokens: number) => {
    begun.push(`${name} ${tokens}`);
    return new Promise<string>((end) => {
      ends.set(name, () => end(name));
    });
  };
  const turn = async () => {
    for (let i = 0; i < 4; i++) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { rounds, begun, ends, compute, turn };
}

it('begins nothing while others compute, and then all who have come, sharing what a batch takes', async () => {
  const { rounds, begun, ends, compute, turn } = rig();
  void rounds.read(compute('a'));
  await turn();
  expect(begun).toEqual(['a 32']);
  void rounds.read(compute('b'));
  void rounds.read(compute('c'));
  const drawn = rounds.draw({
    next: async () => ({ done: false, value: await compute('d')(1) }),
  });
  void drawn.next();
  await turn();
  expect(begun).toEqual(['a 32']);
  ends.get('a')!();
  await turn();
  expect(begun).toEqual(['a 32', 'b 15', 'c 15', 'd 1']);
});

it('waits for all of a round', async () => {
  const { rounds, begun, ends, compute, turn } = rig();
  void rounds.read(compute('a'));
  void rounds.read(compute('b'));
  await turn();
  void rounds.read(compute('c'));
  ends.get('a')!();
  await turn();
  expect(begun).toEqual(['a 16', 'b 16']);
  ends.get('b')!();
  await turn();
  expect(begun).toEqual(['a 16', 'b 16', 'c 32']);
});

it('goes on after a failure, and gives the last token and the end', async () => {
  const { rounds } = rig();
  await expect(rounds.read(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  let ended = false;
  async function* three() {
    try {
      yield* [1, 2, 3];
    } finally {
      ended = true;
    }
  }
  const got: number[] = [];
  for await (const each of rounds.draw(three())) {
    got.push(each);
    if (each === 2) break;
  }
  expect(got).toEqual([1, 2]);
  expect(ended).toBe(true);
  const all: number[] = [];
  for await (const each of rounds.draw(three())) all.push(each);
  expect(all).toEqual([1, 2, 3]);
});
