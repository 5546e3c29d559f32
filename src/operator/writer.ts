import { GROUP, KIND, LOCK_FINALIZER, leaseName, POD_FINALIZER, VERSION } from '../api/names.ts';
import type { Action } from '../core/actions.ts';
import { assertNever } from '../core/assert-never.ts';
import type { RawLease } from '../core/lease.ts';
import type { LockView } from '../core/lock.ts';
import { formatMicroTime } from '../core/micro-time.ts';
import type { PodView } from '../core/pod.ts';
import { REQUEST_ANNOTATION } from '../core/requests.ts';
import type { RawObject } from '../kube/cache.ts';
import type { KubeClient, KubeRequest } from '../kube/client.ts';
import { ApiError, isAlreadyExists } from '../kube/errors.ts';
import { collectionPath, objectPath, type Resource } from '../kube/paths.ts';
import type { Caches } from './caches.ts';
import { type Clock, micros, systemClock } from './clock.ts';
import {
  adoptedLease,
  askedLease,
  brokenLease,
  freedLease,
  grantedLease,
  newLease,
  podMarks,
  refreshedLease,
  role,
  roleBinding,
} from './objects.ts';

interface ReplySink<Raw> {
  put(raw: Raw): void;
}

/** Carries out one action: one write, and the reply into the cache. */
export type Writer = (action: Action) => Promise<void>;

/**
 * Every write carries the UID and the revision of the object that the decision was made on, so the API server refuses
 * it when anything has changed since (409), and the next pass decides anew.
 */
