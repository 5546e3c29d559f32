/** What the API server would hold after an action, as far as decisions see it. Pure. */
import { breakIdentity } from '../../src/api/names.ts';
import type { Action } from '../../src/core/actions.ts';
import { assertNever } from '../../src/core/assert-never.ts';
import type { LeaseView } from '../../src/core/lease.ts';
import type { Now, Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';
import { aLease } from './builders.ts';

/** Applies an action to an observation, as if it had been written and observed at `now`. */
export function applied(observed: Observed, action: Action, now: Now): Observed {
  const revised = (lease: LeaseView, change: Partial<LeaseView>): Observed => ({
    ...observed,
    lease: {
      ...lease,
      ...change,
      resourceVersion: String(BigInt(lease.resourceVersion) + 1n),
      observedAt: now.instant,
    },
  });
  const marked = (pod: PodView, marks: Partial<PodView>): Observed => {
    const pods = observed.pods.map((present) => (present.uid === pod.uid ? { ...present, ...marks } : present));
    return { ...observed, pods, lastSeen: (uid) => pods.find((present) => present.uid === uid) };
  };
  switch (action.kind) {
    case 'AddFinalizer':
      return { ...observed, lock: { ...action.lock, finalizers: ['kilit.dev/holder'] } };
    case 'RemoveFinalizer':
      return { ...observed, lock: undefined };
    case 'PutRole':
      return { ...observed, roles: { ...observed.roles, role: true } };
    case 'PutRoleBinding':
      return { ...observed, roles: { ...observed.roles, roleBinding: true } };
    case 'CreateLease':
      return {
        ...observed,
        lease: aLease({ token: 0n, uid: 'new-lease', resourceVersion: '5000', observedAt: now.instant }),
      };
    case 'AdoptLease':
      return { ...observed, lease: { ...action.lease, ownerUid: action.lock.uid } };
    case 'RefreshLease': {
      const reached = observed.gate.open ? (observed.gate.revision ?? 0n) : 0n;
      return revised({ ...action.lease, resourceVersion: reached.toString() }, {});
    }
    case 'DeleteLease':
      return { ...observed, lease: undefined, leaseAbsentSince: now.instant };
    case 'Grant': {
      const { pod, token, terms, lease } = action;
      const time = `granted-${token}`;
      const holder = { identity: `${pod.name}_${pod.uid}`, name: pod.name, uid: pod.uid, node: pod.node };
      return revised(lease, {
        holder,
        token,
        terms,
        acquireTime: time,
        renewTime: time,
        transitions: lease.transitions + 1,
        confirmedAt: undefined,
        yieldAsked: undefined,
        broken: undefined,
      });
    }
    case 'AskYield':
      return { ...observed, lease: { ...action.lease, yieldAsked: action.reason } };
    case 'Break': {
      const { lock, lease, token, holder } = action;
      const [name = '', uid = ''] = breakIdentity(lock.uid).split('_');
      const time = `broken-${token}`;
      return revised(lease, {
        holder: { identity: breakIdentity(lock.uid), name, uid, node: undefined },
        token,
        acquireTime: time,
        renewTime: time,
        transitions: lease.transitions + 1,
        confirmedAt: undefined,
        yieldAsked: undefined,
        broken: holder,
      });
    }
    case 'DropRequest':
      return {
        ...observed,
        lock: { ...action.lock, requests: { ...action.lock.requests, [action.request]: undefined } },
      };
    case 'Free':
      return revised(action.lease, { holder: undefined, confirmedAt: undefined });
    case 'MarkHolder':
      return marked(action.pod, {
        token: action.token.toString(),
        leader: true,
        queuedAt: undefined,
        notStarted: action.notStarted ? action.token.toString() : undefined,
      });
    case 'Unmark':
      return marked(action.pod, { token: undefined, leader: false, queuedAt: undefined });
    case 'JoinQueue':
      return marked(action.pod, {
        token: undefined,
        leader: false,
        queuedAt: action.queuedAt,
        ...(action.notStarted && { notStarted: action.pod.token }),
      });
    case 'AddPodFinalizer':
      return marked(action.pod, { finalizers: [...action.pod.finalizers, 'kilit.dev/holder'] });
    case 'RemovePodFinalizer':
      return marked(action.pod, { finalizers: action.pod.finalizers.filter((name) => name !== 'kilit.dev/holder') });
    case 'WriteStatus':
      return { ...observed, lock: { ...action.lock, status: action.status } };
    default:
      return assertNever(action);
  }
}
