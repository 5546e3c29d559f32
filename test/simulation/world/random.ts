/** Randomness of one run: everything that is random is drawn from a stream that the seed and a name determine. */
export interface Random {
  /** From 0 up to 1. */
  readonly next: () => number;
  readonly between: (low: number, high: number) => number;
  /** A whole number, both ends included. */
  readonly int: (low: number, high: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(choices: readonly T[]) => T;
  /** A stream of its own, so that more draws here change nothing there. */
  readonly fork: (name: string) => Random;
}

export function createRandom(seed: number, name = ''): Random {
  const next = mulberry32(hash(seed, name));
  return {
    next,
    between: (low, high) => low + (high - low) * next(),
    int: (low, high) => low + Math.floor((high - low + 1) * next()),
    chance: (probability) => next() < probability,
    pick: <T>(choices: readonly T[]) => choices[Math.floor(next() * choices.length)] as T,
    fork: (child) => createRandom(seed, `${name}/${child}`),
  };
}

function hash(seed: number, text: string): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  for (let i = 0; i < text.length; i += 1) mixed = Math.imul(mixed ^ text.charCodeAt(i), 0x01000193) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0xc2b2ae35) >>> 0;
  return (mixed ^ (mixed >>> 13)) >>> 0;
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
