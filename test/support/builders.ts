/** Builders of what the operator observes: `aLock()`, `aPod('a').queued(1)`, `aLease().heldBy(pod)`. */
import type { DistributedLockStatus } from '../../src/api/generated/distributedlock.ts';
import { LOCK_FINALIZER } from '../../src/api/names.ts';
import type { LeaseView, Terms } from '../../src/core/lease.ts';
import type { LockView } from '../../src/core/lock.ts';
import type { NodeView } from '../../src/core/node.ts';
import type { Now, Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';

export const aNode = (over: Partial<NodeView> = {}): NodeView => ({
  name: 'n1',
  ready: true,
  cordoned: false,
  kubeletVersion: 'v1.36.3',
  declaredFeatures: ['RestartAllContainersOnContainerExits'],
  ...over,
});

export const aPod = (name: string, over: Partial<PodView> = {}): PodView => ({
  name,
  namespace: 'shop',
  uid: `uid-${name}`,
  resourceVersion: '100',
  lock: 'billing',
  createdAt: '2026-01-01T00:00:00Z',
  node: 'n1',
  deleting: false,
  finalizers: [],
  phase: 'Pending',
  disrupted: false,
  injected: true,
  token: undefined,
  leader: false,
  queuedAt: undefined,
  graceSeconds: 30,
  containers: 2,
  sidecarRunning: true,
  sidecarWaiting: undefined,
  confirmedDead: false,
  workload: undefined,
  progress: { runs: {}, completed: 0, lastAt: undefined },
  notStarted: undefined,
  ...over,
});

/** A Pod that carries the marks of a grant, and whose program runs. */
export const aHolder = (name: string, token: bigint, over: Partial<PodView> = {}): PodView =>
  aPod(name, { phase: 'Running', token: token.toString(), leader: true, progress: runningSince(0), ...over });

export const runningSince = (since: number): PodView['progress'] => ({
  runs: { 'containerd://1': since },
  completed: 0,
  lastAt: undefined,
});

/** A Pod of a version of the Deployment `billing`, made in this second. */
export const ofVersion = (revision: string, second = 0): Pick<PodView, 'workload' | 'createdAt'> => ({
  workload: { id: 'Deployment/billing', revision },
  createdAt: `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`,
});

export const SPEC: LockView['spec'] = {
  leaseDurationSeconds: 15,
  takeoverDelaySeconds: 5,
  takeover: 'Lease',
  onRenewalFailure: 'Stop',
  startDeadlineSeconds: 60,
  maxHoldSeconds: undefined,
};

export const aLock = (over: Partial<LockView> & { readonly status?: DistributedLockStatus } = {}): LockView => ({
  namespace: 'shop',
  name: 'billing',
  uid: 'uid-lock',
  resourceVersion: '50',
  generation: 1,
  deleting: false,
  finalizers: [LOCK_FINALIZER],
  spec: SPEC,
  requests: { break: undefined, handover: undefined },
  status: {},
  ...over,
});

export const TERMS: Terms = {
  leaseDurationSeconds: 15,
  takeoverDelaySeconds: 5,
  gracePeriodSeconds: 30,
  takeover: 'Lease',
  onRenewalFailure: 'Stop',
};

export const aLease = (over: Partial<LeaseView> = {}): LeaseView => ({
  namespace: 'shop',
  name: 'kilit.billing',
  uid: 'uid-lease',
  resourceVersion: '1000',
  ownerUid: 'uid-lock',
  token: 900n,
  holder: undefined,
  acquireTime: '',
  renewTime: '',
  transitions: 3,
  terms: TERMS,
  observedAt: 0,
  confirmedAt: undefined,
  yieldAsked: undefined,
  broken: undefined,
  ...over,
});

export const heldBy = (pod: PodView, over: Partial<LeaseView> = {}): LeaseView =>
  aLease({
    holder: { identity: `${pod.name}_${pod.uid}`, name: pod.name, uid: pod.uid, node: pod.node },
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:01.000000Z',
    confirmedAt: 0,
    ...over,
  });

export const observedLock = (over: Partial<Observed> = {}): Observed => {
  const pods = over.pods ?? [];
  return {
    lock: aLock(),
    lease: aLease(),
    leaseAbsentSince: 0,
    roles: { role: true, roleBinding: true },
    pods,
    lastSeen: (uid) => pods.find((pod) => pod.uid === uid),
    nodes: new Map([['n1', aNode()]]),
    gate: { open: true, base: 0n },
    failure: undefined,
    ...over,
  };
};

export const at = (instant: number): Now => ({ instant, micros: 1_767_225_600_000_000n + BigInt(instant) * 1000n });