export function createWriter(deps: {
  readonly client: KubeClient;
  readonly caches: Caches;
  readonly clock?: Pick<Clock, 'wallMicroseconds'>;
}): Writer {
  const { client, caches, clock = systemClock } = deps;

  async function write<Raw extends RawObject>(cache: ReplySink<Raw>, request: KubeRequest): Promise<void> {
    cache.put(await client.request<Raw>(request));
  }

  /** The object as it was observed; a newer one in the cache means that the decision is out of date. */
  function presentLease(lease: {
    readonly namespace: string;
    readonly name: string;
    readonly resourceVersion: string;
  }): RawLease {
    const raw = caches.leases.get(lease.namespace, lease.name)?.raw;
    if (raw?.metadata.resourceVersion !== lease.resourceVersion) {
      throw new ApiError(409, 'Conflict', `Lease ${lease.namespace}/${lease.name} has changed since it was observed`);
    }
    return raw;
  }

  const putLease = (lease: RawLease) =>
    write(caches.leases, {
      verb: 'PUT',
      path: objectPath('leases', lease.metadata.namespace, lease.metadata.name),
      body: lease,
    });

  const patchPod = (pod: PodView, marks: Parameters<typeof podMarks>[1]) =>
    write(caches.pods, {
      verb: 'PATCH',
      path: objectPath('pods', pod.namespace, pod.name),
      body: podMarks(pod, marks),
    });

  const patchFinalizers = (lock: LockView, finalizers: readonly string[]) =>
    write(caches.locks, {
      verb: 'PATCH',
      path: objectPath('distributedlocks', lock.namespace, lock.name),
      body: { metadata: { uid: lock.uid, resourceVersion: lock.resourceVersion, finalizers } },
    });

  const patchPodFinalizers = (pod: PodView, finalizers: readonly string[]) =>
    write(caches.pods, {
      verb: 'PATCH',
      path: objectPath('pods', pod.namespace, pod.name),
      body: { metadata: { uid: pod.uid, resourceVersion: pod.resourceVersion, finalizers } },
    });

  /** Creates. One that is there already but was not seen, since it lacks the label, is read: the next pass replaces it. */
  async function create<Raw extends RawObject>(
    resource: Resource,
    cache: ReplySink<Raw>,
    lock: LockView,
    object: object,
  ): Promise<void> {
    try {
      await write(cache, { verb: 'POST', path: collectionPath(resource, lock.namespace), body: object });
    } catch (err) {
      if (isAlreadyExists(err)) {
        await write(cache, { verb: 'GET', path: objectPath(resource, lock.namespace, leaseName(lock.name)) });
      }
      throw err;
    }
  }

  /** Creates, or replaces what has drifted. */
  function putOwned<Raw extends RawObject>(
    resource: Resource,
    cache: ReplySink<Raw> & { get(namespace: string, name: string): { readonly raw: Raw } | undefined },
    lock: LockView,
    object: { readonly metadata: object },
  ): Promise<void> {
    const present = cache.get(lock.namespace, leaseName(lock.name))?.raw.metadata;
    if (present === undefined) return create(resource, cache, lock, object);
    const { uid, resourceVersion } = present;
    return write(cache, {
      verb: 'PUT',
      path: objectPath(resource, lock.namespace, leaseName(lock.name)),
      body: { ...object, metadata: { ...object.metadata, uid, resourceVersion } },
    });
  }

  return async (action) => {
    switch (action.kind) {
      case 'AddFinalizer':
        return patchFinalizers(action.lock, [...action.lock.finalizers, LOCK_FINALIZER]);
      case 'RemoveFinalizer':
        return patchFinalizers(
          action.lock,
          action.lock.finalizers.filter((finalizer) => finalizer !== LOCK_FINALIZER),
        );
      case 'PutRole':
        return putOwned('roles', caches.roles, action.lock, role(action.lock));
      case 'PutRoleBinding':
        return putOwned('rolebindings', caches.roleBindings, action.lock, roleBinding(action.lock));
      case 'CreateLease':
        return create('leases', caches.leases, action.lock, newLease(action.lock));
      case 'AdoptLease':
        return putLease(adoptedLease(presentLease(action.lease), action.lock));
      case 'RefreshLease':
        return putLease(refreshedLease(presentLease(action.lease)));
      case 'DeleteLease': {
        const { uid, resourceVersion, namespace, name } = action.lease;
        const present = presentLease(action.lease);
        await client.request({
          verb: 'DELETE',
          path: objectPath('leases', namespace, name),
          body: { preconditions: { uid, resourceVersion } },
        });
        return caches.leases.remove(present);
      }
      case 'Grant':
        return putLease(grantedLease(presentLease(action.lease), action, formatMicroTime(micros(clock))));
      case 'Free':
        return putLease(freedLease(presentLease(action.lease)));
      case 'AskYield':
        return putLease(askedLease(presentLease(action.lease), action.reason));
      case 'Break':
        return putLease(brokenLease(presentLease(action.lease), action, formatMicroTime(micros(clock))));
      case 'DropRequest': {
        const { namespace, name, uid, resourceVersion } = action.lock;
        return write(caches.locks, {
          verb: 'PATCH',
          path: objectPath('distributedlocks', namespace, name),
          body: { metadata: { uid, resourceVersion, annotations: { [REQUEST_ANNOTATION[action.request]]: null } } },
        });
      }
      case 'MarkHolder': {
        const token = action.token.toString();
        const notStarted = action.notStarted ? token : null;
        return patchPod(action.pod, { token, leader: 'true', queuedAt: null, notStarted });
      }
      case 'Unmark':
        return patchPod(action.pod, { token: null, leader: null, queuedAt: null });
      case 'JoinQueue':
        return patchPod(action.pod, {
          token: null,
          leader: null,
          queuedAt: action.queuedAt.toString(),
          ...(action.notStarted && action.pod.token !== undefined && { notStarted: action.pod.token }),
        });
      case 'AddPodFinalizer':
        return patchPodFinalizers(action.pod, [...action.pod.finalizers, POD_FINALIZER]);
      case 'RemovePodFinalizer':
        return patchPodFinalizers(
          action.pod,
          action.pod.finalizers.filter((finalizer) => finalizer !== POD_FINALIZER),
        );
      case 'WriteStatus': {
        const { namespace, name, uid, resourceVersion } = action.lock;
        return write(caches.locks, {
          verb: 'PUT',
          path: `${objectPath('distributedlocks', namespace, name)}/status`,
          body: {
            apiVersion: `${GROUP}/${VERSION}`,
            kind: KIND,
            metadata: { namespace, name, uid, resourceVersion },
            status: action.status,
          },
        });
      }
      default:
        return assertNever(action);
    }
  };
}
