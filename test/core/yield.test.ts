import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import type { Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';
import { aHolder, aLease, aLock, aNode, aPod, at, heldBy, observedLock, ofVersion, SPEC } from '../support/builders.ts';

const NODES = new Map([
  ['n1', aNode()],
  ['n2', aNode({ name: 'n2' })],
  ['shut', aNode({ name: 'shut', cordoned: true })],
  ['shut2', aNode({ name: 'shut2', cordoned: true })],
]);

const queued = (name: string, place: bigint, over: Partial<PodView> = {}) => aPod(name, { queuedAt: place, ...over });

const held = (holder: PodView, waiters: readonly PodView[], over: Partial<Observed> = {}): Observed =>
  observedLock({ lease: heldBy(holder), pods: [holder, ...waiters], nodes: NODES, ...over });

/** Why the holder is asked to yield, on whose account, and what is granted. */
function wanted(observed: Observed, instant = 1000): readonly string[] {
  return decide(observed, at(instant)).actions.flatMap((action) => {
    if (action.kind === 'AskYield')
      return [`${action.reason}${action.by === undefined ? '' : ` for ${action.by.name}`}`];
    return action.kind === 'Grant' ? [`Grant ${action.pod.name}`] : [];
  });
}

const idle = { progress: { runs: {}, completed: 0, lastAt: undefined } };

describe('a waiter of a newer version', () => {
  const old = aHolder('old', 900n, ofVersion('v1', 0));
  const fresh = queued('fresh', 1n, ofVersion('v2', 5));

  it('makes the holder yield', () => {
    expect(wanted(held(old, [fresh]))).toEqual(['NewerRevision for fresh']);
  });

  it('does so after a rollback too: the Pod of the old template was made later', () => {
    expect(wanted(held(aHolder('a', 900n, ofVersion('v2', 5)), [queued('b', 1n, ofVersion('v1', 9))]))).toEqual([
      'NewerRevision for b',
    ]);
  });

  it('is told from an older one of the same second by the order in which they were observed', () => {
    const twin = queued('twin', 1n, ofVersion('v2', 0));
    expect(wanted(held(old, [twin]))).toEqual(['NewerRevision for twin']);
    expect(wanted(held(old, [], { pods: [twin, old] }))).toEqual([]);
  });

  it.each([
    ['that was made earlier: a former version that waits again', ofVersion('v2', 0), 9],
    ['of the same version', ofVersion('v1', 5), 0],
    ['of another workload', { ...ofVersion('v2', 5), workload: { id: 'Deployment/other', revision: 'v2' } }, 0],
    ['that no workload made', { createdAt: ofVersion('v2', 5).createdAt }, 0],
    ['whose sidecar does not run yet', { ...ofVersion('v2', 5), sidecarRunning: false }, 0],
    ['that is being deleted', { ...ofVersion('v2', 5), deleting: true }, 0],
    ['without a place in the queue', { ...ofVersion('v2', 5), queuedAt: undefined }, 0],
    ['whose programs did not start under its last grant', { ...ofVersion('v2', 5), notStarted: '890' }, 0],
    ['on a cordoned node', { ...ofVersion('v2', 5), node: 'shut' }, 0],
  ])('asks nothing: one %s', (_, over, second) => {
    expect(wanted(held(aHolder('old', 900n, ofVersion('v1', second)), [queued('w', 1n, over)]))).toEqual([]);
  });

  it('comes before waiters of its own workload that are older, and they keep their places', () => {
    const before = queued('before', 1n, ofVersion('v1', 1));
    const free = observedLock({ pods: [before, queued('fresh', 2n, ofVersion('v2', 5))], nodes: NODES });
    expect(wanted(free)).toEqual(['Grant fresh']);
    expect(decide(free, at(0)).actions.some((action) => 'pod' in action && action.pod.name === 'before')).toBe(false);
  });

  it('does not come before waiters of other workloads', () => {
    const other = queued('other', 1n);
    expect(wanted(observedLock({ pods: [other, queued('fresh', 2n, ofVersion('v2', 5))] }))).toEqual(['Grant other']);
  });
});

describe('a cordoned node', () => {
  const drained = aHolder('drained', 900n, { node: 'shut' });

  it('makes its holder yield to a waiter elsewhere', () => {
    expect(wanted(held(drained, [queued('w', 1n, { node: 'n2' })]))).toEqual(['NodeDrain for w']);
  });

  it.each([
    ['all waiters are on cordoned nodes', { node: 'shut2' }],
    ['the waiter elsewhere cannot be granted the lock', { node: 'n2', sidecarRunning: false }],
    ['nobody could start elsewhere', { node: 'n2', notStarted: '890' }],
  ])('asks nothing while %s', (_, over) => {
    expect(wanted(held(drained, [queued('w', 1n, over)]))).toEqual([]);
  });

  it('makes waiters on it be passed over while one elsewhere can be granted the lock', () => {
    const pods = [queued('shut', 1n, { node: 'shut' }), queued('open', 2n, { node: 'n2' })];
    expect(wanted(observedLock({ pods, nodes: NODES }))).toEqual(['Grant open']);
    expect(wanted(observedLock({ pods: pods.slice(0, 1), nodes: NODES }))).toEqual(['Grant shut']);
  });

  it('counts for more than a newer version, so that the two do not take the lock from each other for ever', () => {
    const newer = ofVersion('v2', 5);
    const older = ofVersion('v1', 0);
    expect(wanted(held(aHolder('a', 900n, { ...newer, node: 'shut' }), [queued('b', 1n, older)]))).toEqual([
      'NodeDrain for b',
    ]);
    expect(wanted(held(aHolder('b', 900n, older), [queued('a', 1n, { ...newer, node: 'shut' })]))).toEqual([]);
  });
});

describe('a holder whose program does not run', () => {
  const stuck = aHolder('stuck', 900n, idle);
  const waiter = queued('w', 1n);

  it('yields startDeadlineSeconds after its grant was confirmed', () => {
    const observed = held(stuck, [waiter], { lease: heldBy(stuck, { confirmedAt: 5000, observedAt: 60_000 }) });
    expect(wanted(observed, 64_999)).toEqual([]);
    expect(decide(observed, at(64_999)).recheckAt).toBe(65_000);
    expect(wanted(observed, 65_000)).toEqual(['NotStarted']);
  });

  it('does not while nobody else could be granted the lock', () => {
    const lease = heldBy(stuck, { observedAt: 90_000 });
    expect(wanted(held(stuck, [], { lease }), 99_000)).toEqual([]);
    expect(wanted(held(stuck, [queued('w', 1n, { sidecarRunning: false })], { lease }), 99_000)).toEqual([]);
  });

  it('does not while a program runs, however short, and does between two runs of a crash loop', () => {
    const lease = heldBy(stuck, { observedAt: 60_000 });
    const running = aHolder('stuck', 900n, { progress: { runs: { c1: 60_500 }, completed: 0, lastAt: undefined } });
    expect(wanted(held(running, [waiter], { lease }), 61_000)).toEqual([]);
    expect(wanted(held(stuck, [waiter], { lease }), 61_000)).toEqual(['NotStarted']);
  });

  it('does startDeadlineSeconds after its last run that counts, in a later crash loop', () => {
    const lease = heldBy(stuck, { observedAt: 100_000 });
    const crashed = aHolder('stuck', 900n, { progress: { runs: {}, completed: 0, lastAt: 50_000 } });
    expect(wanted(held(crashed, [waiter], { lease }), 109_999)).toEqual([]);
    expect(wanted(held(crashed, [waiter], { lease }), 110_000)).toEqual(['NotStarted']);
  });

  it('yields to an older version too, which then keeps the lock', () => {
    const [old, bad] = [ofVersion('v1', 0), ofVersion('v2', 5)];
    const lease = heldBy(stuck, { observedAt: 60_000 });
    const badHolds = aHolder('stuck', 900n, { ...bad, ...idle });
    expect(wanted(held(badHolds, [queued('good', 1n, old)], { lease }), 61_000)).toEqual(['NotStarted']);
    const badWaits = queued('stuck', 2n, { ...bad, notStarted: '900' });
    const goodHolds = aHolder('good', 901n, old);
    expect(wanted(held(goodHolds, [badWaits], { lease: heldBy(goodHolds, { observedAt: 60_000 }) }), 61_000)).toEqual(
      [],
    );
  });

  it('carries a mark of it, which goes with its next grant', () => {
    const lease = heldBy(stuck, { yieldAsked: 'NotStarted' });
    const marks = decide(held(stuck, [waiter], { lease }), at(1000)).actions.filter(
      ({ kind }) => kind === 'MarkHolder',
    );
    expect(marks).toMatchObject([{ token: 900n, notStarted: true }]);
    const later = aHolder('stuck', 901n, { notStarted: '900' });
    const next = decide(held(later, [waiter], { lease: heldBy(later, { token: 901n }) }), at(1000)).actions;
    expect(next.filter(({ kind }) => kind === 'MarkHolder')).toMatchObject([{ token: 901n, notStarted: false }]);
  });

  it('carries it also if the operator did not come to write it before the lock was given back', () => {
    const freed = aLease({ yieldAsked: 'NotStarted' });
    const join = decide(observedLock({ lease: freed, pods: [stuck] }), at(1000)).actions.find(
      ({ kind }) => kind === 'JoinQueue',
    );
    expect(join).toMatchObject({ notStarted: true, reason: 'Yielded' });
  });
});

describe('maxHoldSeconds', () => {
  const lock = aLock({ spec: { ...SPEC, maxHoldSeconds: 20 } });
  const holder = aHolder('holder', 900n);
  const lease = heldBy(holder, { confirmedAt: 5000, observedAt: 20_000 });

  it('makes the holder yield when they have passed since its confirmation', () => {
    const observed = held(holder, [queued('w', 1n)], { lock, lease });
    expect(wanted(observed, 24_999)).toEqual([]);
    expect(decide(observed, at(24_999)).recheckAt).toBe(25_000);
    expect(wanted(observed, 25_000)).toEqual(['MaxHold']);
  });

  it('does not while nobody else could be granted the lock', () => {
    expect(wanted(held(holder, [], { lock, lease }), 25_000)).toEqual([]);
  });

  it('does not for one that would have to give it back at once', () => {
    const older = queued('w', 1n, ofVersion('v1', 0));
    const newer = aHolder('holder', 900n, ofVersion('v2', 5));
    expect(wanted(held(newer, [older], { lock, lease }), 25_000)).toEqual([]);
  });

  it('has no limit by default', () => {
    const renewed = heldBy(holder, { confirmedAt: 0, observedAt: 9_999_999_000 });
    expect(wanted(held(holder, [queued('w', 1n)], { lease: renewed }), 9_999_999_999)).toEqual([]);
  });
});

describe('nobody is asked to yield', () => {
  const drained = aHolder('drained', 900n, { node: 'shut' });
  const waiter = queued('w', 1n, { node: 'n2' });

  it('twice for one grant', () => {
    expect(wanted(held(drained, [waiter], { lease: heldBy(drained, { yieldAsked: 'MaxHold' }) }))).toEqual([]);
  });

  it('before it has confirmed', () => {
    const lease = heldBy(drained, { renewTime: heldBy(drained).acquireTime, confirmedAt: undefined });
    expect(wanted(held(drained, [waiter], { lease }))).toEqual([]);
  });

  it('while its Pod is being deleted, or is unknown', () => {
    expect(wanted(held({ ...drained, deleting: true }, [waiter]))).toEqual([]);
    expect(wanted(held(drained, [waiter], { pods: [waiter], lastSeen: () => undefined }))).toEqual([]);
  });

  it('while no grants are given', () => {
    const gate = { open: false, reason: 'PolicyNotEnforced', message: 'The binding is missing.' } as const;
    expect(wanted(held(drained, [waiter], { gate }))).toEqual([]);
  });
});

describe('the status of a holder that was asked to yield', () => {
  it('says so, and why', () => {
    const holder = aHolder('a', 900n);
    const lease = heldBy(holder, { yieldAsked: 'NodeDrain' });
    const write = decide(held(holder, [], { lease }), at(1000)).actions.find(({ kind }) => kind === 'WriteStatus');
    expect(write).toMatchObject({
      status: {
        conditions: [
          {},
          {
            type: 'Held',
            status: 'True',
            reason: 'YieldAsked',
            message: 'Held by Pod a with token 900, which was asked to yield (NodeDrain).',
          },
        ],
      },
    });
  });
});
