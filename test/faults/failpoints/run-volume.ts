import { dirname, join } from 'node:path';
import { RUN_VOLUME } from '../../../src/api/names.ts';
import type { Cluster } from '../../../tools/cluster/index.ts';

/** The volume of `/run/kilit` as this machine sees it; it lives as long as its Pod. */
export const runVolume = (cluster: Cluster, node: string, uid: string): string =>
  join(dirname(cluster.kubeconfigPath), node, 'kubelet/pods', uid, 'volumes/kubernetes.io~empty-dir', RUN_VOLUME);
