import type { Action } from './actions.ts';
import { lapseMs } from './lease.ts';
import { hasFinalizer, type LockView } from './lock.ts';
import { type Decision, type Now, type Observed, secondsText } from './observed.ts';
import { decidePodFinalizer } from './pod-finalizer.ts';
import { waiters } from './queue.ts';
import { lockStatus, statusDiffers } from './status.ts';
import { earlierGrant, judgeTenure } from './tenure.ts';

/**
 * Deletes a lock without leaving its last holder behind.
 *
 * ```
 *   status names the holder ──▶ Lease deleted: the sidecar stops its programs ──▶ death or lapse ──▶ finalizer removed
 * ```
 * The terms of the grant stand in the status before the Lease goes, so that an operator that restarts in between still
 * knows for whom to wait.
 */
export function decideDeletion(lock: LockView, observed: Observed, now: Now): Decision {
  const { lease } = observed;
  // Somebody else's finalizer keeps the object of the lock; it waits for nobody any more.
  if (!hasFinalizer(lock)) return { actions: freePods(undefined, observed), recheckAt: undefined };
  const tenure = lease === undefined ? undefined : judgeTenure(lease, { ...observed, lock }, now.instant);
  const queue = waiters(observed.pods, observed.nodes, tenure?.kind === 'held' ? tenure.holder.uid : undefined);
  const status = lockStatus({
    ...observed,
    lock,
    tenure,
    queue,
    requests: { break: { kind: 'none' }, handover: { kind: 'none' } },
    provisioned: true,
    nowText: secondsText(now.micros),
  });
  const writeStatus: Action[] = statusDiffers(lock, status) ? [{ kind: 'WriteStatus', lock, status }] : [];

  const freed = freePods(lock, observed);

  if (lease !== undefined && tenure !== undefined) {
    if (writeStatus.length > 0) return { actions: [...writeStatus, ...freed], recheckAt: undefined };
    // A broken holder is in no status: the Lease that knows of it stays until it is stopped.
    if (tenure.kind === 'broken') return { actions: freed, recheckAt: tenure.until };
    return { actions: [{ kind: 'DeleteLease', lock, lease }, ...freed], recheckAt: undefined };
  }

  const until = stillAliveUntil(lock, observed);
  if (until !== undefined && now.instant < until) {
    return { actions: [...writeStatus, ...freed], recheckAt: Number.isFinite(until) ? until : undefined };
  }
  return { actions: [{ kind: 'RemoveFinalizer', lock }, ...freed], recheckAt: undefined };
}

/** Takes the finalizers from the Pods that neither Lease nor status nor a mark names as the last holder. */
const freePods = (lock: LockView | undefined, { lease, pods }: Observed): readonly Action[] =>
  pods.flatMap((pod) =>
    decidePodFinalizer(pod, { lock, lease, grantee: undefined, leaseLost: lease === undefined || lease.token === 0n }),
  );

/** Until when the last holder may write (infinity: until its death is confirmed), or undefined if there is none or it is dead. */
function stillAliveUntil(lock: LockView, observed: Observed): number | undefined {
  const { holder } = lock.status;
  if (holder === undefined || observed.lastSeen(holder.uid)?.confirmedDead) return undefined;
  const earlier = earlierGrant({ ...observed, lock });
  if (earlier === undefined) return undefined;
  if (earlier.untilDeath) return Number.POSITIVE_INFINITY;
  return observed.leaseAbsentSince + lapseMs(earlier.terms, observed.lastSeen(holder.uid));
}
