import { type Clock, instant, systemClock } from './clock.ts';
import type { LockKey } from './observe.ts';
import type { PassResult } from './reconcile.ts';
import { createWorkqueue, type Workqueue } from './workqueue.ts';

/**
 * Makes passes over locks until `signal` aborts: for each key that is added, and again when a pass asks for it.
 *
 * A pass that wrote is followed by another, since there may be more to do; one that failed by one after a back-off.
 */
export function startPasses(
  deps: {
    readonly reconcile: (key: LockKey, signal: AbortSignal) => Promise<PassResult>;
    /** How many locks are passed over at the same time. */
    readonly workers: number;
    readonly clock?: Pick<Clock, 'monotonicSeconds' | 'setTimer'>;
    /** In [0, 1): spreads retries. */
    readonly random?: () => number;
  },
  signal: AbortSignal,
): Workqueue {
  const { reconcile, workers, clock = systemClock, random = Math.random } = deps;
  const process = async (key: LockKey): Promise<void> => {
    const { result, recheckAt, wrote } = await reconcile(key, signal);
    if (recheckAt !== undefined) queue.addAfter(key, Math.max(0, (recheckAt - instant(clock)) / 1000));
    if (result !== 'ok') throw new Error(result);
    if (wrote) queue.add(key);
  };
  const queue = createWorkqueue({ process, concurrency: workers, clock, random }, signal);
  return queue;
}
