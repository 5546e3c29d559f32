/** `takeover: PodGone`: a grant passes on by the confirmed death of its holder or by the holder's release, never by time. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import type { Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';
import { aHolder, aLease, aLock, aPod, at, heldBy, observedLock, TERMS } from '../support/builders.ts';

const POD_GONE = { ...TERMS, takeover: 'PodGone' } as const;
const LONG = 1e12;
const kept = { finalizers: ['kilit.dev/holder'] };
const lock = aLock({ spec: { ...aLock().spec, takeover: 'PodGone' } });
const queued = (name: string, place: bigint, over: Partial<PodView> = {}) => aPod(name, { queuedAt: place, ...over });
const observed = (over: Partial<Observed>): Observed => observedLock({ lock, ...over });

const wanted = (from: Observed, instant = 0): readonly string[] =>
  decide(from, at(instant)).actions.flatMap((action) => {
    if (action.kind === 'WriteStatus') return [];
    return [
      [
        action.kind,
        ...('pod' in action ? [action.pod.name] : []),
        ...('ended' in action && action.ended !== undefined ? [action.ended.reason] : []),
      ].join(' '),
    ];
  });
const heldCondition = (from: Observed, instant: number) => {
  const status = decide(from, at(instant)).actions.find((action) => action.kind === 'WriteStatus')?.status;
  return status?.conditions?.find(({ type }) => type === 'Held');
};

describe('the finalizer of a Pod that is next in line', () => {
  it('comes before the grant, which waits until it was seen', () => {
    expect(wanted(observed({ pods: [queued('a', 1n)] }))).toEqual(['AddPodFinalizer a']);
    expect(wanted(observed({ pods: [queued('a', 1n, kept)] }))).toEqual(['Grant a']);
  });

  it('stays beside finalizers of others, such as those of a Job', () => {
    const tracked = queued('a', 1n, { finalizers: ['batch.kubernetes.io/job-tracking'] });
    expect(wanted(observed({ pods: [tracked] }))).toEqual(['AddPodFinalizer a']);
  });

  it('is not put on Pods further behind, nor while the lock is held or nothing can be granted', () => {
    expect(wanted(observed({ pods: [queued('a', 1n, kept), queued('b', 2n)] }))).toEqual(['Grant a']);
    const holder = aHolder('x', 900n, kept);
    const held = heldBy(holder, { terms: POD_GONE });
    expect(wanted(observed({ lease: held, pods: [holder, queued('a', 1n)] }))).toEqual([]);
    const gate = { open: false, reason: 'PolicyNotEnforced', message: 'no' } as const;
    expect(wanted(observed({ gate, pods: [queued('a', 1n)] }))).toEqual([]);
  });

  it('is not asked for by a lock with takeover Lease', () => {
    expect(wanted(observedLock({ pods: [queued('a', 1n)] }))).toEqual(['Grant a']);
  });

  it('keeps the proof of the former death in the Lease until the next grant', () => {
    const dead = aHolder('x', 900n, { ...kept, confirmedDead: true, deleting: true });
    const lease = heldBy(dead, { terms: POD_GONE });
    expect(wanted(observed({ lease, pods: [dead, queued('a', 1n)] }))).toEqual(['AddPodFinalizer a']);
    expect(wanted(observed({ lease, pods: [dead, queued('a', 1n, kept)] }))).toEqual(['Grant a ConfirmedDeath']);
  });

  it.each([
    ['it is deleted before its grant', { pods: [queued('a', 1n, { ...kept, deleting: true })] }],
    ['its node is not Ready any more', { pods: [queued('a', 1n, { ...kept, node: 'gone' })] }],
    ['takeover was changed back to Lease', { lock: aLock(), lease: heldBy(aHolder('x', 900n)) }],
    ['the lock was deleted', { lock: undefined, lease: undefined }],
    ['the lock is being deleted', { lock: { ...lock, deleting: true } }],
    ['the lock is being deleted and kept by somebody else', { lock: { ...lock, deleting: true, finalizers: ['x'] } }],
    ['grants are paused', { gate: { open: false, reason: 'PolicyNotEnforced', message: 'no' } }],
  ] as const satisfies readonly (readonly [string, Partial<Observed>])[])('goes when %s', (_, over) => {
    expect(wanted(observed({ pods: [queued('a', 1n, kept)], ...over }))).toContain('RemovePodFinalizer a');
  });

  it('goes when an earlier waiter became ready meanwhile', () => {
    const pods = [queued('a', 1n), queued('b', 2n, kept)];
    expect(wanted(observed({ pods }))).toEqual(['AddPodFinalizer a', 'RemovePodFinalizer b']);
  });
});

describe('the finalizer of a holder', () => {
  const holder = aHolder('a', 900n, kept);
  const lease = heldBy(holder, { terms: POD_GONE });

  it('stays while the Lease names it, whatever the lock says by then', () => {
    expect(wanted(observed({ lease, pods: [holder] }))).toEqual([]);
    expect(wanted(observedLock({ lease, pods: [holder] }))).toEqual([]);
    expect(wanted(observed({ lock: undefined, lease, pods: [holder] }))).not.toContain('RemovePodFinalizer a');
  });

  it('stays after its death until the Lease and the status say so, and goes then', () => {
    const dead = { ...holder, confirmedDead: true, phase: 'Succeeded', deleting: true };
    expect(wanted(observed({ lease, pods: [dead] }))).toEqual(['Free ConfirmedDeath']);
    const status = { holder: { kind: 'Pod', name: 'a', uid: 'uid-a' }, terms: POD_GONE };
    const unmarked = { ...dead, token: undefined, leader: false };
    expect(wanted(observed({ lock: { ...lock, status }, pods: [unmarked] }))).toEqual([]);
    expect(wanted(observed({ pods: [unmarked] }))).toEqual(['RemovePodFinalizer a']);
  });

  it('goes after its release, although it lives and waits again', () => {
    expect(wanted(observed({ pods: [queued('b', 1n, kept), queued('a', 2n, kept)] }))).toEqual([
      'Grant b',
      'RemovePodFinalizer a',
    ]);
  });

  it('is put back if a paused former leader took it away', () => {
    expect(wanted(observed({ lease, pods: [{ ...holder, finalizers: [] }] }))).toEqual(['AddPodFinalizer a']);
    expect(wanted(observed({ lease, pods: [{ ...holder, finalizers: [], deleting: true }] }))).toEqual([]);
  });
});

describe('a holder of which nothing is heard', () => {
  const holder = aHolder('a', 900n, kept);
  const next = queued('b', 1n);
  const from = (pod: PodView | undefined, over: Partial<Observed> = {}) =>
    observed({ lease: heldBy(pod ?? holder, { terms: POD_GONE }), pods: pod ? [pod, next] : [next], ...over });

  it.each([
    ['silent', holder],
    ['being deleted', { ...holder, deleting: true }],
    ['marked Failed by the Pod garbage collector', { ...holder, deleting: true, phase: 'Failed' }],
    ['gone without a proof', undefined],
  ])('keeps the lock for ever when it is %s', (_, pod) => {
    expect(wanted(from(pod), LONG)).toEqual([]);
    expect(decide(from(pod), at(LONG)).recheckAt).toBeUndefined();
  });

  it('keeps it by the terms of its grant, also when the lock says Lease by now', () => {
    expect(wanted(from(holder, { lock: aLock() }), LONG)).toEqual([]);
  });

  it('loses it by time under a grant that was made before the lock said PodGone', () => {
    const lease = heldBy(aHolder('a', 900n));
    expect(wanted(from(aHolder('a', 900n), { lease }), 20_000)).toEqual(['AddPodFinalizer b']);
  });

  it('loses it when it did not confirm the grant: no program was started', () => {
    const lease = heldBy(holder, { terms: POD_GONE, renewTime: '2026-01-01T00:00:00.000000Z' });
    const granted = { ...holder, token: '900' };
    expect(wanted(from(granted, { lease }), 9_999)).toEqual([]);
    expect(wanted({ ...from(granted, { lease }), pods: [granted, { ...next, ...kept }] }, 10_000)).toEqual([
      'Grant b NotConfirmed',
    ]);
  });

  it('loses it at once when its death is confirmed', () => {
    expect(wanted(from({ ...holder, confirmedDead: true, deleting: true }), LONG)).toEqual(['AddPodFinalizer b']);
  });

  it('says from the lapse of its lease on why the lock waits, and what to do', () => {
    expect(heldCondition(from(holder), 19_999)?.reason).toBe('Confirmed');
    expect(heldCondition(from(holder), 20_000)).toMatchObject({
      status: 'True',
      reason: 'HolderSilent',
      message:
        'Held by Pod a with token 900, which does not renew any more; its program may be alive. ' +
        'By takeover PodGone the lock waits until the kubelet of node n1 has reported the end of that Pod. ' +
        'Bring node n1 back, or delete the Pod. ' +
        'If node n1 is gone for good, make sure that it is switched off, then run: kilit break billing -n shop',
    });
    expect(heldCondition(from({ ...holder, deleting: true }), LONG)?.message).toContain(
      'The Pod is being deleted; until then its object stays (finalizer kilit.dev/holder).',
    );
    expect(heldCondition(from(undefined), LONG)?.message).toContain('The object of that Pod is gone');
  });
});

describe('a lock whose Lease was deleted under its holder', () => {
  const holder = aHolder('a', 900n, kept);
  const status = { fencingToken: '900', holder: { kind: 'Pod', name: 'a', uid: 'uid-a', node: 'n1' }, terms: POD_GONE };
  const lease = aLease({ token: 0n, uid: 'new-lease' });
  const pods = [holder, queued('b', 1n)];

  it('is granted to nobody before that Pod has ended, and keeps its proof', () => {
    const from = observed({ lock: { ...lock, status }, lease, pods });
    expect(wanted(from, LONG)).toEqual([]);
    expect(heldCondition(from, LONG)).toMatchObject({
      status: 'Unknown',
      reason: 'PreviousHolder',
      message: expect.stringContaining('Pod a held the lock, by takeover PodGone'),
    });
    const dead = { ...holder, confirmedDead: true, sidecarRunning: false };
    const after = {
      ...from,
      pods: [dead, queued('b', 1n)],
      lastSeen: (uid: string) => (uid === dead.uid ? dead : undefined),
    };
    expect(wanted(after, 53_999)).not.toContain('AddPodFinalizer b');
    expect(wanted(after, 54_000)).toContain('AddPodFinalizer b');
  });

  it('is granted when the terms of that grant have run out once an administrator broke it, and keeps who and why', () => {
    const request = JSON.stringify({ token: '900', by: 'alice', reason: 'the node is gone' });
    const broken = { ...lock, status, requests: { ...lock.requests, break: request } };
    const from = observed({ lock: broken, lease, pods });
    const recorded = decide(from, at(0)).actions.find((action) => action.kind === 'WriteStatus')?.status.lastBreak;
    if (recorded === undefined) throw new Error('The request was not recorded.');
    expect(recorded).toMatchObject({ token: '900', by: 'alice', reason: 'the node is gone' });
    const after = observed({ lock: { ...broken, status: { ...status, lastBreak: recorded } }, lease, pods });
    expect(wanted(after, 0)).toContain('DropRequest');
    const dropped = observed({ lock: { ...lock, status: { ...status, lastBreak: recorded } }, lease, pods });
    expect(wanted(dropped, 53_999)).toEqual([]);
    expect(wanted(dropped, 54_000)).toContain('AddPodFinalizer b');
  });

  it('is granted once the break is recorded when the terms of that grant have long run out', () => {
    const request = JSON.stringify({ token: '900', by: 'alice', reason: 'the node is gone' });
    const broken = { ...lock, status, requests: { ...lock.requests, break: request } };
    const from = observed({ lock: broken, lease, pods });
    expect(wanted(from, LONG)).toEqual([]);
    const lastBreak = decide(from, at(LONG)).actions.find((action) => action.kind === 'WriteStatus')?.status.lastBreak;
    if (lastBreak === undefined) throw new Error('The request was not recorded.');
    const recorded = observed({ lock: { ...broken, status: { ...status, lastBreak } }, lease, pods });
    expect(wanted(recorded, LONG)).toEqual(expect.arrayContaining(['AddPodFinalizer b', 'DropRequest']));
  });

  it('is not granted by a break of another grant', () => {
    const request = JSON.stringify({ token: '899', by: 'alice', reason: 'the node is gone' });
    const from = observed({ lock: { ...lock, status, requests: { ...lock.requests, break: request } }, lease, pods });
    expect(wanted(from, LONG)).toEqual(['DropRequest']);
  });

  it('waits for a marked Pod with the finalizer when the status has not named it yet', () => {
    expect(wanted(observed({ lock: { ...lock, status: { fencingToken: '800' } }, lease, pods }), LONG)).toEqual([]);
  });

  it('waits by time when it does not know for whom', () => {
    const from = observed({
      lock: { ...lock, status: { fencingToken: '900', terms: POD_GONE } },
      lease,
      pods: [queued('b', 1n, kept)],
    });
    expect(wanted(from, 53_999)).toEqual(['RemovePodFinalizer b']);
    expect(wanted(from, 54_000)).toEqual(['Grant b']);
  });

  it('goes only after its holder has ended when it is deleted itself, and then lets the Pod go', () => {
    const deleting = { ...lock, status, deleting: true };
    const from = observed({ lock: deleting, lease: undefined, pods });
    expect(wanted(from, LONG)).toEqual([]);
    expect(decide(from, at(LONG)).recheckAt).toBeUndefined();
    const dead = { ...holder, confirmedDead: true };
    expect(wanted({ ...from, pods: [dead], lastSeen: () => dead }, 0)).toEqual(['RemoveFinalizer']);
    expect(
      wanted(observed({ lock: undefined, lease: undefined, pods: [{ ...dead, token: undefined, leader: false }] })),
    ).toEqual(['RemovePodFinalizer a']);
  });
});
