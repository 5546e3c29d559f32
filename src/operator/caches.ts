import type { DistributedLock } from '../api/generated/distributedlock.ts';
import { LOCK_LABEL, TOKEN_BASE_ANNOTATION } from '../api/names.ts';
import { type LeaseView, leaseView, type RawLease } from '../core/lease.ts';
import { type LockView, lockView } from '../core/lock.ts';
import { type NodeView, nodeView, type RawNode } from '../core/node.ts';
import { type PodView, podView } from '../core/pod.ts';
import type { RawPod } from '../core/raw-pod.ts';
import { parseTokenBase } from '../core/token.ts';
import { type RawObject, type WatchDeps, WatchedCache } from '../kube/cache.ts';
import { collectionPath } from '../kube/paths.ts';
import { type Clock, instant, systemClock } from './clock.ts';

interface OwnedMetadata {
  readonly namespace: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly { readonly uid: string }[];
}

export type RawRole = RawObject & {
  readonly metadata: OwnedMetadata;
  readonly rules?: unknown;
};
export type RawRoleBinding = RawObject & {
  readonly metadata: OwnedMetadata;
  readonly subjects?: unknown;
};
type RawNamespace = RawObject & { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } };

/** The operator's copies of what it decides on. Kept by every replica, so that a new leader has seen the leases already. */
export interface Caches {
  readonly locks: WatchedCache<DistributedLock & RawObject, LockView>;
  readonly leases: WatchedCache<RawLease, LeaseView>;
  readonly pods: WatchedCache<RawPod, PodView>;
  readonly nodes: WatchedCache<RawNode & RawObject, NodeView>;
  readonly roles: WatchedCache<RawRole, undefined>;
  readonly roleBindings: WatchedCache<RawRoleBinding, undefined>;
  readonly tokenBase: WatchedCache<RawNamespace, bigint | undefined>;
}

export function createCaches(operatorNamespace: string, clock: Pick<Clock, 'monotonicSeconds'> = systemClock): Caches {
  const labelled = { labelSelector: LOCK_LABEL };
  return {
    locks: new WatchedCache({ path: collectionPath('distributedlocks'), view: lockView }),
    leases: new WatchedCache({
      path: collectionPath('leases'),
      ...labelled,
      view: (raw, previous) => leaseView(raw, instant(clock), previous),
    }),
    pods: new WatchedCache({
      path: collectionPath('pods'),
      ...labelled,
      view: (raw, previous) => podView(raw, instant(clock), previous),
    }),
    nodes: new WatchedCache({ path: collectionPath('nodes'), view: nodeView }),
    roles: new WatchedCache({ path: collectionPath('roles'), ...labelled, view: () => undefined }),
    roleBindings: new WatchedCache({ path: collectionPath('rolebindings'), ...labelled, view: () => undefined }),
    tokenBase: new WatchedCache({
      path: collectionPath('namespaces'),
      fieldSelector: `metadata.name=${operatorNamespace}`,
      view: (raw) => parseTokenBase(raw.metadata.annotations?.[TOKEN_BASE_ANNOTATION] ?? '0'),
    }),
  };
}

/** Runs all caches until `signal` aborts; resolves when each has been read once. */
export async function runCaches(caches: Caches, deps: WatchDeps, signal: AbortSignal): Promise<void> {
  await Promise.all(
    Object.values(caches).map((cache: { run(deps: WatchDeps, signal: AbortSignal): Promise<void> }) =>
      cache.run(deps, signal),
    ),
  );
}

export const cachesSynced = (caches: Caches): boolean => Object.values(caches).every((cache) => cache.synced);
