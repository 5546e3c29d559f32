import { type Clock, systemClock } from '../leader-election/index.ts';

export interface WorkqueueOptions<Key extends string> {
  /** Works on one key. What it throws brings the key back after a back-off; a return makes earlier failures forgotten. */
  readonly process: (key: Key) => Promise<void>;
  /** How many keys are worked on at the same time. */
  readonly concurrency: number;
  readonly clock?: Pick<Clock, 'monotonicSeconds' | 'setTimer'>;
  /** From 0 up to 1, as `Math.random`. */
  readonly random?: () => number;
  /** The back-off after the first failure, in seconds; it doubles with each further one. @default 0.1 */
  readonly firstBackoffSeconds?: number;
  /** @default 60 */
  readonly longestBackoffSeconds?: number;
  /** How many keys the queue knows at most. @default 100000 */
  readonly mostKeys?: number;
  /** Hears of every failure. */
  readonly failed?: (failure: { key: Key; err: unknown; failures: number; retryAfterSeconds: number }) => void;
}

/** Keys that wait for work. A key is never worked on twice at the same time. */
export interface Workqueue<Key extends string = string> {
  /**
   * Wants the key worked on, now or after what runs: a key added while it is worked on is worked on once more.
   *
   * Returns `false` when the queue has stopped or is full; a key that it knows already always finds room.
   */
  add(key: Key): boolean;
  /** As `add`, but not before `seconds` (at most a day) have passed. Of several wishes for one key the earliest counts. */
  addAfter(key: Key, seconds: number): boolean;
  /** Keys that could be worked on now, were there a worker. */
  depth(): number;
  /** How long the first of them has waited, in seconds; 0 if there is none. */
  oldestAgeSeconds(): number;
  /** How long the longest work has been going on, in seconds; 0 if there is none. */
  longestWorkSeconds(): number;
  /** Resolves after the signal has aborted and all running work has ended. What still waits is dropped. */
  readonly stopped: Promise<void>;
}

/** What the queue knows of a key. It forgets a key that is neither wanted nor worked on. */
interface Entry {
  failures: number;
  startedAt?: number | undefined;
  /** Added while it was worked on. */
  isWantedAgain: boolean;
  delay?: { readonly dueAt: number; readonly cancel: () => void } | undefined;
}

/**
 * A queue for level-based work: it stores that a key needs work, never why.
 *
 * Keys are begun in the order in which they became ready. In memory only: after a restart every key is added anew.
 */
export function createWorkqueue<Key extends string>(
  options: WorkqueueOptions<Key>,
  signal: AbortSignal,
): Workqueue<Key> {
  const { process, concurrency, clock = systemClock, random = Math.random, mostKeys = 100_000, failed } = options;
  const { firstBackoffSeconds = 0.1, longestBackoffSeconds = 60 } = options;
  if (!(concurrency >= 1)) throw new RangeError(`concurrency must be at least 1, got ${concurrency}`);
  const entries = new Map<Key, Entry>();
  /** Ready keys in order, and since when each is ready. */
  const ready = new Map<Key, number>();
  const working = new Set<Key>();
  const stopped = Promise.withResolvers<void>();

  function entryOf(key: Key): Entry | undefined {
    const known = entries.get(key);
    if (signal.aborted || known !== undefined || entries.size >= mostKeys) return signal.aborted ? undefined : known;
    const entry: Entry = { failures: 0, isWantedAgain: false };
    entries.set(key, entry);
    return entry;
  }

  function add(key: Key): boolean {
    const entry = entryOf(key);
    if (entry === undefined) return false;
    cancelDelay(entry);
    if (working.has(key)) entry.isWantedAgain = true;
    else if (!ready.has(key)) ready.set(key, clock.monotonicSeconds());
    startWork();
    return true;
  }

  function addAfter(key: Key, seconds: number): boolean {
    if (!(seconds > 0)) return add(key);
    const entry = entryOf(key);
    if (entry === undefined) return false;
    const wait = Math.min(seconds, LONGEST_DELAY_SECONDS);
    const dueAt = clock.monotonicSeconds() + wait;
    if (ready.has(key) || entry.isWantedAgain || (entry.delay && entry.delay.dueAt <= dueAt)) return true;
    cancelDelay(entry);
    entry.delay = { dueAt, cancel: clock.setTimer(wait, () => add(key)) };
    return true;
  }

  function startWork(): void {
    for (const key of ready.keys()) {
      if (working.size >= concurrency) return;
      ready.delete(key);
      working.add(key);
      void work(key, entries.get(key) as Entry);
    }
  }

  async function work(key: Key, entry: Entry): Promise<void> {
    entry.startedAt = clock.monotonicSeconds();
    try {
      await process(key);
      entry.failures = 0;
    } catch (err) {
      entry.failures += 1;
      const retryAfterSeconds = backoffSeconds(entry.failures);
      addAfter(key, retryAfterSeconds);
      failed?.({ key, err, failures: entry.failures, retryAfterSeconds });
    }
    entry.startedAt = undefined;
    working.delete(key);
    if (signal.aborted) return stopWhenIdle();
    if (entry.isWantedAgain) {
      entry.isWantedAgain = false;
      add(key);
    } else if (entry.delay === undefined) entries.delete(key);
    startWork();
  }

  /** From half of the full back-off up to all of it, so that keys that failed together come back apart. */
  function backoffSeconds(failures: number): number {
    const full = Math.min(firstBackoffSeconds * 2 ** (failures - 1), longestBackoffSeconds);
    return full * (0.5 + 0.5 * random());
  }

  function stop(): void {
    for (const entry of entries.values()) cancelDelay(entry);
    ready.clear();
    stopWhenIdle();
  }

  function stopWhenIdle(): void {
    if (working.size === 0) stopped.resolve();
  }

  if (signal.aborted) stop();
  else signal.addEventListener('abort', stop, { once: true });

  const ageSeconds = (since: number | undefined) => (since === undefined ? 0 : clock.monotonicSeconds() - since);
  return {
    add,
    addAfter,
    depth: () => ready.size,
    oldestAgeSeconds: () => ageSeconds(ready.values().next().value),
    longestWorkSeconds: () => Math.max(0, ...[...working].map((key) => ageSeconds(entries.get(key)?.startedAt))),
    stopped: stopped.promise,
  };
}

function cancelDelay(entry: Entry): void {
  entry.delay?.cancel();
  entry.delay = undefined;
}

const LONGEST_DELAY_SECONDS = 86_400;
