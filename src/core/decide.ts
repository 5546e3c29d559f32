import type { Action, Ended } from './actions.ts';
import { decideBreak, dropRequest } from './break.ts';
import { decideDeletion } from './deletion.ts';
import { grantTerms, type Instant, type LeaseView } from './lease.ts';
import { hasFinalizer, type LockView } from './lock.ts';
import { decidePods } from './marks.ts';
import { type Decision, type GrantGate, type Now, type Observed, secondsText } from './observed.ts';
import type { PodView } from './pod.ts';
import { hasPodFinalizer, mustHavePodFinalizer } from './pod-finalizer.ts';
import { firstEligible, holderCandidate, type Waiter, waiters } from './queue.ts';
import { type Requests, standingOf } from './requests.ts';
import { gateOf, isLeaseBehind } from './revision-fall.ts';
import { lockStatus, statusDiffers } from './status.ts';
import { judgeTenure, leftOn, type Tenure } from './tenure.ts';
import { nextFencingToken } from './token.ts';
import { decideYield } from './yield.ts';

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

  const { lease, pods, nodes, gate } = observed;
  const provisioning = provision(lock, observed);
  const judged = lease === undefined ? undefined : judgeTenure(lease, { ...observed, lock }, now.instant);
  const grantee =
    lease === undefined || judged === undefined || provisioning.length > 0
      ? undefined
      : nextHolder({ lock, lease, tenure: judged, queue: waiters(pods, nodes, holderOf(judged)), gate });
  const tenure = judged && lease && grantee === undefined ? leftOn(judged, lease, observed.lastSeen) : judged;
  const queue = waiters(pods, nodes, holderOf(tenure));
  const requests = lease === undefined || tenure === undefined ? NO_REQUESTS : requestsOf(lock, lease, tenure);

  let leaseAction: Action | undefined;
  let recheckAt = recheckTenure(tenure);
  if (lease !== undefined && tenure !== undefined && provisioning.length === 0) {
    const holder = holderCandidate(pods, nodes, holderOf(tenure));
    const input = { lock, lease, tenure, holder, queue, gate, ...requests };
    const asked = decideYield(input, now.instant);
    leaseAction = decideLease(input, grantee) ?? decideBreak(input) ?? asked.action;
    recheckAt = earlier(recheckAt, asked.recheckAt);
  }

  const status = lockStatus({
    ...observed,
    lock,
    tenure,
    queue,
    requests,
    provisioned: provisioning.length === 0,
    nowText: secondsText(now.micros),
  });
  const addsFinalizer = provisioning.some(({ kind }) => kind === 'AddFinalizer');
  const drop = addsFinalizer || observed.failure !== undefined ? undefined : dropRequest(lock, requests);
  // A status of the state before a Lease write (or the Pod's finalizer before it) would be stale at once; it is written
  // only to show that writing fails.
  const writesStatus =
    statusDiffers(lock, status) &&
    ((leaseAction === undefined && grantee === undefined) || observed.failure !== undefined) &&
    drop === undefined &&
    !addsFinalizer;
  return {
    actions: [
      ...provisioning,
      ...(leaseAction === undefined ? [] : [leaseAction]),
      ...decidePods({ lock, lease, tenure, queue, pods, grantee }, now),
      ...(drop === undefined ? [] : [drop]),
      ...(writesStatus ? [{ kind: 'WriteStatus', lock, status } as const] : []),
    ],
    recheckAt,
  };
}

const NO_REQUESTS = { break: { kind: 'none' }, handover: { kind: 'none' } } as const satisfies Requests;

const requestsOf = (lock: LockView, lease: LeaseView, tenure: Tenure): Requests => ({
  break: standingOf('break', { lock, lease, tenure }),
  handover: standingOf('handover', { lock, lease, tenure }),
});

const holderOf = (tenure: Tenure | undefined): string | undefined =>
  tenure?.kind === 'held' ? tenure.holder.uid : undefined;

function recheckTenure(tenure: Tenure | undefined): Instant | undefined {
  if (tenure?.kind === 'held') return tenure.recheckAt;
  return tenure?.kind === 'previous' || tenure?.kind === 'broken' ? tenure.until : undefined;
}

const earlier = (a: Instant | undefined, b: Instant | undefined): Instant | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);

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

/** Who could be granted the lock now, or undefined. */
function nextHolder(input: {
  readonly lock: LockView;
  readonly lease: LeaseView;
  readonly tenure: Tenure;
  readonly queue: readonly Waiter[];
  readonly gate: GrantGate;
}): PodView | undefined {
  const { lease, tenure, queue, gate } = input;
  if (!passesOn(tenure) || !gate.open || isLeaseBehind(input) || lease.token === undefined) return undefined;
  // A Pod that lost, or could not confirm, takes part again only from its new place at the end.
  const former = tenure.kind === 'ended' ? tenure.holder.uid : undefined;
  return firstEligible(queue.filter((waiter) => waiter.pod.uid !== former));
}

const passesOn = (tenure: Tenure): tenure is Extract<Tenure, { kind: 'free' | 'ended' }> =>
  tenure.kind === 'free' || tenure.kind === 'ended';

function decideLease(
  input: { readonly lock: LockView; readonly lease: LeaseView; readonly tenure: Tenure; readonly gate: GrantGate },
  pod: PodView | undefined,
): Action | undefined {
  const { lock, lease, tenure, gate } = input;
  if (!passesOn(tenure)) return undefined;
  if (tenure.kind === 'free' && isLeaseBehind(input)) return { kind: 'RefreshLease', lock, lease };
  const ended: Ended | undefined =
    tenure.kind === 'ended' ? { holder: tenure.holder, reason: tenure.reason } : undefined;
  if (gate.open && lease.token !== undefined && pod !== undefined) {
    // `decidePods` puts it there; the grant follows when it was seen.
    if (mustHavePodFinalizer(lock) && !hasPodFinalizer(pod)) return undefined;
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
  const context = { lock: undefined, tenure: undefined, grantee: undefined, lease: observed.lease };
  const actions = decidePods({ ...context, queue, pods: observed.pods }, now);
  return { actions, recheckAt: undefined };
}
