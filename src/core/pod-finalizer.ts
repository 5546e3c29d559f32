import { POD_FINALIZER } from '../api/names.ts';
import type { Action } from './actions.ts';
import type { LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { PodView } from './pod.ts';

export const hasPodFinalizer = (pod: PodView): boolean => pod.finalizers.includes(POD_FINALIZER);

interface Context {
  readonly lock: LockView | undefined;
  readonly lease: LeaseView | undefined;
  /** Who is granted the lock as soon as nothing more has to be done before. */
  readonly grantee: PodView | undefined;
  /** The Lease is missing or new, so that a mark on a Pod is evidence of an earlier grant. */
  readonly leaseLost: boolean;
}

/**
 * Puts the finalizer on a Pod that is about to be granted the lock, and takes it from every Pod that is not.
 *
 * ```
 *   next in line ──▶ finalizer ──▶ grant ──▶ end confirmed ──▶ Lease and status name it no more ──▶ finalizer removed
 * ```
 * The object is the proof of the end, so it stays until that end stands in the Lease *and* in the status: an operator that
 * stops at any point in between finds it again. Nothing that the finalizer waits for waits for the finalizer, so it goes
 * whenever the lock goes, its `takeover` changes, or the Pod is deleted before its grant.
 */
export function decidePodFinalizer(pod: PodView, context: Context): readonly Action[] {
  const isGrantee = mustHavePodFinalizer(context.lock) && context.grantee?.uid === pod.uid;
  if (!hasPodFinalizer(pod)) {
    return isGrantee || isBareHolder(pod, context) ? [{ kind: 'AddPodFinalizer', pod }] : [];
  }
  return isGrantee || isNamed(pod, context) ? [] : [{ kind: 'RemovePodFinalizer', pod }];
}

/** Whether this lock's next grant has to wait for the finalizer. */
export const mustHavePodFinalizer = (lock: LockView | undefined): boolean => lock?.spec.takeover === 'PodGone';

/** A former leader, paused before its write, may have taken the finalizer from a Pod that the present one had granted. */
const isBareHolder = (pod: PodView, { lease }: Context): boolean =>
  lease?.terms.takeover === 'PodGone' && lease.holder?.uid === pod.uid && !pod.deleting && !pod.confirmedDead;

function isNamed(pod: PodView, { lock, lease, leaseLost }: Context): boolean {
  const isMarked = pod.token !== undefined || pod.leader;
  return (
    lease?.holder?.uid === pod.uid ||
    lock?.status.holder?.uid === pod.uid ||
    (lock !== undefined && leaseLost && isMarked && !pod.confirmedDead)
  );
}
