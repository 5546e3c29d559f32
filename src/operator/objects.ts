/** The objects that the operator writes, built from decisions. Pure. */
import {
  BROKEN_HOLDER_ANNOTATION,
  breakIdentity,
  GRACE_ANNOTATION,
  GROUP,
  holderIdentity,
  KIND,
  LEADER_LABEL,
  LOCK_LABEL,
  leaseName,
  NODE_ANNOTATION,
  NOT_STARTED_ANNOTATION,
  ON_RENEWAL_FAILURE_ANNOTATION,
  QUEUED_AT_ANNOTATION,
  REFRESHED_ANNOTATION,
  TAKEOVER_ANNOTATION,
  TAKEOVER_DELAY_ANNOTATION,
  TOKEN_ANNOTATION,
  VERSION,
  YIELD_ANNOTATION,
} from '../api/names.ts';
import type { YieldReason } from '../api/reasons.ts';
import type { Action, Grant } from '../core/actions.ts';
import type { RawLease } from '../core/lease.ts';
import type { LockView } from '../core/lock.ts';
import type { PodView } from '../core/pod.ts';

export interface OwnedMetadata {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ownerReferences: readonly OwnerReference[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

export const ownerReference = (lock: LockView): OwnerReference => ({
  apiVersion: `${GROUP}/${VERSION}`,
  kind: KIND,
  name: lock.name,
  uid: lock.uid,
  controller: true,
});

const owned = (lock: LockView): OwnedMetadata => ({
  name: leaseName(lock.name),
  namespace: lock.namespace,
  labels: { [LOCK_LABEL]: lock.name, 'app.kubernetes.io/managed-by': 'kilit' },
  ownerReferences: [ownerReference(lock)],
});

/**
 * What a sidecar may do, by name only: read, watch and update its lock's Lease, and tell about a loss in an event.
 *
 * Which of the namespace's Pods may actually renew is decided by the admission policy: the holder's alone.
 */
export const role = (lock: LockView) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: owned(lock),
  rules: [
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: [leaseName(lock.name)],
      verbs: ['get', 'list', 'watch', 'update'],
    },
    { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
  ],
});

export const roleBinding = (lock: LockView) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: owned(lock),
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: leaseName(lock.name) },
  subjects: [
    { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: `system:serviceaccounts:${lock.namespace}` },
  ],
});

/** A free Lease that says by token 0 that it is new. */
export const newLease = (lock: LockView) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { ...owned(lock), annotations: { [TOKEN_ANNOTATION]: '0' } },
  spec: {
    holderIdentity: '',
    leaseDurationSeconds: lock.spec.leaseDurationSeconds,
    leaseTransitions: lock.status.transitions ?? 0,
  },
});

/** Terms whose absence is a term: they must not be left over from the grant before. */
function withoutOptionalTerms(annotations: RawLease['metadata']['annotations'] = {}) {
  const { [TAKEOVER_ANNOTATION]: _, [ON_RENEWAL_FAILURE_ANNOTATION]: __, ...others } = annotations;
  return others;
}

/** The Lease that a grant writes over `present`: holder, times, token and terms together. */
export function grantedLease(present: RawLease, grant: Grant, timeText: string) {
  return {
    ...present,
    metadata: {
      ...present.metadata,
      annotations: {
        ...withoutOptionalTerms(withoutGrant(present)),
        ...(grant.terms.takeover === 'PodGone' && { [TAKEOVER_ANNOTATION]: 'PodGone' }),
        ...(grant.terms.onRenewalFailure === 'ContinueFenced' && { [ON_RENEWAL_FAILURE_ANNOTATION]: 'ContinueFenced' }),
        [TOKEN_ANNOTATION]: grant.token.toString(),
        [TAKEOVER_DELAY_ANNOTATION]: String(grant.terms.takeoverDelaySeconds),
        [GRACE_ANNOTATION]: String(grant.terms.gracePeriodSeconds),
        [NODE_ANNOTATION]: grant.pod.node ?? '',
      },
    },
    spec: {
      ...present.spec,
      holderIdentity: holderIdentity(grant.pod),
      leaseDurationSeconds: grant.terms.leaseDurationSeconds,
      acquireTime: timeText,
      renewTime: timeText,
      leaseTransitions: grant.lease.transitions + 1,
    },
  };
}

/** The annotations that outlive a grant, and its terms. */
function withoutGrant({ metadata }: RawLease): Readonly<Record<string, string>> {
  const { [YIELD_ANNOTATION]: _, [BROKEN_HOLDER_ANNOTATION]: __, ...rest } = metadata.annotations ?? {};
  return rest;
}

/** The Lease that a break writes over `present`: nobody's Pod holds it, under the terms of the broken grant. */
export function brokenLease(present: RawLease, action: Extract<Action, { kind: 'Break' }>, timeText: string) {
  return {
    ...present,
    metadata: {
      ...present.metadata,
      annotations: {
        ...withoutGrant(present),
        [TOKEN_ANNOTATION]: action.token.toString(),
        [BROKEN_HOLDER_ANNOTATION]: action.holder.identity,
        // A Lease of an earlier version of kilit may lack them; the policy wants them in each grant.
        [TAKEOVER_DELAY_ANNOTATION]: String(action.lease.terms.takeoverDelaySeconds),
        [GRACE_ANNOTATION]: String(action.lease.terms.gracePeriodSeconds),
      },
    },
    spec: {
      ...present.spec,
      holderIdentity: breakIdentity(action.lock.uid),
      acquireTime: timeText,
      renewTime: timeText,
      leaseTransitions: action.lease.transitions + 1,
    },
  };
}

/** The Lease with a request to its holder, and nothing else changed. */
export const askedLease = (present: RawLease, reason: YieldReason) => ({
  ...present,
  metadata: { ...present.metadata, annotations: { ...present.metadata.annotations, [YIELD_ANNOTATION]: reason } },
});

/** The Lease without a holder; token and terms stay. */
export const freedLease = (present: RawLease) => ({ ...present, spec: { ...present.spec, holderIdentity: '' } });

/** The Lease as it is, at a new revision: a write that changed nothing would keep the old one. */
export const refreshedLease = (present: RawLease) => ({
  ...present,
  metadata: {
    ...present.metadata,
    annotations: { ...present.metadata.annotations, [REFRESHED_ANNOTATION]: present.metadata.resourceVersion },
  },
});

/** The Lease with its lock as the owner. */
export const adoptedLease = (present: RawLease, lock: LockView) => ({
  ...present,
  metadata: { ...present.metadata, ownerReferences: [ownerReference(lock)] },
});

/** A merge patch of a Pod's marks, refused unless the Pod is the one that was observed. `null` removes. */
export const podMarks = (
  pod: PodView,
  marks: {
    readonly token: string | null;
    readonly leader: 'true' | null;
    readonly queuedAt: string | null;
    /** `undefined`: stays as it is. */
    readonly notStarted?: string | null;
  },
) => ({
  metadata: {
    uid: pod.uid,
    resourceVersion: pod.resourceVersion,
    labels: { [LEADER_LABEL]: marks.leader },
    annotations: {
      [TOKEN_ANNOTATION]: marks.token,
      [QUEUED_AT_ANNOTATION]: marks.queuedAt,
      ...(marks.notStarted !== undefined && { [NOT_STARTED_ANNOTATION]: marks.notStarted }),
    },
  },
});
