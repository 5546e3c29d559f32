import { leaseName } from '../api/names.ts';
import { ReadyReason } from '../api/reasons.ts';
import type { Action } from '../core/actions.ts';
import type { LockView } from '../core/lock.ts';
import type { RawObject } from '../kube/cache.ts';
import type { KubeClient } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import { objectPath } from '../kube/paths.ts';
import type { Caches } from './caches.ts';

interface Copy<Raw> {
  get(namespace: string, name: string): { readonly raw: Raw } | undefined;
  put(raw: Raw): void;
}

/**
 * Reads the Lease and the token base before a lock is said to have fallen behind.
 *
 * The status of a lock tells of the last grant, and the watch of Leases or of the base may lag behind it: then the next
 * token only looks too small. What was read goes into the caches; if it is news, the next pass decides on it.
 *
 * @throws ApiError 409 if the Lease or the base has changed since it was observed.
 */
export function createBehindCheck(deps: {
  readonly client: KubeClient;
  readonly caches: Pick<Caches, 'leases' | 'tokenBase'>;
  /** Of the operator. */
  readonly namespace: string;
}): (action: Action) => Promise<void> {
  const { client, caches, namespace } = deps;

  async function isNews<Raw extends RawObject>(
    cache: Copy<Raw>,
    path: string,
    [at, name]: readonly [namespace: string, name: string],
  ): Promise<boolean> {
    const known = cache.get(at, name)?.raw.metadata;
    const present = await client.request<Raw>({ verb: 'GET', path });
    cache.put(present);
    return present.metadata.uid !== known?.uid || present.metadata.resourceVersion !== known.resourceVersion;
  }

  return async (action) => {
    if (action.kind !== 'WriteStatus') return;
    const { lock, status } = action;
    if (reasonOf(status) !== ReadyReason.RevisionFellBehind || reasonOf(lock.status) === reasonOf(status)) return;
    const name = leaseName(lock.name);
    const news = [
      await isNews(caches.leases, objectPath('leases', lock.namespace, name), [lock.namespace, name]),
      await isNews(caches.tokenBase, objectPath('namespaces', undefined, namespace), ['', namespace]),
    ];
    if (!news.includes(true)) return;
    throw new ApiError(409, 'Conflict', `Lease ${lock.namespace}/${name} or the token base has changed meanwhile`);
  };
}

const reasonOf = (status: LockView['status']): string | undefined =>
  status.conditions?.find(({ type }) => type === 'Ready')?.reason;
