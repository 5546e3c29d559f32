import type { DistributedLockStatus } from '../api/generated/distributedlock.ts';
import type { EndReason, EventReason, WaitReason, YieldReason } from '../api/reasons.ts';
import type { Holder, LeaseView, Terms } from './lease.ts';
import type { LockView } from './lock.ts';
import type { PodView } from './pod.ts';
import type { AdminRequest, RequestKind } from './requests.ts';
import type { FencingToken } from './token.ts';

/**
 * One write to the API server, so one place to crash.
 *
 * Each carries the object as it was observed: its UID and revision are the write's preconditions.
 */
export type Action =
  | { readonly kind: 'AddFinalizer'; readonly lock: LockView }
  | { readonly kind: 'RemoveFinalizer'; readonly lock: LockView }
  | { readonly kind: 'PutRole'; readonly lock: LockView }
  | { readonly kind: 'PutRoleBinding'; readonly lock: LockView }
  | { readonly kind: 'CreateLease'; readonly lock: LockView }
  /** The Lease outlived a lock of the same name: it becomes this lock's, with its holder and its token. */
  | { readonly kind: 'AdoptLease'; readonly lock: LockView; readonly lease: LeaseView }
  /** Changes nothing that anybody reads: only the revision of a free Lease, which its next token is reckoned from. */
  | { readonly kind: 'RefreshLease'; readonly lock: LockView; readonly lease: LeaseView }
  | { readonly kind: 'DeleteLease'; readonly lock: LockView; readonly lease: LeaseView }
  | Grant
  | { readonly kind: 'Free'; readonly lock: LockView; readonly lease: LeaseView; readonly ended: Ended }
  | AskYield
  /** Moves the token on, so that the holder of the broken grant is stopped and refused by every guard. */
  | {
      readonly kind: 'Break';
      readonly lock: LockView;
      readonly lease: LeaseView;
      readonly token: FencingToken;
      readonly holder: Holder;
      readonly request: AdminRequest;
    }
  /** Takes an administrator's request off its lock. `why`: because it cannot be carried out. */
  | {
      readonly kind: 'DropRequest';
      readonly lock: LockView;
      readonly request: RequestKind;
      readonly why: string | undefined;
    }
  /** Shows the grant on the holder's Pod and takes its place in the queue away. */
  | {
      readonly kind: 'MarkHolder';
      readonly pod: PodView;
      readonly token: FencingToken;
      /** No program of it has started under this grant. */
      readonly notStarted: boolean;
    }
  /** Removes what an ended grant left on a Pod. */
  | { readonly kind: 'Unmark'; readonly pod: PodView }
  /** Gives a Pod the last place in the queue, and removes what an ended grant left on it. */
  | {
      readonly kind: 'JoinQueue';
      readonly pod: PodView;
      readonly lock: LockView | undefined;
      readonly queuedAt: bigint;
      /** It yielded because no program of it had started. */
      readonly notStarted: boolean;
      readonly reason: WaitReason | typeof EventReason.Queued | typeof EventReason.Lost | typeof EventReason.Yielded;
      readonly message: string;
    }
  /** Before a grant under `takeover: PodGone`: from then on the Pod's object stays until its end was seen. */
  | { readonly kind: 'AddPodFinalizer'; readonly pod: PodView }
  | { readonly kind: 'RemovePodFinalizer'; readonly pod: PodView }
  | { readonly kind: 'WriteStatus'; readonly lock: LockView; readonly status: DistributedLockStatus };

export interface Grant {
  readonly kind: 'Grant';
  readonly lock: LockView;
  readonly lease: LeaseView;
  readonly pod: PodView;
  readonly token: FencingToken;
  readonly terms: Terms;
  readonly ended: Ended | undefined;
}

/** Asks the holder to stop its programs and to give the lock back. It may be gone before it hears of it. */
export interface AskYield {
  readonly kind: 'AskYield';
  readonly lock: LockView;
  readonly lease: LeaseView;
  readonly holder: Holder;
  readonly reason: YieldReason;
  /** The waiter on whose account it is asked. */
  readonly by: PodView | undefined;
  /** Of an administrator. */
  readonly request: AdminRequest | undefined;
}

/** The grant that this write ends. */
export interface Ended {
  readonly holder: Holder;
  readonly reason: EndReason;
}
