// Generated from charts/kilit/files/crd.yaml by `npm run generate`. Do not edit.

/** The part of `metadata` that kilit reads; as in every Kubernetes object. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
}

/**
 * A named lock of a namespace: one Pod labelled `kilit.dev/lock: <name>` holds it at a time.
 *
 * Each grant carries a fencing token that is greater than every earlier one, also after the lock was deleted and
 * created again. Not promised: at most one *process* at every instant; a guarded resource refuses the late one by
 * its token.
 */
export interface DistributedLock {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  /** What is wished for. May be left out; each field has a default. */
  readonly spec: DistributedLockSpec;
  /** What was observed. Written by the operator only; the truth of who holds is the Lease `kilit.<name>`. */
  readonly status?: DistributedLockStatus;
}

/** What is wished for. May be left out; each field has a default. */
export interface DistributedLockSpec {
  /**
   * How long a grant lasts without a renewal, in seconds, from 5 to 3600.
   *
   * The holder renews every third of it and is stopped at nine tenths of it after its last good renewal was
   * sent. A change is taken over at the next grant. Same meaning as client-go's LeaseDuration.
   *
   * @default 15
   */
  readonly leaseDurationSeconds: number;
  /**
   * How long the operator waits after an *expired* lease before it grants again, in seconds, from 0 to 3600.
   *
   * Time for the kubelet to stop the former program. At least 2 seconds for each of the holder's containers and
   * 1 more are waited in any case. A confirmed death is not waited for. A change is taken over at the next grant.
   *
   * @default 5
   */
  readonly takeoverDelaySeconds: number;
  /**
   * What passes the lock on when its holder does not release it.
   *
   * `Lease`: the confirmed death of the holder, or an expired lease. `PodGone`: confirmed death alone; the Pod
   * keeps a finalizer meanwhile. A holder whose node never comes back then holds until an administrator breaks
   * the lock. A change is taken over at the next grant.
   *
   * @default Lease
   */
  readonly takeover: 'Lease' | 'PodGone';
  /**
   * What happens to the program when the holder cannot renew by its deadline.
   *
   * `Stop`: it is stopped. `ContinueFenced`: it goes on until somebody else is seen to hold the lock, or nobody;
   * two programs may run then, so only for programs whose every write is guarded by the token. A change is taken
   * over at the next grant.
   *
   * @default Stop
   */
  readonly onRenewalFailure: 'Stop' | 'ContinueFenced';
  /**
   * How long a holder may hold the lock without a running program before it is asked to yield, in seconds, from
   * 10 to 3600. Only while another Pod could be granted the lock.
   *
   * A running container counts, and a running init container behind the gate (a migration); a container that
   * ends within 30 seconds is a crash and does not. Such a Pod then takes the lock from nobody, but waits for
   * its turn. A change counts at once.
   *
   * @default 60
   */
  readonly startDeadlineSeconds: number;
  /**
   * How long a holder may hold the lock before it is asked to yield, in seconds, at least 10. Only while another
   * Pod could be granted the lock; without it a holder holds as long as it likes. A change counts at once.
   */
  readonly maxHoldSeconds?: number;
}

/** What was observed. Written by the operator only; the truth of who holds is the Lease `kilit.<name>`. */
export interface DistributedLockStatus {
  /** The `metadata.generation` that this status was made from. */
  readonly observedGeneration?: number;
  /**
   * `Ready`: the operator can grant this lock.
   * `Held`: some Pod holds it.
   */
  readonly conditions?: readonly LockCondition[];
  /** Who holds the lock. Absent while it is free. */
  readonly holder?: LockHolder;
  /**
   * The terms of the present or last grant. They stand until the next grant, whatever the spec says meanwhile, and
   * also when the Lease was deleted: they tell how long a lost holder must be waited for.
   */
  readonly terms?: LockTerms;
  /**
   * The fencing token of the present or last grant; a positive integer below 10^18 as a decimal string, `0` before
   * the first grant. Never falls. Never read it into a 64-bit float: above 2^53 it would silently change.
   */
  readonly fencingToken?: string;
  /** When the present holder was granted the lock. Absent while it is free. */
  readonly acquiredTime?: string;
  /** How many times the lock was granted. */
  readonly transitions?: number;
  /** The last grant that an administrator broke (annotation `kilit.dev/break`). */
  readonly lastBreak?: LockBreak;
  /** The last hand-over that an administrator asked for (annotation `kilit.dev/handover`). */
  readonly lastHandover?: LockHandover;
  /** How many Pods wait for the lock, also those that cannot be granted it now. */
  readonly waiters?: number;
  /** The first waiters, in the order in which they will be granted the lock. */
  readonly queue?: readonly LockWaiter[];
}

/** One observation about the lock, as in every Kubernetes API. */
export interface LockCondition {
  /** What is observed, in PascalCase. */
  readonly type: string;
  /** Whether it is so. */
  readonly status: 'True' | 'False' | 'Unknown';
  /** The `metadata.generation` that this condition was made from. */
  readonly observedGeneration?: number;
  /** When `status` last changed. */
  readonly lastTransitionTime: string;
  /** Why, as a PascalCase constant. */
  readonly reason: string;
  /** Why, as a sentence. */
  readonly message: string;
}

/** Who holds the lock. Absent while it is free. */
export interface LockHolder {
  /** The kind of the holder, `Pod`. */
  readonly kind: string;
  /** The holder's name, in the lock's namespace. */
  readonly name: string;
  /** The holder's UID. A Pod of the same name and another UID is another holder. */
  readonly uid: string;
  /** The node the holder runs on. */
  readonly node?: string;
}

/**
 * The terms of the present or last grant. They stand until the next grant, whatever the spec says meanwhile, and
 * also when the Lease was deleted: they tell how long a lost holder must be waited for.
 */
export interface LockTerms {
  /** The lease duration of the grant, in seconds. */
  readonly leaseDurationSeconds: number;
  /** The takeover delay of the grant, in seconds; for a Pod of many containers more than the spec says. */
  readonly takeoverDelaySeconds: number;
  /** The termination grace period of the holder, in seconds. */
  readonly gracePeriodSeconds: number;
  /** What passes the grant on besides the holder's release. */
  readonly takeover?: 'Lease' | 'PodGone';
  /** What happens when the holder cannot renew by its deadline. */
  readonly onRenewalFailure?: 'Stop' | 'ContinueFenced';
}

/** The last grant that an administrator broke (annotation `kilit.dev/break`). */
export interface LockBreak {
  /** The user who asked, as the API server knows him. */
  readonly by: string;
  /** Why, in his own words. */
  readonly reason: string;
  /** When the operator took the request up. */
  readonly time: string;
  /** The token of the grant that it was about. */
  readonly token: string;
}

/** The last hand-over that an administrator asked for (annotation `kilit.dev/handover`). */
export interface LockHandover {
  /** The user who asked, as the API server knows him. */
  readonly by: string;
  /** Why, in his own words. */
  readonly reason: string;
  /** When the operator took the request up. */
  readonly time: string;
  /** The token of the grant that it was about. */
  readonly token: string;
}

/** One waiter and what it waits for. */
export interface LockWaiter {
  /** The kind of the waiter, `Pod`. */
  readonly kind: string;
  /** The waiter's name, in the lock's namespace. */
  readonly name: string;
  /** The waiter's UID. */
  readonly uid: string;
  /** Why it waits, as a PascalCase constant. */
  readonly reason: string;
  /** Why it waits, as a sentence that names the holder and the place in the queue. */
  readonly message?: string;
}
