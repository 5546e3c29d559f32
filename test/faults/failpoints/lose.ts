/** A fault that disturbs no holder shows little: so some holders are made to lose their lock in the middle of it. */
import { SIDECAR_CONTAINER } from '../../../src/api/names.ts';
import type { ClusterNode } from '../../../tools/cluster/index.ts';
import type { ClusterFault } from './failpoint.ts';
import { signal } from './pods.ts';

/** Kills the sidecars of about half of the holders; of those on one node, if it is named. */
export async function loseSome({ holders, random }: ClusterFault, node?: ClusterNode): Promise<void> {
  for (const holder of holders.values()) {
    const isMeant = random.between(0, 1) === 1;
    if (isMeant && (node === undefined || holder.node.name === node.name)) {
      await signal(holder, [SIDECAR_CONTAINER], 'SIGKILL');
    }
  }
}

/** A node on which somebody holds a lock. */
export function busyNode({ holders, random }: ClusterFault): ClusterNode {
  return random.pick([...holders.values()]).node;
}
