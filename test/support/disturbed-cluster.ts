/** The cluster of the `cluster` tests by its harness, which can disturb it: nodes, containers, components. */
import { type Cluster, openCluster } from '../../tools/cluster/index.ts';

/**
 * Starts again whatever is stopped. Only provider `native` can do the faults, so such tests are skipped elsewhere:
 * `describe.skipIf(cluster.provider !== 'native')`.
 */
export const openTestCluster = (): Promise<Cluster> =>
  openCluster({
    name: process.env.KILIT_TEST_CLUSTER ?? 'test',
    ...(process.env.KILIT_KUBECONFIG !== undefined && { kubeconfig: process.env.KILIT_KUBECONFIG }),
  });
