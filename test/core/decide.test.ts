import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import type { Observed } from '../../src/core/observed.ts';
import { aHolder, aLease, aLock, aNode, aPod, at, heldBy, observedLock, SPEC, TERMS } from '../support/builders.ts';

/** The decision in a few words, status writes left out. */
const wanted = (observed: Observed, instant = 0): readonly string[] =>
  decide(observed, at(instant)).actions.flatMap((action) => {
    switch (action.kind) {
      case 'Grant':
        return [`Grant ${action.pod.name} ${action.token}${action.ended ? ` after ${action.ended.reason}` : ''}`];
      case 'Free':
        return [`Free ${action.ended.reason}`];
      case 'MarkHolder':
        return [`MarkHolder ${action.pod.name} ${action.token}`];
      case 'JoinQueue':
        return [`JoinQueue ${action.pod.name} ${action.reason}`];
      case 'Unmark':
        return [`Unmark ${action.pod.name}`];
      case 'WriteStatus':
        return [];
      default:
        return [action.kind];
    }
  });

const queued = (name: string, place: bigint, over = {}) => aPod(name, { queuedAt: place, ...over });

describe('a new lock', () => {
  it('gets its finalizer, Role, RoleBinding and Lease before anything is granted', () => {
    const observed = observedLock({
      lock: aLock({ finalizers: [] }),
      lease: undefined,
      roles: { role: false, roleBinding: false },
      pods: [queued('a', 1n)],
    });
    expect(wanted(observed)).toEqual(['AddFinalizer', 'PutRole', 'PutRoleBinding', 'CreateLease']);
  });

  it('is granted at once when it was never granted before', () => {
    expect(wanted(observedLock({ lease: aLease({ token: 0n }), pods: [queued('a', 1n)] }))).toEqual(['Grant a 1000']);
  });
});

describe('the queue', () => {
  it('gives newcomers their places in the order of creation, ties in the order of observation', () => {
    const pods = [
      aPod('c', { createdAt: '2026-01-01T00:00:01Z' }),
      aPod('b', { createdAt: '2026-01-01T00:00:00Z' }),
      aPod('a', { createdAt: '2026-01-01T00:00:00Z' }),
    ];
    const joins = decide(observedLock({ pods }), at(0)).actions.filter((action) => action.kind === 'JoinQueue');
    expect(joins.map((join) => join.pod.name)).toEqual(['b', 'a', 'c']);
    expect(joins[1]?.queuedAt).toBe((joins[0]?.queuedAt ?? 0n) + 1n);
  });

  it('puts a newcomer behind the last waiter also when the clock stepped back', () => {
    const future = 9_000_000_000_000_000n;
    const joins = decide(
      observedLock({ lease: heldBy(aPod('x')), pods: [queued('a', future), aPod('b')] }),
      at(0),
    ).actions;
    expect(joins.find((join) => join.kind === 'JoinQueue')?.queuedAt).toBe(future + 1n);
  });

  it('grants to the first in line', () => {
    expect(wanted(observedLock({ pods: [queued('b', 2n), queued('a', 1n)] }))).toEqual(['Grant a 1000']);
  });

  it.each([
    ['whose sidecar does not run', { sidecarRunning: false, sidecarWaiting: 'ImagePullBackOff' }],
    ['that is being deleted', { deleting: true }],
    ['without a sidecar', { injected: false }],
    ['without a node', { node: undefined }],
    ['on an unknown node', { node: 'gone' }],
    ['on a node with an old kubelet', { node: 'old' }],
    ['on a node without the feature', { node: 'featureless' }],
    ['on a node that is not Ready', { node: 'unready' }],
  ])('passes over a waiter %s, which keeps its place', (_, over) => {
    const nodes = new Map(
      [
        aNode(),
        aNode({ name: 'old', kubeletVersion: 'v1.35.9' }),
        aNode({ name: 'featureless', declaredFeatures: [] }),
        aNode({ name: 'unready', ready: false }),
      ].map((node) => [node.name, node]),
    );
    expect(wanted(observedLock({ nodes, pods: [queued('a', 1n, over), queued('b', 2n)] }))).toEqual(['Grant b 1000']);
    expect(wanted(observedLock({ nodes, pods: [queued('a', 1n, over)] }))).toEqual([]);
  });

  it('does not count a Pod as a waiter whose end the kubelet has reported before its phase', () => {
    const dead = aHolder('a', 900n, { confirmedDead: true, sidecarRunning: false });
    expect(wanted(observedLock({ pods: [dead] }))).toEqual(['Unmark a']);
  });

  it('does not count a finished Pod as a waiter', () => {
    expect(wanted(observedLock({ pods: [queued('a', 1n, { phase: 'Succeeded' })] }))).toEqual([]);
  });

  it('says to a Pod whose lock does not exist what is missing, once', () => {
    const observed = observedLock({ lock: undefined, lease: undefined, pods: [aPod('a')] });
    expect(wanted(observed)).toEqual(['JoinQueue a LockNotFound']);
    expect(wanted({ ...observed, pods: [queued('a', 1n)] })).toEqual([]);
  });
});

