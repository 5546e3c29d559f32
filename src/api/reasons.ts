/**
 * Machine-readable reasons: the same string stands in the condition, the event, the log and `status.queue`.
 */

/** Why a Pod of the queue waits. */
export const WaitReason = {
  /** Another Pod holds the lock, or earlier waiters come first. */
  Waiting: 'Waiting',
  /** The named DistributedLock does not exist in the Pod's namespace. */
  LockNotFound: 'LockNotFound',
  /** The lock is being deleted. */
  LockDeleting: 'LockDeleting',
  /** The Pod was created before kilit was installed, or past its policies: it has no sidecar and no gate. */
  NotInjected: 'NotInjected',
  /** No node yet. */
  NotScheduled: 'NotScheduled',
  /** Its kubelet lacks what the gate rests on. */
  NodeTooOld: 'NodeTooOld',
  /** Its node is not Ready, or unknown. */
  NodeNotReady: 'NodeNotReady',
  /** Its sidecar does not run: image pull, start, or back-off after losses. */
  SidecarNotRunning: 'SidecarNotRunning',
  /** The Pod is being deleted. */
  Terminating: 'Terminating',
  /** The operator gives no grants at present; the condition `Ready` of the lock says why. */
  GrantsPaused: 'GrantsPaused',
  /** An earlier holder may still be alive: its lease has to run out first. */
  PreviousHolder: 'PreviousHolder',
} as const;
export type WaitReason = (typeof WaitReason)[keyof typeof WaitReason];

/** Reasons of the condition `Ready`. */
export const ReadyReason = {
  /** The lock's objects exist and the token rule is enforced. */
  Ready: 'Ready',
  /** Lease, Role or RoleBinding are being made. */
  Provisioning: 'Provisioning',
  /** The API server accepted a write that the Lease policy must refuse: its binding is missing. */
  PolicyNotEnforced: 'PolicyNotEnforced',
  /** The annotation with the token base is no decimal integer below 10^16. */
  TokenBaseInvalid: 'TokenBaseInvalid',
  /** The cluster's revision is lower than it was: a token could come again. The message says which token base mends it. */
  RevisionFellBehind: 'RevisionFellBehind',
  /** The Lease carries no valid token: somebody wrote it past the policy. */
  LeaseInvalid: 'LeaseInvalid',
  /** The operator could not write; the message carries the API server's answer. It tries again by itself. */
  WriteFailed: 'WriteFailed',
  /** The lock is being deleted. */
  Deleting: 'Deleting',
} as const;
export type ReadyReason = (typeof ReadyReason)[keyof typeof ReadyReason];

/** Reasons of the condition `Held`. */
export const HeldReason = {
  /** Granted, and not yet confirmed by the holder's sidecar. */
  Granted: 'Granted',
  /** The holder's sidecar has confirmed the grant. */
  Confirmed: 'Confirmed',
  /**
   * The holder has not renewed in time, and by `takeover: PodGone` the lock waits for the end of its Pod; or by
   * `onRenewalFailure: ContinueFenced` it may go on as long as nobody waits.
   */
  HolderSilent: 'HolderSilent',
  /** The operator has asked the holder to yield; it holds until its programs have ended. */
  YieldAsked: 'YieldAsked',
  /** An administrator broke the grant; its holder may still be alive, and nobody else is granted the lock yet. */
  Broken: 'Broken',
  /** Nobody holds the lock. */
  Free: 'Free',
  /** The Lease is gone or was made anew; an earlier holder may still be alive. */
  PreviousHolder: 'PreviousHolder',
} as const;
export type HeldReason = (typeof HeldReason)[keyof typeof HeldReason];

/** Why the operator ended a grant. The commonest end is none of these: the holder's sidecar releases it by itself. */
export const EndReason = {
  /** The kubelet reported every container of the holder as ended. */
  ConfirmedDeath: 'ConfirmedDeath',
  /** The holder did not renew for the lease duration and the takeover delay. */
  Expired: 'Expired',
  /** The holder's sidecar did not confirm the grant in time; no program was started. */
  NotConfirmed: 'NotConfirmed',
  /** The lock was deleted. */
  LockDeleted: 'LockDeleted',
  /** An administrator broke the grant, and its holder has been stopped since. */
  Broken: 'Broken',
} as const;
export type EndReason = (typeof EndReason)[keyof typeof EndReason];

/** Why the operator asks a holder to yield; the value of the annotation `kilit.dev/yield`. */
export const YieldReason = {
  /** A Pod of the same workload with a newer template waits: a rolling update. */
  NewerRevision: 'NewerRevision',
  /** The holder's node is cordoned, and a Pod on another node waits: a drain. */
  NodeDrain: 'NodeDrain',
  /** No program of the holder has run within `startDeadlineSeconds`: bad image, crash loop. */
  NotStarted: 'NotStarted',
  /** It has held for `maxHoldSeconds`, and another waits. */
  MaxHold: 'MaxHold',
  /** An administrator asked for it. */
  Requested: 'Requested',
} as const;
export type YieldReason = (typeof YieldReason)[keyof typeof YieldReason];

/** Reasons of events on locks and Pods, besides the ones above. */
export const EventReason = {
  Queued: 'Queued',
  Granted: 'Granted',
  Lost: 'Lost',
  /** The holder could not renew by its deadline and goes on behind its guard (`onRenewalFailure: ContinueFenced`). */
  Unrenewed: 'Unrenewed',
  /** It could renew again; nobody had taken the lock over. */
  Renewed: 'Renewed',
  /** The holder was asked to yield. */
  YieldAsked: 'YieldAsked',
  /** The holder yielded, and waits again. */
  Yielded: 'Yielded',
  /** An administrator broke the grant. */
  Broken: 'Broken',
  /** The holder was asked to yield, because an administrator wanted it. */
  HandedOver: 'HandedOver',
  /** An administrator's request was taken off the lock and not carried out. */
  RequestDropped: 'RequestDropped',
} as const;
