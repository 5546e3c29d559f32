import { GROUP, PLURAL } from '../../api/names.ts';
import { collectionPath } from '../../kube/paths.ts';
import type { Cluster } from '../connect.ts';
import { Failure } from '../failure.ts';

/** The verb on a lock that break and hand-over need. */
const BREAK_VERB = 'break';

/** The name by which the API server knows this user; the policy compares `by` with it. */
export async function whoAmI(cluster: Cluster): Promise<string> {
  const { status } = await cluster.request<{ readonly status: { readonly userInfo: { readonly username: string } } }>({
    verb: 'POST',
    path: collectionPath('selfsubjectreviews'),
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
  });
  return status.userInfo.username;
}

/** @throws Failure that names the right, before anything is asked or written. The API server checks it again. */
export async function mustBeAllowed(cluster: Cluster, lock: string, user: string): Promise<void> {
  const { namespace } = cluster;
  const { status } = await cluster.request<{ readonly status: { readonly allowed: boolean } }>({
    verb: 'POST',
    path: collectionPath('selfsubjectaccessreviews'),
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { namespace, verb: BREAK_VERB, group: GROUP, resource: PLURAL, name: lock } },
    },
  });
  if (status.allowed) return;
  throw new Failure(
    `[Forbidden] '${user}' may not ${BREAK_VERB} ${PLURAL}.${GROUP} '${lock}' in namespace ${namespace}. The role 'admin' of the namespace has that verb.`,
  );
}