describe('a held lock', () => {
  const holder = aHolder('a', 900n);

  it('is left alone while its holder renews', () => {
    expect(wanted(observedLock({ lease: heldBy(holder), pods: [holder, queued('b', 1n)] }))).toEqual([]);
  });

  it('shows the grant on the holder, which has no place in the queue any more', () => {
    expect(wanted(observedLock({ lease: heldBy(holder), pods: [queued('a', 1n)] }))).toEqual(['MarkHolder a 900']);
  });

  it('is granted on at once after a confirmed death', () => {
    const dead = aHolder('a', 900n, { phase: 'Succeeded', confirmedDead: true });
    const observed = observedLock({ lease: heldBy(dead), pods: [dead, queued('b', 1n)] });
    expect(wanted(observed)).toEqual(['Grant b 1000 after ConfirmedDeath']);
  });

  it('is granted on by the last seen object of a Pod that is gone', () => {
    const dead = aHolder('a', 900n, { phase: 'Failed', confirmedDead: true });
    const observed = observedLock({ lease: heldBy(dead), pods: [queued('b', 1n)], lastSeen: () => dead });
    expect(wanted(observed)).toEqual(['Grant b 1000 after ConfirmedDeath']);
  });

  it('is freed after a confirmed death when nobody waits', () => {
    const dead = aHolder('a', 900n, { phase: 'Succeeded', confirmedDead: true });
    expect(wanted(observedLock({ lease: heldBy(dead), pods: [dead] }))).toEqual(['Free ConfirmedDeath']);
  });

  it('is not granted on because the Pod is gone, failed or being deleted', () => {
    const rest = [queued('b', 1n)];
    const lease = heldBy(holder);
    expect(wanted(observedLock({ lease, pods: rest }), 1000)).toEqual([]);
    expect(wanted(observedLock({ lease, pods: [{ ...holder, phase: 'Failed' }, ...rest] }), 1000)).toEqual([]);
    expect(wanted(observedLock({ lease, pods: [{ ...holder, deleting: true }, ...rest] }), 1000)).toEqual([]);
  });

  it('is granted on one lease duration and the takeover delay after the last observed renewal', () => {
    const observed = observedLock({ lease: heldBy(holder, { observedAt: 7 }), pods: [holder, queued('b', 1n)] });
    expect(wanted(observed, 20_007)).toEqual(['Grant b 1000 after Expired']);
  });

  it('is not granted on one millisecond earlier, and asks to be looked at then', () => {
    const observed = observedLock({ lease: heldBy(holder, { observedAt: 7 }), pods: [holder, queued('b', 1n)] });
    expect(wanted(observed, 20_006)).toEqual([]);
    expect(decide(observed, at(20_006)).recheckAt).toBe(20_007);
  });

  it.each([
    ['terminating', [aHolder('a', 900n, { deleting: true })]],
    ['evicted', [aHolder('a', 900n, { disrupted: true })]],
    ['failed without proof', [aHolder('a', 900n, { phase: 'Failed' })]],
    ['unknown', []],
  ])('waits its grace period by the slowest clock more for a holder that is %s', (_, pods) => {
    const observed = observedLock({ lease: heldBy(holder), pods: [...pods, queued('b', 1n)] });
    expect(wanted(observed, 53_999)).toEqual([]);
    expect(wanted(observed, 54_000)).toEqual(['Grant b 1000 after Expired']);
  });

  it('waits as long as the deletion said when that is longer than the terms', () => {
    const slow = aHolder('a', 900n, { deleting: true, graceSeconds: 600 });
    const observed = observedLock({ lease: heldBy(slow), pods: [slow, queued('b', 1n)] });
    expect(wanted(observed, 686_999)).toEqual([]);
    expect(wanted(observed, 687_000)).toEqual(['Grant b 1000 after Expired']);
  });

  it('reckons by the terms of the grant, not by the present spec', () => {
    const lock = aLock({ spec: { ...SPEC, leaseDurationSeconds: 5, takeoverDelaySeconds: 0 } });
    const observed = observedLock({ lock, lease: heldBy(holder), pods: [holder, queued('b', 1n)] });
    expect(wanted(observed, 19_999)).toEqual([]);
    const granted = decide(observed, at(20_000)).actions.find((action) => action.kind === 'Grant');
    expect(granted?.terms).toEqual({ ...TERMS, leaseDurationSeconds: 5 });
  });

  it('states terms that the policy accepts also for a Pod with an absurd grace period', () => {
    const pod = queued('b', 1n, { graceSeconds: 10_000_000_000 });
    const grant = decide(observedLock({ pods: [pod] }), at(0)).actions.find((action) => action.kind === 'Grant');
    expect(grant?.terms.gracePeriodSeconds).toBe(999_999_999);
  });

  it('gives the loser the last place, and clears its marks in the same write', () => {
    const b = aHolder('b', 1000n);
    const observed = observedLock({ lease: heldBy(b, { token: 1000n }), pods: [holder, b, queued('c', 1n)] });
    expect(wanted(observed)).toEqual(['JoinQueue a Lost']);
  });
});

