import type { DistributedLock, DistributedLockStatus } from '../api/generated/distributedlock.ts';
import { BREAK_ANNOTATION, HANDOVER_ANNOTATION, LOCK_FINALIZER } from '../api/names.ts';
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
  readonly spec: Omit<Terms, 'gracePeriodSeconds'> & {
    readonly startDeadlineSeconds: number;
    /** `undefined`: as long as the holder likes. */
    readonly maxHoldSeconds: number | undefined;
  };
  /** What administrators ask, as it stands in the annotations. */
  readonly requests: { readonly break: string | undefined; readonly handover: string | undefined };
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
      startDeadlineSeconds: spec?.startDeadlineSeconds ?? DEFAULT_START_DEADLINE_SECONDS,
      maxHoldSeconds: spec?.maxHoldSeconds,
    },
    requests: {
      break: metadata.annotations?.[BREAK_ANNOTATION],
      handover: metadata.annotations?.[HANDOVER_ANNOTATION],
    },
    status: status ?? {},
  };
}

const DEFAULT_START_DEADLINE_SECONDS = 60;

export const hasFinalizer = (lock: LockView): boolean => lock.finalizers.includes(LOCK_FINALIZER);
