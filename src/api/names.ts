/**
 * Every name by which the parts of kilit know each other: labels, annotations, objects, files.
 *
 * The chart's policies use the same strings; `test/chart` fails when they drift.
 */

export const GROUP = 'kilit.dev';
export const VERSION = 'v1alpha1';
export const KIND = 'DistributedLock';
export const PLURAL = 'distributedlocks';

/** On a Pod (set by its author, fixed at creation) and on a lock's Lease, Role and RoleBinding: the lock's name. */
export const LOCK_LABEL = 'kilit.dev/lock';
/** On the holder's Pod, value `"true"`: a Service can select the holder. Written by the operator. */
export const LEADER_LABEL = 'kilit.dev/leader';

/** On a Lease: the token of its present or last grant, `"0"` before the first. On a Pod: the token it was granted. */
export const TOKEN_ANNOTATION = 'kilit.dev/fencing-token';
/** On a waiting Pod: when it joined the queue, microseconds since 1970 as a decimal string. Orders the queue. */
export const QUEUED_AT_ANNOTATION = 'kilit.dev/queued-at';
/** On a Pod, fixed at creation: `gate` (default) or `standby`. */
export const MODE_ANNOTATION = 'kilit.dev/mode';
/** On a Pod, fixed at creation: the sidecar's port for probe and metrics. Required with `hostNetwork`. */
export const PORT_ANNOTATION = 'kilit.dev/port';
/** On a lock, value `"true"`: lets a held lock be deleted; its holder is stopped first. No other value does. */
export const FORCE_DELETE_ANNOTATION = 'kilit.dev/force-delete';

/** On a lock, written by an administrator: break the grant of this token. JSON `{ token, by, reason }`. */
export const BREAK_ANNOTATION = 'kilit.dev/break';
/** On a lock, written by an administrator: let the present holder hand the lock over. JSON `{ token, by, reason }`. */
export const HANDOVER_ANNOTATION = 'kilit.dev/handover';

/** On a held Lease: the operator asks the holder to yield, a YieldReason. Gone with the next grant. */
export const YIELD_ANNOTATION = 'kilit.dev/yield';
/** On a Pod: the token of its last grant, under which no program of it started. Gone with its next grant. */
export const NOT_STARTED_ANNOTATION = 'kilit.dev/not-started';
/** On a Lease that was broken: the holder of the broken grant, which may still be alive. Gone with the next grant. */
export const BROKEN_HOLDER_ANNOTATION = 'kilit.dev/broken-holder';

/** On a Lease, part of the terms of a grant: what a grant after an expiry adds to the lease duration, in seconds. */
export const TAKEOVER_DELAY_ANNOTATION = 'kilit.dev/takeover-delay-seconds';
/** On a Lease, part of the terms of a grant: the holder's termination grace period, in seconds. */
export const GRACE_ANNOTATION = 'kilit.dev/grace-seconds';
/** On a Lease, part of the terms of a grant: the node the holder runs on. */
export const NODE_ANNOTATION = 'kilit.dev/node';

/** On any Lease, value `"true"`: each new holder gets a fencing token, whatever library elects it. Off by default in the chart. */
export const FENCED_LABEL = 'kilit.dev/fenced';
/** On a fenced Lease: the `acquireTime` of the holder that its token was minted for, `""` before the first. */
export const FENCED_ACQUIRE_TIME_ANNOTATION = 'kilit.dev/fenced-acquire-time';
/** On a Lease, part of the terms of a grant: `PodGone`, or absent for `Lease`. */
export const TAKEOVER_ANNOTATION = 'kilit.dev/takeover';
/** On a Lease, part of the terms of a grant: `ContinueFenced`, or absent for `Stop`. */
export const ON_RENEWAL_FAILURE_ANNOTATION = 'kilit.dev/on-renewal-failure';
/** On a Lease that was written for a new revision alone, after a restore of etcd: the revision that it had. */
export const REFRESHED_ANNOTATION = 'kilit.dev/refreshed';

/** Keeps a lock until its holder is dead or its lease has lapsed. */
export const LOCK_FINALIZER = 'kilit.dev/holder';
/** Keeps the object of a Pod that is granted a lock under `takeover: PodGone`, and with it the proof of its end. */
export const POD_FINALIZER = 'kilit.dev/holder';

/** Prefix of the Lease, the Role and the RoleBinding of a lock: `kilit.<lock>`. */
export const LEASE_PREFIX = 'kilit.';
export const leaseName = (lock: string): string => LEASE_PREFIX + lock;

/** On the operator's namespace: the cluster's token base, `"0"` if absent; its Namespace is the parameter of the Lease policy. */
export const TOKEN_BASE_ANNOTATION = 'kilit.dev/token-base';
/** Lease in the operator's namespace by which the active operator is elected. */
export const OPERATOR_LEASE = 'kilit-operator';
/** Lease name that the canary's dry run tries to create already held; no such object ever exists. */
export const CANARY_LEASE = 'kilit.canary';

/** Names of the two injected containers. */
export const SIDECAR_CONTAINER = 'kilit';
export const RESET_CONTAINER = 'kilit-reset';

/**
 * The sidecar's exit code when no program was given a token in its life: it found the mark of a fresh start, by which all
 * earlier programs are dead, and never wrote a token. Any other end has another code.
 */
export const IDLE_EXIT_CODE = 80;

/** Default port of the sidecar's read-only probe and metrics server. */
export const DEFAULT_PORT = 9911;

/** The injected volumes, where they are mounted, and the files in them. */
export const RUN_VOLUME = 'kilit-run';
export const RUN_DIR = '/run/kilit';
export const INFO_VOLUME = 'kilit-info';
export const INFO_DIR = '/etc/kilit';
export const API_VOLUME = 'kilit-api';
/** Mounted into the sidecar only: `token` and `ca.crt`. */
export const API_DIR = '/var/run/secrets/kilit.dev';
export const TOKEN_ENV = 'FENCING_TOKEN';
export const SOCKET_ENV = 'KILIT_SOCKET';

/** A Lease's holder: Pod name and UID. The policy compares the part after the last underscore with the writer's Pod UID. */
export const holderIdentity = (pod: { readonly name: string; readonly uid: string }): string =>
  `${pod.name}_${pod.uid}`;

/** Holds a broken lock until its former holder is stopped. `broken` is no Pod's UID, so nobody renews or releases it. */
export const breakIdentity = (lockUid: string): string => `break-${lockUid}_broken`;
