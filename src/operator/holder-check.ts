import { EndReason } from '../api/reasons.ts';
import type { Action } from '../core/actions.ts';
import type { RawPod } from '../core/raw-pod.ts';
import type { KubeClient } from '../kube/client.ts';
import { ApiError, isNotFound } from '../kube/errors.ts';
import { objectPath } from '../kube/paths.ts';
import type { Caches } from './caches.ts';

/**
 * Reads the holder's Pod before its lease counts as expired, or a broken holder as stopped.
 *
 * A holder that is being deleted or evicted gets its grace period more, and the watch that tells may lag without a
 * bound. What was read goes into the cache; if it is news, the action is given up and the next pass decides on it.
 *
 * @throws ApiError 409 if the Pod has changed since it was observed.
 */
export function createHolderCheck(deps: {
  readonly client: KubeClient;
  readonly caches: Pick<Caches, 'pods'>;
}): (action: Action) => Promise<void> {
  const { client, caches } = deps;
  return async (action) => {
    if (action.kind !== 'Grant' && action.kind !== 'Free') return;
    if (action.ended?.reason !== EndReason.Expired && action.ended?.reason !== EndReason.Broken) return;
    const { namespace } = action.lock;
    const { name, uid } = action.ended.holder;
    const same = (pod: RawPod | undefined) => (pod?.metadata.uid === uid ? pod : undefined);
    const known = same(caches.pods.get(namespace, name)?.raw);
    const path = objectPath('pods', namespace, name);
    const present = same(
      await client.request<RawPod>({ verb: 'GET', path }).catch((err: unknown) => {
        if (isNotFound(err)) return undefined;
        throw err;
      }),
    );
    if (present?.metadata.resourceVersion === known?.metadata.resourceVersion) return;
    if (present !== undefined) caches.pods.put(present);
    else if (known !== undefined) caches.pods.remove(known);
    throw new ApiError(409, 'Conflict', `Pod ${namespace}/${name} has changed since it was observed`);
  };
}
