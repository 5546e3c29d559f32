/** Faults of the active operator, while locks must be granted. */
import { OPERATOR_LEASE } from '../../../src/api/names.ts';
import type { ClusterNode } from '../../../tools/cluster/index.ts';
import { OPERATOR_NAMESPACE } from '../../support/install.ts';
import { type ClusterFault, type Failpoint, nothingToHeal } from './failpoint.ts';
import { loseSome } from './lose.ts';
import { send, signal } from './pods.ts';

const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${OPERATOR_NAMESPACE}/leases/${OPERATOR_LEASE}`;

async function active({ kube, cluster }: ClusterFault): Promise<{ readonly node: ClusterNode; readonly uid: string }> {
  const { spec } = await kube.must('GET', LEASE);
  const { holderIdentity: identity = '' } = (spec ?? {}) as { readonly holderIdentity?: string };
  const [name = ''] = identity.split('_');
  const pod = await kube.must('GET', `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods/${name}`);
  return { node: cluster.node(String(pod.spec?.['nodeName'])), uid: pod.metadata?.uid ?? '' };
}

export const OPERATOR_FAILPOINTS: readonly Failpoint[] = [
  {
    name: 'SIGSTOP operator',
    level: 'cluster',
    lasts: 'over-its-lease',
    async inflict(fault) {
      const pids = await signal(await active(fault), ['operator'], 'SIGSTOP');
      await loseSome(fault);
      return async () => pids.forEach((pid) => send(pid, 'SIGCONT'));
    },
  },
  {
    name: 'SIGKILL operator',
    level: 'cluster',
    lasts: 'no-time',
    async inflict(fault) {
      await loseSome(fault);
      await signal(await active(fault), ['operator'], 'SIGKILL');
      return nothingToHeal;
    },
  },
];
