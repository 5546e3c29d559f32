import type { DistributedLock, DistributedLockStatus } from '../api/generated/distributedlock.ts';
import { LOCK_FINALIZER } from '../api/names.ts';
import { DEFAULT_LEASE_DURATION_SECONDS, DEFAULT_TAKEOVER_DELAY_SECONDS, type Terms } from './lease.ts';

/** What the operator keeps of a DistributedLock. */
export interface LockView {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation: number;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly spec: Omit<Terms, 'gracePeriodSeconds'>;
  readonly status: DistributedLockStatus;
}

export function lockView(lock: DistributedLock): LockView {
  const { metadata, spec, status } = lock;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    generation: metadata.generation ?? 0,
    deleting: metadata.deletionTimestamp !== undefined,
    finalizers: metadata.finalizers ?? [],
    spec: {
      leaseDurationSeconds: spec?.leaseDurationSeconds ?? DEFAULT_LEASE_DURATION_SECONDS,
      takeoverDelaySeconds: spec?.takeoverDelaySeconds ?? DEFAULT_TAKEOVER_DELAY_SECONDS,
      takeover: spec?.takeover ?? 'Lease',
      onRenewalFailure: spec?.onRenewalFailure ?? 'Stop',
    },
    status: status ?? {},
  };
}

export const hasFinalizer = (lock: LockView): boolean => lock.finalizers.includes(LOCK_FINALIZER);
