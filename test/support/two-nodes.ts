/** A cluster of two nodes, for what one node cannot show. */
import { type Cluster, KILIT_IMAGE, openCluster } from '../../tools/cluster/index.ts';
import { installArgs } from './install.ts';

export interface TwoNodes extends AsyncDisposable {
  readonly cluster: Cluster;
}

/**
 * The given cluster if it has two nodes, else one of its own, which goes in the end.
 *
 * The cluster of the tests is not extended: other tests rely on it that every Pod runs on its one node.
 */
export async function openTwoNodes(cluster: Cluster): Promise<TwoNodes> {
  if (cluster.nodes.length >= 2) return { cluster, async [Symbol.asyncDispose]() {} };
  const own = await openCluster({ name: `${cluster.name}-two`, nodes: 2 });
  await own.loadImage(KILIT_IMAGE);
  await own.helm(installArgs({ replicas: 1 }));
  return { cluster: own, [Symbol.asyncDispose]: () => own.down() };
}
