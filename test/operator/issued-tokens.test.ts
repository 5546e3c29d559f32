import { describe, expect, it } from 'vitest';
import type { DistributedLock } from '../../src/api/generated/distributedlock.ts';
import type { Action } from '../../src/core/actions.ts';
import type { RawLease } from '../../src/core/lease.ts';
import { lockView } from '../../src/core/lock.ts';
import { createBehindCheck } from '../../src/operator/behind-check.ts';
import { type Caches, createCaches } from '../../src/operator/caches.ts';
import { createIssuedTokens } from '../../src/operator/issued-tokens.ts';

const lease = (revision: number, token = '0'): RawLease => ({
  metadata: {
    name: 'kilit.billing',
    namespace: 'shop',
    uid: 'uid-lease',
    resourceVersion: String(revision),
    annotations: { 'kilit.dev/fencing-token': token },
  },
});
const lock = (fencingToken: string, reason = 'Ready') => ({
  apiVersion: 'kilit.dev/v1alpha1' as const,
  kind: 'DistributedLock' as const,
  spec: {} as DistributedLock['spec'],
  metadata: { name: 'billing', namespace: 'shop', uid: 'uid-lock', resourceVersion: '5' },
  status: {
    fencingToken,
    conditions: [{ type: 'Ready', status: 'True' as const, reason, message: '', lastTransitionTime: '' }],
  },
});
const namespace = (revision: number, base: string) => ({
  metadata: {
    name: 'kilit-system',
    uid: 'uid-namespace',
    resourceVersion: String(revision),
    annotations: { 'kilit.dev/token-base': base },
  },
});

function remembering() {
  const caches = createCaches('kilit-system');
  const told: string[] = [];
  const issued = createIssuedTokens({
    caches,
    log: { error: (fields) => void told.push(JSON.stringify(fields)) },
    wentBack: () => void told.push('decide anew'),
  });
  return { caches, told, issued };
}

describe('a running operator', () => {
  it('remembers the highest token, whoever showed it', () => {
    const { caches, issued } = remembering();
    caches.leases.put(lease(10, '700'));
    expect(issued.known()).toMatchObject({ highestToken: 700n, revision: 10n });
    caches.locks.put(lock('900'));
    caches.leases.put(lease(11, '800'));
    expect(issued.known()).toEqual({ highestToken: 900n, revision: 11n });
  });

  it('remembers how far tokens may have got when revisions go back, with the base of then', () => {
    const { caches, told, issued } = remembering();
    caches.tokenBase.put(namespace(20, '1000000'));
    caches.leases.put(lease(5_000));
    caches.leases.takeList([lease(100)], '200', caches.leases.beforeList());
    // 10,000 revisions may have been written unseen.
    expect(issued.known().fall).toEqual({ from: 5_000n, to: 200n, issued: 1_015_000n });
    expect(told).toEqual([JSON.stringify({ from: '5000', to: '200', base: '1000000' }), 'decide anew']);
  });

  it('does not forget a greater height by a second restore', () => {
    const { caches, issued } = remembering();
    caches.leases.put(lease(5_000));
    caches.leases.takeList([lease(100)], '200', caches.leases.beforeList());
    caches.leases.takeList([lease(90)], '150', caches.leases.beforeList());
    expect(issued.known().fall).toEqual({ from: 200n, to: 150n, issued: 15_000n });
  });

  it('counts the locks that are behind', () => {
    const { caches, issued } = remembering();
    caches.leases.put(lease(300));
    caches.locks.put(lock('200'));
    const gate = (base: bigint) => ({ open: true, base, ...issued.known() }) as const;
    expect(issued.locksBehind(gate(0n))).toBe(0);
    caches.locks.put({ ...lock('2000'), metadata: { ...lock('').metadata, resourceVersion: '6' } });
    expect(issued.locksBehind(gate(0n))).toBe(1);
    expect(issued.locksBehind(gate(2_000n))).toBe(0);
  });
});

describe('before a lock is said to have fallen behind', () => {
  const writing = (reason: string, before = 'Ready'): Action => ({
    kind: 'WriteStatus',
    lock: lockView(lock('2000', before)),
    status: lock('2000', reason).status,
  });
  function checked(present: { readonly lease: RawLease; readonly namespace: object }) {
    const caches: Caches = createCaches('kilit-system');
    caches.leases.put(lease(300));
    caches.tokenBase.put(namespace(20, '0'));
    const asked: string[] = [];
    const check = createBehindCheck({
      caches,
      namespace: 'kilit-system',
      client: {
        close() {},
        request: <Answer>({ path }: { readonly path: string }) => {
          asked.push(path);
          return Promise.resolve((path.includes('leases') ? present.lease : present.namespace) as Answer);
        },
      },
    });
    return { caches, asked, check };
  }
  const same = { lease: lease(300), namespace: namespace(20, '0') };

  it('reads the Lease and the base, and says it when they are as observed', async () => {
    const { asked, check } = checked(same);
    await check(writing('RevisionFellBehind'));
    expect(asked).toEqual([
      '/apis/coordination.k8s.io/v1/namespaces/shop/leases/kilit.billing',
      '/api/v1/namespaces/kilit-system',
    ]);
  });

  it.each([
    ['the Lease is newer: its watch lags', { ...same, lease: lease(2_500) }],
    ['the base was raised: its watch lags', { ...same, namespace: namespace(21, '5000') }],
  ])('says nothing when %s', async (_name, present) => {
    const { caches, check } = checked(present);
    await expect(check(writing('RevisionFellBehind'))).rejects.toMatchObject({ status: 409 });
    expect(caches.leases.get('shop', 'kilit.billing')?.raw).toEqual(present.lease);
    expect(caches.tokenBase.get('', 'kilit-system')?.raw).toEqual(present.namespace);
  });

  it('reads nothing to say something else, or to say it again', async () => {
    const { asked, check } = checked(same);
    await check(writing('Ready'));
    await check(writing('RevisionFellBehind', 'RevisionFellBehind'));
    expect(asked).toEqual([]);
  });
});
