/** Signals to the processes of a container, behind the kubelet's back: by containerd's own client on the node. */
import type { RawPod } from '../../src/core/raw-pod.ts';
import type { Cluster } from '../cluster/index.ts';

/** Sends the signal to every process of each named container. */
export async function signalContainers(
  cluster: Cluster,
  pod: RawPod,
  at: { readonly containers: readonly string[]; readonly signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' },
): Promise<void> {
  for (const container of at.containers) {
    await nodeOf(cluster, pod).ctr(['tasks', 'kill', '--all', '--signal', at.signal, containerId(pod, container)]);
  }
}

/** Asks containerd, which knows earlier than the Pod's status. */
export async function containerRuns(cluster: Cluster, pod: RawPod, container: string): Promise<boolean> {
  const id = containerId(pod, container);
  const tasks = await nodeOf(cluster, pod).ctr(['tasks', 'ls']);
  return tasks.split('\n').some((line) => line.startsWith(id) && !line.trimEnd().endsWith('STOPPED'));
}

const nodeOf = (cluster: Cluster, pod: RawPod) => cluster.node(pod.spec.nodeName ?? '');

/** The kubelet writes `containerd://<id>`. */
function containerId(pod: RawPod, container: string): string {
  const statuses = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])];
  const id = statuses.find((status) => status.name === container)?.containerID?.replace(/^.*:\/\//, '');
  if (id === undefined) throw new Error(`Container '${container}' of Pod ${pod.metadata.name} has not been created.`);
  return id;
}
