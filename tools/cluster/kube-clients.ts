import { run } from './exec.ts';
import type { Cluster } from './types.ts';

/** kubectl and helm bound to one cluster: the user's own kubeconfig and Helm settings are never read. */
export function kubeClients(at: {
  readonly kubectl: string;
  readonly helm: string;
  readonly kubeconfig: string;
  readonly context?: string;
}): Pick<Cluster, 'kubectl' | 'helm'> {
  const env = { KUBECONFIG: at.kubeconfig };
  const context = (flag: string): readonly string[] => (at.context === undefined ? [] : [flag, at.context]);
  return {
    kubectl: async (args, options = {}) =>
      (await run(at.kubectl, [...context('--context'), ...args], { ...options, env })).stdout,
    helm: async (args, options = {}) =>
      (await run(at.helm, [...context('--kube-context'), ...args], { ...options, env })).stdout,
  };
}
