import { OPERATOR_LEASE } from '../api/names.ts';
import type { KubeClient } from '../kube/client.ts';
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts';
import { collectionPath, objectPath } from '../kube/paths.ts';
import { type LeaseRecord, type LeaseStore, LeaseStoreError, type StoredLease } from '../leader-election/index.ts';

interface ElectionLease {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly spec?: Partial<LeaseRecord>;
}

/** The operator's own Lease, as the elector wants it. */
export function createElectionStore(client: KubeClient, namespace: string): LeaseStore {
  const path = objectPath('leases', namespace, OPERATOR_LEASE);
  let last: ElectionLease | undefined;

  async function call(request: Parameters<KubeClient['request']>[0]): Promise<StoredLease> {
    try {
      last = await client.request<ElectionLease>(request);
      return { resourceVersion: last.metadata.resourceVersion, record: toRecord(last.spec ?? {}) };
    } catch (err) {
      const code = isNotFound(err)
        ? 'NotFound'
        : isAlreadyExists(err)
          ? 'AlreadyExists'
          : isConflict(err)
            ? 'Conflict'
            : 'Other';
      throw new LeaseStoreError(code, err instanceof Error ? err.message : String(err), { cause: err });
    }
  }

  return {
    get: (signal) => call({ verb: 'GET', path, signal }),
    create: (record, signal) =>
      call({
        verb: 'POST',
        path: collectionPath('leases', namespace),
        body: {
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name: OPERATOR_LEASE, namespace },
          spec: record,
        },
        signal,
      }),
    update: (record, resourceVersion, signal) =>
      call({
        verb: 'PUT',
        path,
        body: {
          ...last,
          metadata: { ...last?.metadata, name: OPERATOR_LEASE, namespace, resourceVersion },
          spec: record,
        },
        signal,
      }),
  };
}

const toRecord = (spec: Partial<LeaseRecord>): LeaseRecord => ({
  holderIdentity: spec.holderIdentity ?? '',
  leaseDurationSeconds: spec.leaseDurationSeconds ?? 15,
  acquireTime: spec.acquireTime ?? '',
  renewTime: spec.renewTime ?? '',
  leaseTransitions: spec.leaseTransitions ?? 0,
});
