import { stat } from 'node:fs/promises';
import { run } from '../exec.ts';
import { waitFor } from '../progress.ts';
import type { ClusterNode } from '../types.ts';
import { type Container, containersByName, containersOfPod, pidsOf } from './containers.ts';
import { removeContainer } from './cri.ts';
import type { Layout, NodeLayout } from './layout.ts';
import { cutFromApiServer, healFromApiServer, setNodeLink } from './network.ts';
import type { NodePrograms } from './node-programs.ts';
import { signalProcess } from './proc.ts';

const EXIT_SECONDS = 10;

/** A node on this machine; its faults are real signals, real packet loss and real lost records. */
export function nativeNode(cluster: Layout, node: NodeLayout, programs: NodePrograms): ClusterNode {
  const { kubelet } = programs;
  const ctr = async (args: readonly string[]): Promise<string> =>
    (await run('ctr', ['-a', node.containerdSocket, '-n', 'k8s.io', ...args])).stdout;
  return {
    name: node.name,
    stopKubelet: () => kubelet.stop(),
    startKubelet: () => kubelet.start(),
    restartKubelet: () => kubelet.restart(),
    ctr,
    pidsOfPod: (podUid) => pidsOfPod(node, podUid),
    killContainer: (podUid, container, signal = 'SIGKILL') => killContainer(node, podUid, container, signal),
    removeContainerRecord: (podUid, container) => removeRecord({ node, ctr }, podUid, container),
    cutPod: async (podUid) => cutFromApiServer(cluster, await sandboxPid(node, podUid)),
    healPod: async (podUid) => healFromApiServer(await sandboxPid(node, podUid)),
    cutNetwork: () => setNodeLink(node, 'down'),
    healNetwork: () => setNodeLink(node, 'up'),
  };
}

async function pidsOfPod(node: NodeLayout, podUid: string): Promise<ReadonlyMap<string, readonly number[]>> {
  const containers = await containersOfPod(node, podUid);
  const running = containers.filter(({ kind, pid }) => kind === 'container' && pid !== undefined);
  return new Map(await Promise.all(running.map(async (each) => [each.name, await pidsOf(each)] as const)));
}

async function killContainer(node: NodeLayout, podUid: string, name: string, signal: NodeJS.Signals): Promise<void> {
  const [container] = await containersByName(node, podUid, name);
  if (container?.pid === undefined)
    throw new Error(`Container '${name}' of Pod ${podUid} does not run on ${node.name}.`);
  signalProcess(container.pid, signal);
  if (signal !== 'SIGKILL') return;
  const { pid } = container;
  await waitFor(async () => !(await isRunning(node, podUid, pid)), {
    what: `container '${name}' ends`,
    timeoutSeconds: EXIT_SECONDS,
    everyMilliseconds: 10,
  });
}

const isRunning = async (node: NodeLayout, podUid: string, pid: number): Promise<boolean> =>
  (await containersOfPod(node, podUid)).some((container) => container.pid === pid);

async function removeRecord(
  at: { readonly node: NodeLayout; readonly ctr: ClusterNode['ctr'] },
  podUid: string,
  name: string,
): Promise<void> {
  const label = (key: string, value: string): string => `labels."io.kubernetes.${key}"==${value}`;
  const filter = `${label('pod.uid', podUid)},${label('container.name', name)}`;
  const ids = (await at.ctr(['containers', 'ls', '-q', filter])).split('\n').filter((id) => id !== '');
  if (ids.length === 0) throw new Error(`containerd of ${at.node.name} has no container '${name}' of Pod ${podUid}.`);
  for (const id of ids) await removeContainer(at.node.containerdSocket, id);
}

/** A process in the Pod's own network namespace. */
async function sandboxPid(node: NodeLayout, podUid: string): Promise<number> {
  const containers = await containersOfPod(node, podUid);
  const running = (kind: Container['kind']): number | undefined =>
    containers.find((container) => container.kind === kind && container.pid !== undefined)?.pid;
  const pid = running('sandbox') ?? running('container');
  if (pid === undefined) throw new Error(`Pod ${podUid} has no running container on ${node.name}.`);
  const [own, nodes] = await Promise.all([stat(`/proc/${pid}/ns/net`), stat(`/run/netns/${node.netns}`)]);
  if (own.ino === nodes.ino) {
    throw new Error(
      `Pod ${podUid} has hostNetwork: cutting it would cut ${node.name} and its kubelet. Use cutNetwork.`,
    );
  }
  return pid;
}
