import { describe, expect, it } from 'vitest';
import type { DistributedLock, LockWaiter } from '../../src/api/generated/distributedlock.ts';
import type { RawLease } from '../../src/core/lease.ts';
import type { RawContainerStatus, RawPod } from '../../src/core/raw-pod.ts';
import { holderOf, rowsOf, type Sight, settledHolder } from '../../tools/demo/sight.ts';

interface PodFacts {
  readonly program?: RawContainerStatus['state'];
  readonly leader?: boolean;
  readonly deleting?: boolean;
  readonly phase?: string;
}

const aPod = (
  name: string,
  { program = {}, leader = false, deleting = false, phase = 'Pending' }: PodFacts = {},
): RawPod => ({
  metadata: {
    name,
    namespace: 'shop',
    uid: `uid-${name}`,
    resourceVersion: '1',
    labels: leader ? { 'kilit.dev/leader': 'true' } : {},
    ...(deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
  },
  spec: { containers: [{ name: 'app' }] },
  status: { phase, containerStatuses: [{ name: 'app', state: program }] },
});

const running: PodFacts = { program: { running: {} }, phase: 'Running' };

const heldBy = (pod: string, token: string): RawLease => ({
  metadata: {
    name: 'kilit.billing',
    namespace: 'shop',
    uid: 'uid-lease',
    resourceVersion: '1',
    annotations: { 'kilit.dev/fencing-token': token },
  },
  spec: { holderIdentity: pod === '' ? '' : `${pod}_uid-${pod}` },
});

const queueOf = (...waiters: readonly Omit<LockWaiter, 'kind' | 'uid'>[]): DistributedLock => ({
  apiVersion: 'kilit.dev/v1alpha1',
  kind: 'DistributedLock',
  metadata: { name: 'billing', namespace: 'shop', uid: 'uid-lock', resourceVersion: '1' },
  spec: {
    leaseDurationSeconds: 5,
    takeoverDelaySeconds: 5,
    startDeadlineSeconds: 60,
    takeover: 'Lease',
    onRenewalFailure: 'Stop',
  },
  status: { queue: waiters.map((waiter) => ({ ...waiter, kind: 'Pod', uid: `uid-${waiter.name}` })) },
});

const aSight = (over: Partial<Sight> = {}): Sight => ({
  lease: heldBy('worker-1', '5'),
  lock: undefined,
  election: undefined,
  pods: [],
  printed: new Map(),
  frozen: new Set(),
  ...over,
});

const rowOf = (pod: RawPod, over: Partial<Sight> = {}) =>
  rowsOf(aSight({ pods: [pod], ...over })).find((row) => row.pod === pod.metadata.name);

describe('the holder', () => {
  it('is whom the Lease names', () => {
    expect(holderOf(aSight())).toEqual({ name: 'worker-1', uid: 'uid-worker-1', token: '5' });
  });

  it('is nobody when the Lease is free or not there', () => {
    expect(holderOf(aSight({ lease: heldBy('', '5') }))).toBeUndefined();
    expect(holderOf(aSight({ lease: undefined }))).toBeUndefined();
  });
});

describe('a hand-over is over', () => {
  const settled = aSight({
    pods: [aPod('worker-1', { ...running, leader: true }), aPod('worker-2')],
    printed: new Map([['uid-worker-1', '5']]),
  });
  const late = aPod('worker-2', running);

  it("when the holder's program alone runs, with the Lease's token and the leader label", () => {
    expect(settledHolder(settled)?.name).toBe('worker-1');
  });

  it('also while a Pod is late that is known to be', () => {
    expect(settledHolder({ ...settled, pods: [...settled.pods.slice(0, 1), late] }, 'uid-worker-2')?.name).toBe(
      'worker-1',
    );
  });

  it.each<{ readonly when: string; readonly over: Partial<Sight> }>([
    { when: 'the lock is free', over: { lease: heldBy('', '5') } },
    { when: 'its program has printed nothing yet', over: { printed: new Map() } },
    { when: 'its program printed another token', over: { printed: new Map([['uid-worker-1', '4']]) } },
    { when: 'another program runs', over: { pods: [...settled.pods.slice(0, 1), late] } },
    { when: 'it has no leader label yet', over: { pods: [aPod('worker-1', running)] } },
    {
      when: 'another Pod still has the leader label',
      over: { pods: [...settled.pods, aPod('worker-3', { leader: true })] },
    },
  ])('not when $when', ({ over }) => {
    expect(settledHolder({ ...settled, ...over })).toBeUndefined();
  });
});

describe('the row of a Pod', () => {
  it.each<{ readonly what: string; readonly pod: PodFacts; readonly state: string }>([
    { what: 'whose program runs', pod: running, state: 'holds' },
    { what: 'whose program is not there yet', pod: {}, state: 'granted' },
    { what: 'whose program has died', pod: { program: { terminated: {} }, phase: 'Running' }, state: 'ended' },
    { what: 'that has ended', pod: { phase: 'Failed' }, state: 'ended' },
    { what: 'that is being deleted', pod: { ...running, deleting: true }, state: 'stopping' },
  ])('that the Lease names and $what says $state, with the token', ({ pod, state }) => {
    expect(rowOf(aPod('worker-1', pod))).toMatchObject({ state, token: '5' });
  });

  it('says that a frozen holder cannot renew', () => {
    expect(rowOf(aPod('worker-1', running), { frozen: new Set(['uid-worker-1']) })?.why).toContain('cannot renew');
  });

  it('says stale, with its old token, when the program runs and another Pod holds', () => {
    const printed = new Map([['uid-worker-2', '4']]);
    expect(rowOf(aPod('worker-2', running), { printed })).toMatchObject({ state: 'stale', token: '4' });
  });

  it('says why a Pod waits, without the name of the holder', () => {
    const message = 'Next in line; Pod worker-1 holds the lock.';
    const lock = queueOf({ name: 'worker-2', reason: 'Waiting', message });
    expect(rowOf(aPod('worker-2'), { lock })).toEqual({
      pod: 'worker-2',
      state: 'waits',
      token: '',
      why: 'next in line',
    });
  });

  it('keeps every other reason as the operator gives it', () => {
    const lock = queueOf({ name: 'worker-2', reason: 'NodeNotReady', message: 'Node n1 is not Ready.' });
    expect(rowOf(aPod('worker-2'), { lock })?.why).toBe('NodeNotReady: Node n1 is not Ready');
  });

  it.each(['NotScheduled', 'SidecarNotRunning'])('says that a new Pod starts when the reason is %s', (reason) => {
    expect(rowOf(aPod('worker-2'), { lock: queueOf({ name: 'worker-2', reason }) })?.why).toBe('starting');
  });
});

describe('the rows', () => {
  it('stand in the order of their numbers', () => {
    const pods = ['worker-10', 'worker-9', 'worker-1'].map((name) => aPod(name));
    expect(rowsOf(aSight({ pods })).map((row) => row.pod)).toEqual(['worker-1', 'worker-9', 'worker-10']);
  });

  it('keep a holder whose Pod is gone', () => {
    expect(rowsOf(aSight())).toEqual([
      { pod: 'worker-1', state: 'ended', token: '5', why: expect.stringContaining('gone') as string },
    ]);
  });
});
