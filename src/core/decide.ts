import type { Action, Ended } from './actions.ts';
import { decideBreak, dropRequest } from './break.ts';
import { decideDeletion } from './deletion.ts';
import { grantTerms, type Instant, type LeaseView } from './lease.ts';
import { hasFinalizer, type LockView } from './lock.ts';
import { decidePods } from './marks.ts';
import { type Decision, type GrantGate, type Now, type Observed, secondsText } from './observed.ts';
import { firstEligible, holderCandidate, type Waiter, waiters } from './queue.ts';
import { type Requests, standingOf } from './requests.ts';
import { lockStatus, statusDiffers } from './status.ts';
import { judgeTenure, type Tenure } from './tenure.ts';
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
export function decide(observed: Observed, now: Now): Decision {
  const { lock } = observed;
  if (lock === undefined) return decideWithoutLock(observed, now);
  if (lock.deleting) return decideDeletion(lock, observed, now);

  const { lease, pods, nodes, gate } = observed;
  const tenure = lease === undefined ? undefined : judgeTenure(lease, { ...observed, lock }, now.instant);
  const holderUid = tenure?.kind === 'held' ? tenure.holder.uid : undefined;
  const queue = waiters(pods, nodes, holderUid);
  const provisioning = provision(lock, observed);
  const requests = lease === undefined || tenure === undefined ? NO_REQUESTS : requestsOf(lock, lease, tenure);

  let leaseAction: Action | undefined;
  let recheckAt = recheckTenure(tenure);
  if (lease !== undefined && tenure !== undefined && provisioning.length === 0) {
    const holder = holderCandidate(pods, nodes, holderUid);
    const input = { lock, lease, tenure, holder, queue, gate, ...requests };
    const asked = decideYield(input, now.instant);
    leaseAction = decideLease(input) ?? decideBreak(input) ?? asked.action;
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
  // A status of the state before a Lease write would be stale at once; it is written only to show that writing fails.
  const writesStatus =
    statusDiffers(lock, status) &&
    (leaseAction === undefined || observed.failure !== undefined) &&
    drop === undefined &&
    !addsFinalizer;
  return {
    actions: [
      ...provisioning,
      ...(leaseAction === undefined ? [] : [leaseAction]),
      ...decidePods({ lock, lease, tenure, queue, pods }, now),
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

function decideLease(input: {
  readonly lock: LockView;
  readonly lease: LeaseView;
  readonly tenure: Tenure;
  readonly queue: readonly Waiter[];
  readonly gate: GrantGate;
}): Action | undefined {
  const { lock, lease, tenure, queue, gate } = input;
  if (tenure.kind !== 'free' && tenure.kind !== 'ended') return undefined;
  const ended: Ended | undefined =
    tenure.kind === 'ended' ? { holder: tenure.holder, reason: tenure.reason } : undefined;
  // A Pod that lost, or could not confirm, takes part again only from its new place at the end.
  const pod = firstEligible(queue.filter((waiter) => waiter.pod.uid !== ended?.holder.uid));
  if (gate.open && lease.token !== undefined && pod !== undefined) {
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
