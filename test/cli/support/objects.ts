/** Objects as the API server serves them: `aRawLock()`, `aRawLease()`, `aRawPod('a')`. */
import type { DistributedLock, DistributedLockStatus } from '../../../src/api/generated/distributedlock.ts';
import type { DoctorPod } from '../../../src/cli/doctor/facts.ts';
import type { RawLease } from '../../../src/core/lease.ts';

export const LOCKS = '/apis/kilit.dev/v1alpha1/distributedlocks';
export const LEASES = '/apis/coordination.k8s.io/v1/leases';

/** 2026-01-01T00:05:00Z: five minutes after the lock of these builders was granted. */
export const NOW = Date.parse('2026-01-01T00:05:00Z');

/** What the tests look at; a newer CRD may have more. */
const specOf = (leaseDurationSeconds: number): unknown => ({ leaseDurationSeconds, takeoverDelaySeconds: 5 });

export const aRawLock = (
  over: {
    readonly name?: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly leaseDurationSeconds?: number;
    readonly status?: DistributedLockStatus | Readonly<Record<string, unknown>>;
  } = {},
): DistributedLock => ({
  apiVersion: 'kilit.dev/v1alpha1',
  kind: 'DistributedLock',
  metadata: {
    name: over.name ?? 'billing',
    namespace: over.namespace ?? 'shop',
    uid: 'uid-lock',
    resourceVersion: '50',
    creationTimestamp: '2025-12-31T00:05:00Z',
    ...(over.annotations !== undefined && { annotations: over.annotations }),
  },
  spec: specOf(over.leaseDurationSeconds ?? 15) as DistributedLock['spec'],
  status: {
    holder: { kind: 'Pod', name: 'a', uid: 'uid-a', node: 'n1' },
    acquiredTime: '2026-01-01T00:00:00.000000Z',
    fencingToken: '900',
    transitions: 3,
    waiters: 1,
    queue: [
      { kind: 'Pod', name: 'b', uid: 'uid-b', reason: 'Waiting', message: 'Next in line; Pod a holds the lock.' },
    ],
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'Ready',
        message: 'The lock can be granted.',
        lastTransitionTime: '2025-12-31T00:05:00Z',
      },
    ],
    ...over.status,
  },
});

export const aRawLease = (
  over: {
    readonly name?: string;
    readonly namespace?: string;
    readonly holder?: string;
    readonly token?: string;
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly spec?: RawLease['spec'];
  } = {},
): RawLease => ({
  metadata: {
    name: over.name ?? 'kilit.billing',
    namespace: over.namespace ?? 'shop',
    uid: 'uid-lease',
    resourceVersion: over.resourceVersion ?? '1000',
    annotations: {
      'kilit.dev/fencing-token': over.token ?? '900',
      'kilit.dev/takeover-delay-seconds': '5',
      'kilit.dev/grace-seconds': '30',
      'kilit.dev/node': 'n1',
      ...over.annotations,
    },
  },
  spec: {
    holderIdentity: over.holder ?? 'a_uid-a',
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:04:57.000000Z',
    leaseTransitions: 3,
    ...over.spec,
  },
});

export const aRawPod = (
  name: string,
  over: {
    readonly metadata?: Partial<DoctorPod['metadata']>;
    readonly spec?: Partial<DoctorPod['spec']>;
    readonly status?: DoctorPod['status'];
  } = {},
): DoctorPod => ({
  metadata: {
    name,
    namespace: 'shop',
    uid: `uid-${name}`,
    resourceVersion: '10',
    labels: { 'kilit.dev/lock': 'billing' },
    ...over.metadata,
  },
  spec: {
    containers: [{ name: 'app' }],
    initContainers: [
      { name: 'kilit-reset' },
      { name: 'kilit', restartPolicy: 'Always', ports: [{ containerPort: 9911 }] },
    ],
    ...over.spec,
  },
  status: over.status ?? { phase: 'Pending' },
});