describe('a grant that is not confirmed', () => {
  const a = aHolder('a', 900n, { phase: 'Pending' });
  const unconfirmed = { renewTime: '2026-01-01T00:00:00.000000Z' };

  it('passes on after the confirm window', () => {
    const observed = observedLock({ lease: heldBy(a, unconfirmed), pods: [a, queued('b', 1n)] });
    expect(wanted(observed, 9_999)).toEqual([]);
    expect(wanted(observed, 10_000)).toEqual(['Grant b 1000 after NotConfirmed']);
  });

  it('frees the lock when only the Pod that did not confirm waits', () => {
    expect(wanted(observedLock({ lease: heldBy(a, unconfirmed), pods: [a] }), 10_000)).toEqual(['Free NotConfirmed']);
  });

  it('takes the place in the queue away before it passes on, but does not wait for ever', () => {
    const inQueue = queued('a', 1n);
    const observed = observedLock({ lease: heldBy(inQueue, unconfirmed), pods: [inQueue, queued('b', 2n)] });
    expect(wanted(observed, 10_000)).toEqual(['MarkHolder a 900']);
    expect(wanted(observed, 20_000)).toEqual(['Grant b 1000 after NotConfirmed']);
  });
});

describe('grants pause', () => {
  it('while the token rule is not known to be enforced, and the reason is in status', () => {
    const gate = { open: false, reason: 'PolicyNotEnforced', message: 'The binding is missing.' } as const;
    const observed = observedLock({ gate, pods: [queued('a', 1n)] });
    expect(wanted(observed)).toEqual([]);
    const status = decide(observed, at(0)).actions.find((action) => action.kind === 'WriteStatus')?.status;
    expect(status?.conditions?.find((c) => c.type === 'Ready')).toMatchObject({
      status: 'False',
      reason: 'PolicyNotEnforced',
    });
    expect(status?.queue?.[0]).toMatchObject({ name: 'a', reason: 'GrantsPaused' });
  });

  it('while the Lease carries no valid token', () => {
    expect(wanted(observedLock({ lease: aLease({ token: undefined }), pods: [queued('a', 1n)] }))).toEqual([]);
  });
});

