import { KubeConfig } from '@kubernetes/client-node';

export type { KubeConfig };

/**
 * Credentials: a kubeconfig file when one is named, else the Pod's service account.
 *
 * A default kubeconfig is never read: a lock operator must not act on a cluster that nobody named.
 */
export function loadKubeConfig(kubeconfigPath: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (kubeconfigPath !== undefined && kubeconfigPath !== '') config.loadFromFile(kubeconfigPath);
  else config.loadFromCluster();
  return config;
}
