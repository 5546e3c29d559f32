import type { KubeClient } from '../../kube/client.ts';
import { ApiError } from '../../kube/errors.ts';
import { checkPolicy } from '../../operator/canary.ts';
import type { Cluster } from '../connect.ts';
import { missingRight } from '../explain.ts';
import type { CanaryFact } from './facts.ts';

/**
 * The operator's canary as this user: a dry run of a Lease that the policy must refuse.
 *
 * A user who may not create Leases is stopped before the policy; the next namespace is tried then.
 */
export async function tryCanary(cluster: Cluster, namespaces: readonly string[]): Promise<CanaryFact> {
  let why = 'no namespace to try in';
  for (const namespace of namespaces) {
    let refusal: unknown;
    const client: KubeClient = {
      request: (request) =>
        cluster.request<never>(request).catch((err: unknown) => {
          refusal = err;
          throw err;
        }),
      close: () => undefined,
    };
    const result = await checkPolicy(client, namespace);
    if (result !== 'unknown') return { kind: result };
    if (refusal instanceof ApiError) why = missingRight(refusal.message) ?? refusal.message;
  }
  return { kind: 'unknown', why };
}
