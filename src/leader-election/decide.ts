import { longestElapsedSeconds, type Moment, shortestElapsedSeconds } from './clock.ts';
import type { LeaseRecord, LossReason, StoredLease } from './ports.ts';

/** Everything an elector knows when it decides. */
export interface ObservedElection {
  readonly identity: string;
  /** Stands in for a record of others that names a holder but no duration. */
  readonly leaseDurationSeconds: number;
  readonly renewDeadlineSeconds: number;
  /** What the last read showed; `undefined`: there is no Lease. */
  readonly lease: StoredLease | undefined;
  /** The last record that differed from the one before, and when this process saw it first. Survives a deletion. */
  readonly lastChange: { readonly record: LeaseRecord; readonly seenAt: Moment } | undefined;
  /** The acquireTime of the last attempt to acquire: it tells an own record whose reply was lost from a namesake's. */
  readonly lastAttempt: string | undefined;
  /** Present while leading. */
  readonly term: { readonly acquireTime: string; readonly renewSentAt: Moment } | undefined;
}

export type ElectionDecision =
  | { readonly kind: 'create' }
  | { readonly kind: 'acquire'; readonly lease: StoredLease }
  | { readonly kind: 'renew'; readonly lease: StoredLease }
  | { readonly kind: 'wait'; readonly holder: string }
  | { readonly kind: 'lose'; readonly reason: LossReason };

/**
 * Decides what follows from a read of the Lease.
 *
 * Pure. Nothing here extends a term: only the reply to a renewal does.
 *
 * Guarantees: a Lease that others hold is taken no earlier than its written duration after it was last seen to change.
 * Assumes: `now` and every `Moment` are readings of this process's clocks; times written by others are only compared for
 * equality.
 */
export function decideElection(observed: ObservedElection, now: Moment): ElectionDecision {
  return observed.term === undefined ? decideWaiting(observed, now) : decideLeading(observed, observed.term, now);
}

function decideLeading(
  { identity, lease, renewDeadlineSeconds }: ObservedElection,
  term: NonNullable<ObservedElection['term']>,
  now: Moment,
): ElectionDecision {
  if (deadlinePassed(term.renewSentAt, renewDeadlineSeconds, now)) return { kind: 'lose', reason: 'DeadlinePassed' };
  if (lease === undefined) return { kind: 'lose', reason: 'LeaseDeleted' };
  if (lease.record.holderIdentity !== identity) return { kind: 'lose', reason: 'OtherHolder' };
  if (lease.record.acquireTime !== term.acquireTime) return { kind: 'lose', reason: 'SharedIdentity' };
  return { kind: 'renew', lease };
}

function decideWaiting(observed: ObservedElection, now: Moment): ElectionDecision {
  const { lease, lastChange } = observed;
  // The holder of a deleted Lease may not know yet: whoever saw it held waits as if it were still there.
  const record = lease?.record ?? lastChange?.record;
  if (record !== undefined && !isOwn(observed, record) && !isOpen(observed, record, now)) {
    return { kind: 'wait', holder: record.holderIdentity };
  }
  return lease === undefined ? { kind: 'create' } : { kind: 'acquire', lease };
}

function isOpen({ lastChange, leaseDurationSeconds }: ObservedElection, record: LeaseRecord, now: Moment): boolean {
  if (record.holderIdentity === '') return true;
  if (lastChange === undefined) return false;
  const written = record.leaseDurationSeconds > 0 ? record.leaseDurationSeconds : leaseDurationSeconds;
  return shortestElapsedSeconds(now, lastChange.seenAt) >= written;
}

/** Whether this elector wrote the record, and not a namesake: its reply may have been lost, or its term has ended. */
export function isOwn(
  { identity, lastAttempt }: Pick<ObservedElection, 'identity' | 'lastAttempt'>,
  record: LeaseRecord,
): boolean {
  return record.holderIdentity === identity && record.acquireTime === lastAttempt;
}

/** Whether a renewal sent at `sentAt` no longer makes its sender the leader. */
export function deadlinePassed(sentAt: Moment, renewDeadlineSeconds: number, now: Moment): boolean {
  return longestElapsedSeconds(now, sentAt) >= renewDeadlineSeconds;
}

/** Whether two records are the same in every field, so that nobody wrote in between. */
export function sameRecord(a: LeaseRecord, b: LeaseRecord): boolean {
  return (
    a.holderIdentity === b.holderIdentity &&
    a.leaseDurationSeconds === b.leaseDurationSeconds &&
    a.acquireTime === b.acquireTime &&
    a.renewTime === b.renewTime &&
    a.leaseTransitions === b.leaseTransitions
  );
}
