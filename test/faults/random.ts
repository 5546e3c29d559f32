/** A run's choices, all from its seed. */
import { randomFrom } from '../guards/postgres/torture/random.ts';

export interface Random {
  /** A whole number of `from` to `to`, both included. */
  between(from: number, to: number): number;
  pick<T>(items: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
}

export function seeded(seed: number): Random {
  const next = randomFrom(seed);
  const between = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  return {
    between,
    pick: (items) => {
      const item = items[between(0, items.length - 1)];
      if (item === undefined) throw new Error('Nothing to pick from');
      return item;
    },
    shuffle: (items) =>
      items
        .map((item) => ({ item, order: next() }))
        .toSorted((a, b) => a.order - b.order)
        .map(({ item }) => item),
  };
}

/** Goes through all items in a new order each time, so that after n rounds each has had n turns. */
export function bag<T>(items: readonly T[], random: Random): () => T {
  let left: T[] = [];
  return () => {
    if (left.length === 0) left = random.shuffle(items);
    const item = left.pop();
    if (item === undefined) throw new Error('The bag is empty');
    return item;
  };
}