describe('a Lease that was made anew under a lock granted before', () => {
  const status = {
    fencingToken: '900',
    holder: { kind: 'Pod', name: 'a', uid: 'uid-a' },
    terms: { leaseDurationSeconds: 15, takeoverDelaySeconds: 5, gracePeriodSeconds: 30 },
  } as const;

  it('waits as for an expiry of the old terms, plus grace', () => {
    const observed = observedLock({
      lock: aLock({ status }),
      lease: aLease({ token: 0n }),
      pods: [aHolder('a', 900n), queued('b', 1n)],
    });
    expect(wanted(observed, 53_999)).toEqual([]);
    expect(wanted(observed, 54_000)).toEqual(['Grant b 1000', 'JoinQueue a Lost']);
  });

  it('waits as long as the deletion of the holder said when that is longer than the old terms', () => {
    const slow = aHolder('a', 900n, { deleting: true, graceSeconds: 600 });
    const observed = observedLock({
      lock: aLock({ status }),
      lease: aLease({ token: 0n }),
      pods: [slow, queued('b', 1n)],
    });
    expect(wanted(observed, 686_999)).toEqual([]);
    expect(wanted(observed, 687_000)).toEqual(['Grant b 1000', 'Unmark a']);
  });

  it('waits also when the holder in status is dead: that status may be older than the grant that the Lease had', () => {
    const dead = aHolder('a', 900n, { phase: 'Failed', confirmedDead: true });
    const slow = queued('b', 1n, { graceSeconds: 600 });
    const observed = observedLock({ lock: aLock({ status }), lease: aLease({ token: 0n }), pods: [dead, slow] });
    expect(wanted(observed, 686_999)).toEqual(['Unmark a']);
    expect(wanted(observed, 687_000)).toEqual(['Grant b 1000', 'Unmark a']);
  });

  it('waits also when only a Pod that carries a token tells of the earlier grant', () => {
    const observed = observedLock({ lease: aLease({ token: 0n }), pods: [aHolder('a', 900n), queued('b', 1n)] });
    expect(wanted(observed, 49_999)).toEqual([]);
  });
});

describe('a lock that is being deleted', () => {
  const holder = aHolder('a', 900n);
  const deleting = (status = {}) => aLock({ deleting: true, status });
  const kinds = (observed: Observed, instant = 0) => decide(observed, at(instant)).actions.map((action) => action.kind);

  it('records the holder first, then deletes the Lease, then waits for death or lapse', () => {
    const held = observedLock({ lock: deleting(), lease: heldBy(holder), pods: [holder] });
    const written = decide(held, at(0)).actions[0];
    expect(written?.kind).toBe('WriteStatus');
    const status = written?.kind === 'WriteStatus' ? written.status : {};
    expect(status.holder).toMatchObject({ name: 'a' });
    expect(kinds({ ...held, lock: deleting(status) })).toEqual(['DeleteLease']);

    const gone = { ...held, lock: deleting(status), lease: undefined, leaseAbsentSince: 100 };
    const settled = decide(gone, at(100)).actions.find((action) => action.kind === 'WriteStatus')?.status ?? status;
    const waits = { ...gone, lock: deleting(settled) };
    expect(kinds(waits, 20_099)).toEqual([]);
    expect(kinds(waits, 20_100)).toEqual(['RemoveFinalizer']);
    const dead = aHolder('a', 900n, { confirmedDead: true });
    expect(kinds({ ...waits, pods: [dead], lastSeen: () => dead }, 200)).toEqual(['RemoveFinalizer']);
  });

  it('never makes a new Lease, and grants nothing', () => {
    const observed = observedLock({ lock: deleting(), lease: undefined, pods: [queued('b', 1n)] });
    expect(kinds(observed)).toEqual(['RemoveFinalizer']);
  });
});

describe('status', () => {
  it('is not written while only renewals happen', () => {
    const holder = aHolder('a', 900n);
    const first = observedLock({ lease: heldBy(holder), pods: [holder, queued('b', 1n)] });
    const status = decide(first, at(0)).actions.find((action) => action.kind === 'WriteStatus')?.status ?? {};
    const lease = heldBy(holder, {
      renewTime: '2026-01-01T00:00:06.000000Z',
      resourceVersion: '1001',
      observedAt: 5000,
    });
    expect(decide({ ...first, lock: aLock({ status }), lease }, at(5000)).actions).toEqual([]);
  });

  it('never lets the token fall', () => {
    const lock = aLock({ status: { fencingToken: '5000' } });
    const status = decide(observedLock({ lock }), at(0)).actions.find(
      (action) => action.kind === 'WriteStatus',
    )?.status;
    expect(status?.fencingToken).toBe('5000');
  });

  it('lists ten waiters and counts all', () => {
    const pods = Array.from({ length: 12 }, (_, i) => queued(`p${i}`, BigInt(i + 1)));
    const holder = aHolder('a', 900n);
    const observed = observedLock({ lease: heldBy(holder), pods: [holder, ...pods] });
    const status = decide(observed, at(0)).actions.find((action) => action.kind === 'WriteStatus')?.status;
    expect(status?.waiters).toBe(12);
    expect(status?.queue).toHaveLength(10);
    expect(status?.queue?.[0]?.message).toBe('Next in line; Pod a holds the lock.');
  });
});
