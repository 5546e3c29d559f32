import { describe, expect, it } from 'vitest';
import type { RawPod } from '../../src/core/raw-pod.ts';
import { createCaches } from '../../src/operator/caches.ts';
import { Observer } from '../../src/operator/observe.ts';
import { aLock } from '../support/builders.ts';

const gate = { gate: { open: true, base: 0n }, failure: undefined } as const;

const pod = (uid: string, revision: number): RawPod => ({
  metadata: {
    name: 'a',
    namespace: 'shop',
    uid,
    resourceVersion: String(revision),
    labels: { 'kilit.dev/lock': 'billing' },
  },
  spec: { containers: [{ name: 'app' }], terminationGracePeriodSeconds: 300 },
  status: { phase: 'Running' },
});

const { maxHoldSeconds: _, ...spec } = aLock().spec;
const lock = (revision: number, over: object = {}) => ({
  apiVersion: 'kilit.dev/v1alpha1',
  kind: 'DistributedLock',
  metadata: { name: 'billing', namespace: 'shop', uid: 'lock', resourceVersion: String(revision), generation: 1 },
  spec,
  ...over,
});

function observed() {
  const caches = createCaches('kilit-system');
  const woken: string[] = [];
  const observer = new Observer(caches, (key) => woken.push(key));
  return { caches, observer, woken };
}

describe('an observer', () => {
  it('keeps the last state of a Pod whose deletion was missed, and counts it as ending', () => {
    const { caches, observer } = observed();
    caches.pods.put(pod('u1', 5));
    caches.pods.takeList([], '9');
    const { pods, lastSeen } = observer.observe('shop/billing', gate);
    expect(pods).toEqual([]);
    expect(lastSeen('u1')).toMatchObject({ phase: 'Running', deleting: true, graceSeconds: 300 });
  });

  it('does the same for a Pod that was made anew under its name', () => {
    const { caches, observer } = observed();
    caches.pods.put(pod('u1', 5));
    caches.pods.put(pod('u2', 9));
    const { pods, lastSeen } = observer.observe('shop/billing', gate);
    expect(pods.map(({ uid }) => uid)).toEqual(['u2']);
    expect(lastSeen('u1')?.deleting).toBe(true);
    expect(lastSeen('u2')?.deleting).toBe(false);
  });

  it('wakes for a changed wish, and not for a status that was written', () => {
    const { caches, woken } = observed();
    caches.locks.put(lock(5));
    caches.locks.put(lock(6, { status: { waiters: 1 } }));
    expect(woken).toEqual(['shop/billing']);
    caches.locks.put(lock(7, { spec: { ...spec, leaseDurationSeconds: 30 } }));
    expect(woken).toEqual(['shop/billing', 'shop/billing']);
  });

  it('takes a Role without its label for one that has to be written', () => {
    const { caches, observer } = observed();
    caches.locks.put(lock(5));
    caches.roles.put({
      metadata: { name: 'kilit.billing', namespace: 'shop', uid: 'r', resourceVersion: '6' },
      rules: [],
    });
    expect(observer.observe('shop/billing', gate).roles).toEqual({ role: false, roleBinding: false });
  });
});
