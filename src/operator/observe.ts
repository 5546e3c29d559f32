import { LOCK_LABEL, leaseName } from '../api/names.ts';
import { sameJson } from '../core/json.ts';
import type { Instant } from '../core/lease.ts';
import type { LockView } from '../core/lock.ts';
import type { NodeView } from '../core/node.ts';
import type { GrantGate, Observed } from '../core/observed.ts';
import type { PodView } from '../core/pod.ts';
import type { Caches } from './caches.ts';
import { type Clock, instant, systemClock } from './clock.ts';
import { role, roleBinding } from './objects.ts';

/** A lock's place in queues and maps: `namespace/name`. */
export type LockKey = string;
export const lockKey = (namespace: string, lock: string): LockKey => `${namespace}/${lock}`;

/** Last states of deleted Pods are kept this many at a time: evidence of the death of a holder. */
const TOMBSTONES = 5_000;

/**
 * Gathers what one pass looks at, and tells which locks a change concerns.
 *
 * It indexes Pods by lock in the order in which they were first observed, and keeps the last state of deleted ones.
 */
export class Observer {
  readonly #caches: Caches;
  readonly #clock: Pick<Clock, 'monotonicSeconds'>;
  readonly #pods = new Map<LockKey, Map<string, PodView>>();
  readonly #tombstones = new Map<string, PodView>();
  readonly #leaseGoneAt = new Map<LockKey, Instant>();
  readonly #nodes = new Map<string, NodeView>();
  readonly #startedAt: Instant;

  constructor(caches: Caches, changed: (key: LockKey) => void, clock: Pick<Clock, 'monotonicSeconds'> = systemClock) {
    this.#caches = caches;
    this.#clock = clock;
    this.#startedAt = instant(clock);
    caches.pods.onChange(({ entry, previous }) => {
      const pod = entry?.view ?? previous?.view;
      if (pod === undefined) return;
      if (entry === undefined) this.#podGone(pod);
      else this.#podsOf(lockKey(pod.namespace, pod.lock)).set(pod.uid, pod);
      changed(lockKey(pod.namespace, pod.lock));
    });
    caches.locks.onChange(({ entry, previous }) => {
      const lock = (entry ?? previous)?.view;
      if (lock === undefined) return;
      const key = lockKey(lock.namespace, lock.name);
      if (entry === undefined) this.#leaseGoneAt.delete(key);
      // A pass that wrote is followed by another in any case. Were its own status to wake it, one that fails would never rest.
      const { status: _, resourceVersion: __, ...wish } = entry?.view ?? lock;
      const { status: ___, resourceVersion: ____, ...formerWish } = previous?.view ?? lock;
      if (entry === undefined || previous === undefined || !sameJson(wish, formerWish)) changed(key);
    });
    caches.leases.onChange(({ entry, previous }) => {
      const lease = (entry ?? previous)?.view;
      if (lease === undefined) return;
      const key = lockKey(lease.namespace, lease.name.slice(leaseName('').length));
      if (entry !== undefined) this.#leaseGoneAt.delete(key);
      else if (this.#lockOf(key) !== undefined) this.#leaseGoneAt.set(key, instant(this.#clock));
      changed(key);
    });
    for (const cache of [caches.roles, caches.roleBindings]) {
      cache.onChange(({ entry, previous }) => {
        const metadata = (entry ?? previous)?.raw.metadata;
        if (metadata !== undefined) changed(lockKey(metadata.namespace, metadata.name.slice(leaseName('').length)));
      });
    }
    caches.nodes.onChange(({ entry, previous }) => {
      const node = (entry ?? previous)?.view;
      if (node === undefined || sameJson(entry?.view, previous?.view)) return;
      if (entry === undefined) this.#nodes.delete(node.name);
      else this.#nodes.set(node.name, node);
      for (const [key, pods] of this.#pods) {
        if ([...pods.values()].some((pod) => pod.node === node.name)) changed(key);
      }
    });
  }

  /** Every lock that exists or that a Pod names. */
  keys(): ReadonlySet<LockKey> {
    const keys = new Set(this.#pods.keys());
    for (const { view } of this.#caches.locks.entries()) keys.add(lockKey(view.namespace, view.name));
    return keys;
  }

  observe(key: LockKey, context: { readonly gate: GrantGate; readonly failure: string | undefined }): Observed {
    const [namespace = '', name = ''] = key.split('/');
    const lock = this.#lockOf(key);
    const pods = this.#pods.get(key);
    return {
      lock,
      lease: this.#caches.leases.get(namespace, leaseName(name))?.view,
      leaseAbsentSince: this.#leaseGoneAt.get(key) ?? this.#startedAt,
      roles: lock === undefined ? { role: true, roleBinding: true } : this.#roles(lock),
      pods: pods === undefined ? [] : [...pods.values()],
      lastSeen: (uid) => pods?.get(uid) ?? this.#tombstones.get(uid),
      nodes: this.#nodes,
      ...context,
    };
  }

  #lockOf(key: LockKey): LockView | undefined {
    const [namespace = '', name = ''] = key.split('/');
    return this.#caches.locks.get(namespace, name)?.view;
  }

  #roles(lock: LockView): Observed['roles'] {
    const name = leaseName(lock.name);
    const present = this.#caches.roles.get(lock.namespace, name)?.raw;
    const binding = this.#caches.roleBindings.get(lock.namespace, name)?.raw;
    const ownedBy = (raw: typeof present) =>
      raw?.metadata.labels?.[LOCK_LABEL] === lock.name &&
      (raw.metadata.ownerReferences?.some(({ uid }) => uid === lock.uid) ?? false);
    return {
      role: ownedBy(present) && sameJson(present?.rules, role(lock).rules),
      roleBinding: ownedBy(binding) && sameJson(binding?.subjects, roleBinding(lock).subjects),
    };
  }

  #podsOf(key: LockKey): Map<string, PodView> {
    const present = this.#pods.get(key);
    if (present !== undefined) return present;
    const pods = new Map<string, PodView>();
    this.#pods.set(key, pods);
    return pods;
  }

  #podGone(pod: PodView): void {
    const key = lockKey(pod.namespace, pod.lock);
    const pods = this.#pods.get(key);
    pods?.delete(pod.uid);
    if (pods?.size === 0) this.#pods.delete(key);
    // Its deletion may have been missed, with a last state in which it still ran: it is ending in any case.
    this.#tombstones.set(pod.uid, { ...pod, deleting: true });
    for (const oldest of this.#tombstones.keys()) {
      if (this.#tombstones.size <= TOMBSTONES) break;
      this.#tombstones.delete(oldest);
    }
  }
}
