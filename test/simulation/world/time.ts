interface Entry {
  readonly at: number;
  readonly order: number;
  fire: (() => void) | undefined;
}

/**
 * The one queue of all that will happen, in milliseconds. Time moves from event to event only.
 *
 * After each event every promise that can settle has settled: Node runs `nextTick` callbacks that were asked for during
 * the microtasks only when no microtask is left. So the order of everything follows from the seed.
 */
export class VirtualTime {
  #now = 0;
  #order = 0;
  readonly #heap: Entry[] = [];
  /** How many events have happened. */
  events = 0;

  now(): number {
    return this.#now;
  }

  at(ms: number, fire: () => void): () => void {
    const entry: Entry = { at: Math.max(ms, this.#now), order: this.#order++, fire };
    this.#push(entry);
    return () => {
      entry.fire = undefined;
    };
  }

  after(ms: number, fire: () => void): () => void {
    return this.at(this.#now + ms, fire);
  }

  /** Runs all events up to `untilMs`, or until `stop` says so after one of them. */
  async run(untilMs: number, stop: () => boolean): Promise<void> {
    await settled();
    for (let next = this.#heap[0]; next !== undefined && next.at <= untilMs; next = this.#heap[0]) {
      this.#pop();
      const { fire } = next;
      if (fire === undefined) continue;
      this.#now = next.at;
      this.events += 1;
      fire();
      await settled();
      if (stop()) return;
    }
    this.#now = untilMs;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Entry;
      if (isBefore(above, entry)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Entry;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry, heap[child] as Entry)) child += 1;
      if (isBefore(last, heap[child] as Entry)) break;
      heap[at] = heap[child] as Entry;
      at = child;
    }
    heap[at] = last;
  }
}

const isBefore = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

const settled = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));
