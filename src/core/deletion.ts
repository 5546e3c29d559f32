import type { Action } from './actions.ts';
import { lapseMs } from './lease.ts';
import { hasFinalizer, type LockView } from './lock.ts';
import { type Decision, type Now, type Observed, secondsText } from './observed.ts';
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
  if (!hasFinalizer(lock)) return { actions: [], recheckAt: undefined };
  const { lease } = observed;
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

  if (lease !== undefined && tenure !== undefined) {
    if (writeStatus.length > 0) return { actions: writeStatus, recheckAt: undefined };
    // A broken holder is in no status: the Lease that knows of it stays until it is stopped.
    if (tenure.kind === 'broken') return { actions: [], recheckAt: tenure.until };
    return { actions: [{ kind: 'DeleteLease', lock, lease }], recheckAt: undefined };
  }

  const until = stillAliveUntil(lock, observed);
  if (until !== undefined && now.instant < until) return { actions: writeStatus, recheckAt: until };
  return { actions: [{ kind: 'RemoveFinalizer', lock }], recheckAt: undefined };
}

/** Until when the last holder may write, or undefined if there is none or it is dead. */
function stillAliveUntil(lock: LockView, observed: Observed): number | undefined {
  const { holder } = lock.status;
  if (holder === undefined) return undefined;
  const terms = earlierGrant({ ...observed, lock });
  if (terms === undefined) return undefined;
  return observed.leaseAbsentSince + lapseMs(terms, observed.lastSeen(holder.uid));
}
