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

/** On a Lease, part of the terms of a grant: what a grant after an expiry adds to the lease duration, in seconds. */
export const TAKEOVER_DELAY_ANNOTATION = 'kilit.dev/takeover-delay-seconds';
/** On a Lease, part of the terms of a grant: the holder's termination grace period, in seconds. */
export const GRACE_ANNOTATION = 'kilit.dev/grace-seconds';
/** On a Lease, part of the terms of a grant: the node the holder runs on. */
export const NODE_ANNOTATION = 'kilit.dev/node';

/** On a Lease that was written for a new revision alone, after a restore of etcd: the revision that it had. */
export const REFRESHED_ANNOTATION = 'kilit.dev/refreshed';

/** Keeps a lock until its holder is dead or its lease has lapsed. */
export const LOCK_FINALIZER = 'kilit.dev/holder';

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
