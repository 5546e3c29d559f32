/** A scheduler whose time moves only from event to event. After each event every promise that can settle has settled. */
export interface VirtualTime {
  /** Seconds. */
  now(): number;
  at(seconds: number, fire: () => void): () => void;
  after(seconds: number, fire: () => void): () => void;
  /** Runs the next event, unless there is none up to `untilSeconds`. */
  step(untilSeconds: number): Promise<boolean>;
  /** Runs all events up to `untilSeconds`; `check` runs after each. */
  runUntil(untilSeconds: number, check?: () => void): Promise<void>;
}

export function createVirtualTime(): VirtualTime {
  const events = new Set<{ readonly seconds: number; readonly fire: () => void }>();
  let now = 0;

  function earliest() {
    let first: { readonly seconds: number; readonly fire: () => void } | undefined;
    for (const event of events) {
      if (first === undefined || event.seconds < first.seconds) first = event;
    }
    return first;
  }

  function at(seconds: number, fire: () => void): () => void {
    const event = { seconds: Math.max(seconds, now), fire };
    events.add(event);
    return () => events.delete(event);
  }

  async function step(untilSeconds: number): Promise<boolean> {
    const event = earliest();
    if (event === undefined || event.seconds > untilSeconds) return false;
    events.delete(event);
    now = event.seconds;
    event.fire();
    await settle();
    return true;
  }

  return {
    now: () => now,
    at,
    after: (seconds, fire) => at(now + seconds, fire),
    step,
    async runUntil(untilSeconds, check) {
      await settle();
      while (await step(untilSeconds)) check?.();
      now = untilSeconds;
      check?.();
    },
  };
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** mulberry32: a small seeded generator, from 0 up to 1. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
