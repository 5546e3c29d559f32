import type { Action, Ended } from './actions.ts';
import { decideDeletion } from './deletion.ts';
import { grantTerms, type LeaseView } from './lease.ts';
import { hasFinalizer, type LockView } from './lock.ts';
import { decidePods } from './marks.ts';
import { type Decision, type GrantGate, type Now, type Observed, secondsText } from './observed.ts';
import { firstEligible, type Waiter, waiters } from './queue.ts';
import { gateOf, isLeaseBehind } from './revision-fall.ts';
import { lockStatus, statusDiffers } from './status.ts';
import { judgeTenure, type Tenure } from './tenure.ts';
import { nextFencingToken } from './token.ts';

/**
 * Decides what one pass over a lock must write.
 *
 * Pure and level-based: it looks at the present state, never at which event woke the operator.
 *
 * Guarantees: each object is written at most once in a pass; repeating the actions is refused by their preconditions or
 * harmless; once they are applied and observed, deciding again leads to rest.
 * Assumes: `lease.observedAt` and `leaseAbsentSince` are this process's monotonic clock.
 */
export function decide(given: Observed, now: Now): Decision {
  const { lock } = given;
  if (lock === undefined) return decideWithoutLock(given, now);
  const observed = { ...given, gate: gateOf({ ...given, lock }) };
  if (lock.deleting) return decideDeletion(lock, observed, now);

  const { lease } = observed;
  const tenure = lease === undefined ? undefined : judgeTenure(lease, { ...observed, lock }, now.instant);
  const holderUid = tenure?.kind === 'held' ? tenure.holder.uid : undefined;
  const queue = waiters(observed.pods, observed.nodes, holderUid);
  const provisioning = provision(lock, observed);
  const leaseAction =
    lease === undefined || tenure === undefined || provisioning.length > 0
      ? undefined
      : decideLease({ lock, lease, tenure, queue, gate: observed.gate });

  const status = lockStatus({
    ...observed,
    lock,
    tenure,
    queue,
    provisioned: provisioning.length === 0,
    nowText: secondsText(now.micros),
  });
  // A status of the state before a Lease write would be stale at once; it is written only to show that writing fails.
  const writesStatus =
    statusDiffers(lock, status) &&
    (leaseAction === undefined || observed.failure !== undefined) &&
    !provisioning.some((action) => action.kind === 'AddFinalizer');
  return {
    actions: [
      ...provisioning,
      ...(leaseAction === undefined ? [] : [leaseAction]),
      ...decidePods({ lock, lease, tenure, queue, pods: observed.pods }, now),
      ...(writesStatus ? [{ kind: 'WriteStatus', lock, status } as const] : []),
    ],
    recheckAt: tenure?.kind === 'held' ? tenure.recheckAt : tenure?.kind === 'previous' ? tenure.until : undefined,
  };
}

function provision(lock: LockView, observed: Observed): readonly Action[] {
  return [
    ...(hasFinalizer(lock) ? [] : [{ kind: 'AddFinalizer', lock } as const]),
    ...(observed.roles.role ? [] : [{ kind: 'PutRole', lock } as const]),
    ...(observed.roles.roleBinding ? [] : [{ kind: 'PutRoleBinding', lock } as const]),
    ...provisionLease(lock, observed.lease),
  ];
}

function provisionLease(lock: LockView, lease: LeaseView | undefined): readonly Action[] {
  if (lease === undefined) return [{ kind: 'CreateLease', lock }];
  return lease.ownerUid === lock.uid ? [] : [{ kind: 'AdoptLease', lock, lease }];
}

function decideLease(input: {
  readonly lock: LockView;
  readonly lease: LeaseView;
  readonly tenure: Tenure;
  readonly queue: readonly Waiter[];
  readonly gate: GrantGate;
}): Action | undefined {
  const { lock, lease, tenure, queue, gate } = input;
  if (tenure.kind === 'held' || tenure.kind === 'previous') return undefined;
  const isBehind = isLeaseBehind(input);
  if (isBehind && tenure.kind === 'free') return { kind: 'RefreshLease', lock, lease };
  const ended: Ended | undefined =
    tenure.kind === 'ended' ? { holder: tenure.holder, reason: tenure.reason } : undefined;
  // A Pod that lost, or could not confirm, takes part again only from its new place at the end.
  const pod = firstEligible(queue.filter((waiter) => waiter.pod.uid !== ended?.holder.uid));
  if (gate.open && !isBehind && lease.token !== undefined && pod !== undefined) {
    return {
      kind: 'Grant',
      lock,
      lease,
      pod,
      token: nextFencingToken({ resourceVersion: lease.resourceVersion, token: lease.token, base: gate.base }),
      terms: grantTerms(lock.spec, pod),
      ended,
    };
  }
  return ended === undefined ? undefined : { kind: 'Free', lock, lease, ended };
}

/** Pods may come before their lock: they keep their place, and say what they miss. */
function decideWithoutLock(observed: Observed, now: Now): Decision {
  const queue = waiters(observed.pods, observed.nodes, undefined);
  const actions = decidePods({ lock: undefined, lease: undefined, tenure: undefined, queue, pods: observed.pods }, now);
  return { actions, recheckAt: undefined };
}
